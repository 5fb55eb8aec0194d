"""``slipstream ask``: fields, streams, options and their conflicts, Ctrl-C."""

from __future__ import annotations

import io

import pytest

from app.cli.client import BlockingClient
from app.conversation import Role
from app.engine import Ask, FakeEngine, FinishReason, Origin, Verify
from app.errors import ContextFullError, DeviceError, EngineError, ModelFileError
from tests.cli.support import Slipstream

FIELDS = (
    "text reasoning token_ids finish_reason thinking_end prompt_tokens completion_tokens rounds "
    "drafted accepted accepted_per_round rows_from mean_accepted_length tokens_per_s "
    "plain_tokens_per_s speedup speedup_not_measured exact n_ctx memory backend device phase_ms "
    "syncs_per_round graphs_rebuilt graphs_run_per_round bytes_to_host_per_round"
).split()


def the_ask(engine: FakeEngine) -> Ask:
    (command,) = engine.asked
    return command


def test_json_has_these_fields_in_this_order(slipstream: Slipstream, engine: FakeEngine) -> None:
    run = slipstream("ask", "What is DFlash?", "--json")
    assert run.status == 0
    assert list(run.json) == FIELDS
    assert list(run.json["phase_ms"]) == ["draft", "verify", "host"]
    assert run.json["text"] == engine.script.text
    assert run.json["completion_tokens"] == len(run.json["token_ids"])
    assert run.json["finish_reason"] == "stop"
    assert engine.closed


@pytest.mark.parametrize("exact", [True, False])
def test_json_tells_whether_drafted_text_is_plain_text(
    slipstream: Slipstream, engine: FakeEngine, exact: bool
) -> None:
    """It is not known when the pair is loaded: it is probed behind the answer."""
    engine.script.exact = exact
    assert slipstream("ask", "?", "--json").json["exact"] is exact


def test_what_cannot_be_probed_costs_no_answer(
    slipstream: Slipstream, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: BlockingClient) -> bool | None:
        raise DeviceError("The device is lost.", remedy="Start again.")

    monkeypatch.setattr(BlockingClient, "exact", lost)
    run = slipstream("ask", "?", "--json")
    assert (run.status, run.json["exact"]) == (0, None)
    assert run.json["text"] == engine.script.text


def test_ctrl_c_behind_the_answer_costs_no_answer(
    slipstream: Slipstream, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: BlockingClient) -> bool | None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BlockingClient, "exact", stopped)
    run = slipstream("ask", "?", "--json")
    assert (run.status, run.json["exact"], run.json["text"]) == (130, None, engine.script.text)


def test_what_was_not_measured_is_null(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.text = "Yes."
    run = slipstream("ask", "?", "--json")
    assert run.json["mean_accepted_length"] is None
    assert run.json["tokens_per_s"] is None
    assert run.json["speedup"] is None
    assert run.json["speedup_not_measured"] == "nothing was drafted"


def test_a_speed_up_that_cannot_be_so_is_not_told(
    slipstream: Slipstream, engine: FakeEngine
) -> None:
    """A round that is quicker than a plain step: other work held that one up."""
    engine.script.plain_tokens_per_s = 60.0
    run = slipstream("ask", "?", "--json")
    assert (run.json["speedup"], run.json["plain_tokens_per_s"]) == (None, None)
    assert "held up" in run.json["speedup_not_measured"]
    assert "speed-up not measured (plain steps were held up" in slipstream("ask", "?").err
    engine.script.plain_tokens_per_s = 110.0
    run = slipstream("ask", "?", "--json")
    assert 1 < run.json["speedup"] < run.json["mean_accepted_length"]
    assert run.json["speedup_not_measured"] is None


def test_an_answer_that_repeated_itself_is_told(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.reason = FinishReason.LOOP
    assert slipstream("ask", "?", "--json").json["finish_reason"] == "loop"
    assert "ended by: loop" in slipstream("ask", "?", "--no-loop-guard").err
    assert [asked.params.loop_guard for asked in engine.asked] == [True, False]


def test_where_drafts_came_from_is_told(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.origin = Origin.LOOKUP
    run = slipstream("ask", "?", "--json")
    drafted, accepted = run.json["drafted"], run.json["accepted"]
    assert drafted > 0
    assert run.json["rows_from"] == {"drafter": 0, "lookup": drafted, "both": 0}
    told = slipstream("ask", "?", "--no-lookup")
    assert f"{accepted} tokens out of the text so far" in told.err
    assert [asked.params.lookup for asked in engine.asked] == [True, False]


def test_thinking_that_was_ended_is_told(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.reasoning = "One thought, and another one."
    run = slipstream("ask", "?", "--think", "--think-budget", "2", "--json")
    assert (run.json["thinking_end"], run.json["reasoning"]) == ("budget", "One thought,")
    assert slipstream("ask", "?", "--think", "--json").json["thinking_end"] is None
    refused = slipstream("ask", "?", "--think-budget", "0")
    assert refused.status == 2
    assert "`think_budget` cannot be 0" in refused.err


def test_people_get_the_text_alone_on_stdout(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.text = "Hello 你好 👩‍👩‍👧‍👦 \\ <b>"
    engine.script.reasoning = "They greet me."
    run = slipstream("ask", "Hello", "--think")
    assert (run.status, run.out) == (0, engine.script.text + "\n")
    assert "They greet me.\n\n" in run.err
    assert "mean accepted length" in run.err.splitlines()[-1]


def test_no_draft_loads_no_drafter(slipstream: Slipstream, engine: FakeEngine) -> None:
    plain = slipstream("ask", "Hello", "--no-draft", "--json").json
    drafted = slipstream("ask", "Hello", "--json").json
    assert [load.params.draft is None for load in engine.loads] == [True, False]
    assert [ask.params.draft for ask in engine.asked] == [False, True]
    assert (plain["drafted"], plain["mean_accepted_length"]) == (0, 1.0)
    assert drafted["drafted"] > 0


@pytest.mark.parametrize("command", [("ask", "Hello"), ("bench", "--runs", "1"), ("selftest",)])
def test_how_to_load_reaches_the_engine(
    slipstream: Slipstream, engine: FakeEngine, command: tuple[str, ...]
) -> None:
    slipstream(*command, "--backend", "gpu", "--draft-backend", "cpu", "--ctx", "777")
    slipstream(*command, "--kv-type", "q8_0")
    slipstream(*command)
    asked, default = engine.loads[0].params, engine.loads[-1].params
    assert (asked.backend, asked.draft_backend, asked.n_ctx) == ("gpu", "cpu", 777)
    assert (default.backend, default.draft_backend, default.n_ctx) == ("auto", None, None)
    assert "q8_0" in [load.params.kv_type for load in engine.loads]
    assert (asked.kv_type, default.kv_type) == (None, None)


def test_options_reach_the_engine(slipstream: Slipstream, engine: FakeEngine) -> None:
    slipstream(
        *("ask", "Hello", "--system", "Be brief.", "--backend", "cpu", "--max-tokens", "7"),
        *("--block", "4", "--think", "--stop", "a", "--stop", "b", "--verify", "gpu-sample"),
        *("--temperature", "1.5", "--top-k", "3", "--top-p", "0.5", "--min-p", "0.1"),
        *("--presence-penalty", "1.5", "--frequency-penalty", "-0.5", "--repeat-penalty", "1.1"),
        *("--penalty-last-n", "-1", "--logit-bias", "7=2.5", "--logit-bias", "8=-100"),
        *("--seed", "9", "--json"),
    )
    ask = the_ask(engine)
    assert [(m.role, m.content) for m in ask.chat] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "Hello"),
    ]
    params, sampling = ask.params, ask.params.sampling
    assert (params.max_tokens, params.block, params.think, params.stop) == (7, 4, True, ("a", "b"))
    assert params.verify is Verify.GPU_SAMPLE
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (1.5, 3, 0.5)
    assert (sampling.min_p, sampling.seed) == (0.1, 9)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (1.5, -0.5)
    assert (sampling.repeat_penalty, sampling.penalty_last_n) == (1.1, -1)
    assert sampling.logit_bias == ((7, 2.5), (8, -100.0))


@pytest.mark.parametrize(
    ("options", "verify"),
    [
        ("", Verify.GREEDY),
        ("--block auto", Verify.GREEDY),
        ("--temperature 0.7", Verify.HOST_SAMPLE),
        ("--top-k 5", Verify.HOST_SAMPLE),
        ("--seed 1", Verify.HOST_SAMPLE),
        ("--temperature 0", Verify.GREEDY),
        ("--temperature 0 --top-k 5 --seed 1", Verify.GREEDY),
        ("--verify greedy --temperature 0 --seed 1", Verify.GREEDY),
        ("--verify gpu-sample", Verify.GPU_SAMPLE),
        ("--verify host-sample --temperature 0", Verify.HOST_SAMPLE),
        ("--presence-penalty 1.5 --logit-bias 5=1", Verify.GREEDY),
    ],
)
def test_sampling_options_choose_the_mode(
    slipstream: Slipstream, engine: FakeEngine, options: str, verify: Verify
) -> None:
    assert slipstream("ask", "Hello", *options.split()).status == 0
    assert the_ask(engine).params.verify is verify


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--verify greedy --temperature 0.7 --top-k 3", "`--temperature`, `--top-k`"),
        ("--top-p 0", "0"),
        ("--temperature nan", "nan"),
        ("--temperature hot", "hot"),
        ("--presence-penalty 3", "3.0"),
        ("--frequency-penalty nan", "nan"),
        ("--repeat-penalty 0", "0.0001 to 5"),
        ("--penalty-last-n -2", "-2"),
        ("--logit-bias 5", "'5' is no TOKEN=BIAS"),
        ("--logit-bias yes=1", "'yes=1' is no TOKEN=BIAS"),
        ("--logit-bias 5=101", "101"),
        ("--logit-bias 4294967296=1", "4294967296"),
        ("--max-tokens -1", "-1"),
        ("--block 0", "0"),
        ("--block many", "'many' is neither a number nor auto"),
        ("--ctx 255", "`--ctx` cannot be 255. Use 256 to"),
        ("--ctx long", "long"),
        ("--seed -1", "-1"),
        ("--backend tpu", "tpu"),
        ("--no-dra", "--no-dra"),
    ],
)
def test_usage_errors(slipstream: Slipstream, engine: FakeEngine, options: str, told: str) -> None:
    run = slipstream("ask", "Hello", "--json", *options.split())
    assert (run.status, run.out) == (2, "")
    assert "usage: slipstream" in run.err
    assert told in run.err
    assert engine.asked == []


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), "ascii"))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])  # some editors begin a file with one
def test_prompt_from_stdin(
    slipstream: Slipstream, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, mark: bytes
) -> None:
    stdin(monkeypatch, mark + "two\n  lines 😊\r\n\n".encode())
    assert slipstream("ask", "-").status == 0
    assert the_ask(engine).chat[-1].content == "two\n  lines 😊"


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"\xff\xfe"])
def test_prompts_that_are_none(
    slipstream: Slipstream, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    stdin(monkeypatch, content)
    assert slipstream("ask", "-", "--json").status == 2
    assert slipstream("ask", content.decode(errors="surrogateescape")).status == 2


@pytest.mark.parametrize("option", ["--system", "--stop", "--model"])
def test_arguments_that_are_no_utf8(slipstream: Slipstream, option: str) -> None:
    run = slipstream("ask", "Hello", option, "caf\udce9", "--json")
    if option == "--model":  # a path may be so
        assert (run.status, run.json["error"]["kind"]) == (1, "NoModelError")
        assert "caf\ufffd" in run.json["error"]["message"]
    else:
        assert (run.status, run.out) == (2, "")
        assert "not UTF-8" in run.err


@pytest.mark.parametrize("where", ["load_error", "error"])
def test_failures(slipstream: Slipstream, engine: FakeEngine, where: str) -> None:
    kind = ModelFileError if where == "load_error" else ContextFullError
    setattr(engine.script, where, kind("It is 5 MB short.", remedy="Convert it again."))
    run = slipstream("ask", "Hello", "--json")
    assert run.status == 1
    assert run.json == {
        "error": {
            "kind": kind.__name__,
            "message": "It is 5 MB short.",
            "remedy": "Convert it again.",
        }
    }
    run = slipstream("ask", "Hello")
    assert (run.status, run.out) == (1, "")
    assert "error: It is 5 MB short.\nConvert it again.\n" in run.err


def test_a_plain_rate_that_cannot_be_measured(slipstream: Slipstream, engine: FakeEngine) -> None:
    engine.script.measure_error = EngineError("It fell over.", remedy="Restart.")
    run = slipstream("ask", "Hello", "--json")
    assert (run.status, run.json["text"]) == (0, engine.script.text)
    assert "WARNING: The plain rate could not be measured" in run.err


def test_unknown_model(slipstream: Slipstream) -> None:
    run = slipstream("ask", "Hello", "--model", "nothing", "--json")
    assert (run.status, run.json["error"]["kind"]) == (1, "NoModelError")
    assert "`demo`" in run.json["error"]["remedy"]


class InterruptedEngine(FakeEngine):
    """Ctrl-C comes while the engine is waited for, `after` events have come."""

    after = 9

    def step(self) -> bool:
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt
        return super().step()


class TestInterrupted:
    @pytest.fixture
    def engine(self) -> FakeEngine:
        return InterruptedEngine()

    def test_in_an_answer(self, slipstream: Slipstream, engine: FakeEngine) -> None:
        run = slipstream("ask", "Hello", "--json")
        assert run.status == 130
        assert list(run.json) == FIELDS
        assert run.json["finish_reason"] == "cancelled"
        assert 0 < len(run.json["text"]) < len(engine.script.text)
        assert engine.closed

    def test_while_streaming(self, slipstream: Slipstream, engine: FakeEngine) -> None:
        run = slipstream("ask", "Hello")
        assert run.status == 130
        assert engine.script.text.startswith(run.out.rstrip("\n"))
        assert "Traceback" not in run.err

    def test_while_loading(self, slipstream: Slipstream, engine: FakeEngine) -> None:
        engine.after = 1  # type: ignore[attr-defined]
        run = slipstream("ask", "Hello", "--json")
        assert (run.status, run.json["error"]["kind"]) == (130, "Cancelled")
        assert engine.closed


@pytest.mark.parametrize(
    "option", ["--json-schema", "--json-schema-file", "--grammar", "--grammar-file"]
)
@pytest.mark.parametrize(
    ("more", "named"),
    [
        ((), ("any `--verify`", "with a drafter or without")),
        (("--verify", "gpu-sample"), ("`--verify gpu-sample`", "with a drafter or without")),
        (
            ("--no-draft", "--verify", "host-sample"),
            ("`--verify host-sample`", "without a drafter"),
        ),
    ],
)
def test_a_grammar_is_refused_with_what_it_was_asked_for_with(
    slipstream: Slipstream,
    engine: FakeEngine,
    option: str,
    more: tuple[str, ...],
    named: tuple[str, ...],
) -> None:
    """By llama.cpp's names of it, before anything is loaded; and who keeps to one is told."""
    run = slipstream("ask", "?", option, "{}", *more)
    assert run.status == 2
    for part in (f"`{option}`", *named, "llama-server"):
        assert part in run.err
    assert not engine.asked
    assert option not in slipstream("ask", "--help").out


@pytest.mark.parametrize(
    "option", ["--top-k", "--max-tokens", "--ctx", "--penalty-last-n", "--block"]
)
def test_a_number_that_c_would_wrap_is_refused_by_its_name(
    slipstream: Slipstream, engine: FakeEngine, option: str
) -> None:
    """2 to the power of 32, and one: as 32 bits a one."""
    run = slipstream("ask", "?", option, "4294967297")
    assert run.status == 2
    assert "cannot be 4294967297" in run.err
    assert not engine.asked
