"""llama-server with the demo pair: the same greedy text as without a drafter, in every state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.binding import NativePair
from app.library import Pair
from tests.native.server.running import N_CTX, Reply, Server, arguments, check_same

BLOCK = 16  # the drafter's
LENGTHS = (1, 2, 15, 16, 17, 511, 512, 513, 1024, 1025, 4097)
DELIMITERS = [
    {"role": role, "delimiter": f"<|im_start|>{role}\n"} for role in ("user", "assistant")
]
FILLER = "A round is one draft and one verify. " * 600


@pytest.fixture(scope="module")
def drafted(tools: Path, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("drafted") / "log"
    more = ("--slot-save-path", log.parent)
    with Server(tools, arguments(pair, *more), log) as server:
        yield server


@pytest.fixture(scope="module")
def prompts(plain: Server) -> dict[int, list[int]]:
    """A prompt of each length, of token ids."""
    filler, tail = plain.tokens(FILLER), plain.tokens(" DFlash is a")
    return {
        length: (filler[: max(0, length - len(tail))] + tail)[-length:] for length in (3, *LENGTHS)
    }


@pytest.fixture(scope="module")
def expected(plain: Server, prompts: dict[int, list[int]]) -> dict[int, Reply]:
    return {length: plain.cold(prompt) for length, prompt in prompts.items()}


def test_the_draft_length_is_the_drafters_block(drafted: Server, prompts: dict[int, Any]) -> None:
    reply = drafted.cold(prompts[512], 200)
    rounds = len(reply.ids) - 1 - reply.accepted
    # near the end of the answer fewer are asked for
    assert (BLOCK - 1) * (rounds - 2) <= reply.drafted <= (BLOCK - 1) * rounds


@pytest.mark.parametrize("n_ubatch", [512, 64, 16, 10, 8])
def test_prompts_of_any_length_against_the_micro_batch(
    n_ubatch: int,
    tools: Path,
    pair: Pair,
    plain: Server,
    prompts: dict[int, list[int]],
    expected: dict[int, Reply],
    tmp_path: Path,
) -> None:
    # the longest once more than needed: with the default, and with one that cuts it often
    lengths = LENGTHS if n_ubatch in (512, 10) else LENGTHS[:-1]
    with Server(tools, arguments(pair, "-ub", n_ubatch), tmp_path / "log") as server:
        for length in lengths:
            for n in (length, 3):
                reply = server.complete(prompts[n])
                check_same(plain, prompts[n], expected[n], reply)
                assert reply.drafted > 0, n


@pytest.fixture(scope="module")
def questions(plain: Server, heldout: dict[str, list[Any]]) -> list[list[int]]:
    """Twenty prompts as the chat template renders them: well drafted ones, and free text."""
    guide = [entry["prompt"] for entry in heldout["guide"]]
    chosen = guide[:: len(guide) // 10][:10] + heldout["free_text"][:10]
    assert len(chosen) == 20
    return [plain.tokens(plain.render(prompt)) for prompt in chosen]


def test_greedy_text_is_what_it_is_without_a_drafter(
    drafted: Server, plain: Server, questions: list[list[int]]
) -> None:
    accepted = 0
    for question in questions:
        reply = drafted.complete(question, 96)
        check_same(plain, question, plain.complete(question, 96), reply)
        accepted += reply.accepted
    assert accepted > 0


def test_a_round_is_the_engines_and_a_pass_more_for_features(
    tools: Path, pair: Pair, questions: list[list[int]], tmp_path: Path
) -> None:
    """Counted, since no time is the same on two machines. Both take features where the target
    left them, the engine's drafter in the pass that drafts. A longer prompt's go over the
    host."""
    prompt = questions[0] + questions[-1]
    with Server(tools, arguments(pair), tmp_path / "log") as server:
        for n in (16, 16, 64):
            server.cold(prompt, n)
    said = (tmp_path / "log").read_text("utf-8", "replace")
    counted = re.findall(r"#gen drafts = +(\d+),.*#passes = (\d+), #host rows = (\d+)", said)
    first, second, third = (tuple(map(int, so_far)) for so_far in counted)
    short = [now - then for now, then in zip(second, first, strict=True)]
    long = [now - then for now, then in zip(third, second, strict=True)]
    rounds, passes, rows = (b - a for a, b in zip(short, long, strict=True))  # less the prompt
    assert rounds > 2
    assert passes == 2 * rounds
    assert rows == 0
    assert short[2] == long[2] > 16

    native = NativePair(pair.target, pair.draft, n_ctx=N_CTX, kv_type="f16", threads=1)
    try:
        native.prompt(prompt)
        engine = [native.round(15) for _ in range(3)]
    finally:
        native.close()
    assert {(round_.graphs_run, round_.syncs) for round_ in engine} == {(2, 1)}
    assert {round_.bytes_to_host for round_ in engine} == {4 * (15 + 16)}  # tokens alone


def test_two_slots_at_once(
    tools: Path,
    pair: Pair,
    plain: Server,
    questions: list[list[int]],
    prompts: dict[int, list[int]],
    tmp_path: Path,
) -> None:
    """One that accepts much beside one that accepts little, so that their states go apart."""
    much, little = questions[:6], [prompts[length] for length in (17, 511)]
    wanted = [plain.cold(question, 96) for question in (*much, *little)]
    log = tmp_path / "log"
    with Server(tools, arguments(pair, "-np", 2, "--metrics"), log) as server:

        def ask(chosen: list[list[int]]) -> list[Reply]:
            return [server.cold(question, 96) for question in chosen]

        with ThreadPoolExecutor(2) as pool:
            got = [reply for part in pool.map(ask, (much, little)) for reply in part]
        for question, expected, reply in zip((*much, *little), wanted, got, strict=True):
            check_same(plain, question, expected, reply)
        assert _metric(server, "n_busy_slots_per_decode") > 1.2
    assert rate(got[: len(much)]) > 2 * rate(got[len(much) :])


def test_two_slots_that_do_not_fit_in_one_micro_batch(
    tools: Path, pair: Pair, plain: Server, questions: list[list[int]], tmp_path: Path
) -> None:
    chosen = questions[:2]
    with Server(tools, arguments(pair, "-np", 2, "-ub", 18), tmp_path / "log") as server:
        with ThreadPoolExecutor(2) as pool:
            got = list(pool.map(lambda question: server.cold(question, 48), chosen))
        for question, reply in zip(chosen, got, strict=True):
            check_same(plain, question, plain.cold(question, 48), reply)
            assert reply.accepted > 0


def rate(replies: list[Reply]) -> float:
    return sum(reply.accepted for reply in replies) / sum(reply.drafted for reply in replies)


def _metric(server: Server, name: str) -> float:
    for line in server.get("/metrics").splitlines():
        if line.startswith(f"llamacpp:{name} "):
            return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def test_second_turn_regenerate_and_edit_equal_a_cold_run(drafted: Server, plain: Server) -> None:
    told = "My password is walnut-58. Please remember it."
    said = "I will remember it: your password is walnut-58."
    ask = "What is my password?"
    edited = [turn.replace("walnut-58", "lemon-77") for turn in (told, said)]
    turns = [
        (told,),
        (told, said, ask),
        (told, said, ask),  # regenerate
        (*edited, ask),
        ("Count from 3 to 9.",),  # another chat between
        (told, said, ask),
    ]
    reused = 0
    for chat in turns:
        prompt = plain.tokens(plain.render(*chat))
        reply = drafted.complete(prompt, 48)
        check_same(plain, prompt, plain.cold(prompt, 48), reply)
        reused += reply.reused
        if chat[-1] == ask:
            assert ("lemon-77" if chat[0] == edited[0] else "walnut-58") in reply.text
    assert reused > 0


@pytest.mark.parametrize("think", [True, False])
def test_a_chat_goes_on_from_what_stayed_on_the_device(
    tools: Path, pair: Pair, plain: Server, tmp_path: Path, think: bool
) -> None:
    """The next turn, another last question, and a turn behind another chat read what is new.
    What opens an answer, with an empty thought or without, is in no later prompt."""
    log = tmp_path / "log"
    [begins] = plain.tokens("<|im_start|>")
    with Server(tools, arguments(pair), log) as server:

        def asked(*chat: str) -> tuple[Reply, int, int]:
            """(reply, where its answer is opened, length of its prompt)"""
            prompt = plain.tokens(plain.render(*chat, think=think))
            reply = server.complete(prompt, 24, message_delimiters=DELIMITERS)
            check_same(plain, prompt, plain.cold(prompt, 24), reply)
            return reply, len(prompt) - 1 - prompt[::-1].index(begins), len(prompt)

        first, opened, n_first = asked("My password is walnut-58. Please remember it.")
        begun = ("My password is walnut-58. Please remember it.", first.text)
        second, _, n_second = asked(*begun, "What is my password?")
        assert opened <= second.reused < n_second
        other, opened, n_other = asked(*begun, "Say it once more, please.")
        assert n_first < other.reused < n_other  # the first answer too
        asked("Count from 3 to 9.")
        begun = (*begun, "Say it once more, please.", other.text)
        back, _, _ = asked(*begun, "Thank you. And what is DFlash?")
        assert back.reused >= opened
    said = log.read_text("utf-8", "replace")
    assert said.count("on the device (pos_min") >= 6
    assert "on the host (pos_min" not in said


def test_a_chat_by_its_own_path_goes_on_too(drafted: Server) -> None:
    """`/v1/chat/completions`, where the server knows the template's messages by itself."""

    def asked(*turns: str) -> dict[str, Any]:
        roles = ("user", "assistant")
        chat = [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]
        return drafted.post(
            "/v1/chat/completions",
            {
                "messages": chat,
                "max_tokens": 24,
                "temperature": 0,
                "chat_template_kwargs": {"enable_thinking": False},
            },
        )

    question = "My password is walnut-58. Please remember it. " * 4
    first = asked(question)
    n_first = first["timings"]["cache_n"] + first["timings"]["prompt_n"]
    said = first["choices"][0]["message"]["content"]
    second = asked(question, said, "What is my password?")
    assert second["timings"]["cache_n"] >= n_first - 12  # what opens an answer


def test_a_raw_prompt_goes_on_where_the_one_before_it_was_left(
    drafted: Server, plain: Server, prompts: dict[int, list[int]]
) -> None:
    """Several texts behind one beginning: from the third on it is not read again."""
    beginning = prompts[1025][:600]
    for i, word in enumerate(("red", "green", "blue")):
        prompt = [*beginning, *plain.tokens(f" {word} is a colour." * 20)]
        reply = drafted.complete(prompt, 24)
        check_same(plain, prompt, plain.cold(prompt, 24), reply)
        assert (reply.reused >= len(beginning)) == (i == 2), i


def test_states_on_the_device_are_counted_and_given_back(
    tools: Path, pair: Pair, plain: Server, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    prompt = plain.tokens(plain.render("What is DFlash?", "A block.", "And what is a block?"))
    with Server(tools, arguments(pair, "--slot-save-path", tmp_path), log) as server:
        server.complete(prompt, 24, message_delimiters=DELIMITERS)
        server.post("/slots/0?action=erase", {})
        server.complete(prompt, 24, message_delimiters=DELIMITERS)
    said = log.read_text("utf-8", "replace")
    taken = said.count("allocated '")
    assert taken >= 4, "two states of the target, twice"
    assert said.count("gave back a state of") >= taken / 2


@pytest.mark.slow
def test_a_fit_leaves_room_for_what_stays_on_a_device(
    tools: Path, pair: Pair, lavapipe: dict[str, str], tmp_path: Path
) -> None:
    """Of both models, both states of both sequences: before any layer gets its place."""
    log = tmp_path / "log"
    more = ("-dev", "Vulkan0", "-ngl", 99, "-ngld", 99, "-np", 2, "-fit", "on")
    with Server(tools, arguments(pair, *more), log, lavapipe) as server:
        chat = server.render("What is DFlash?", "A block.", "And what is a block?")
        prompt = server.tokens(chat)
        with ThreadPoolExecutor(2) as pool:
            ask = partial(server.complete, prompt, 4, message_delimiters=DELIMITERS)
            [one.result() for one in [pool.submit(ask) for _ in range(2)]]
    said = log.read_text("utf-8", "replace")
    left, taken = (
        [float(mib) for mib in re.findall(pattern, said)]
        for pattern in (
            r"room for ([0-9.]+) MiB of states in 'Vulkan0'",
            r"allocated 'Vulkan0' buffer ([0-9.]+) MiB",
        )
    )
    assert len(taken) >= 4
    assert len(left) == 2, "target and drafter"
    assert sum(taken) <= sum(left) + 0.001 * len(taken)
    assert max(taken) * 4 >= 0.5 * left[0], "not more than that"


def test_a_long_prompt_has_a_checkpoint_on_the_host_too(
    tools: Path, pair: Pair, plain: Server, prompts: dict[int, list[int]], tmp_path: Path
) -> None:
    """Where a whole batch was read: what is changed far behind is not read from nothing."""
    prompt = prompts[1025]
    changed = [*prompt[:700], *prompt[:300]]
    with Server(tools, arguments(pair, "-b", 512), tmp_path / "log") as server:
        for asked in (prompt, changed):
            reply = server.complete(asked, 24)
            check_same(plain, asked, plain.cold(asked, 24), reply)
        assert reply.reused >= 500
    assert "on the host (pos_min" in (tmp_path / "log").read_text("utf-8", "replace")


def saved(drafted: Server, questions: list[list[int]], filename: str) -> list[int]:
    """The tokens of a question and 16 of its answer, after which the slot was saved."""
    first = drafted.cold(questions[0], 16)
    drafted.post("/slots/0?action=save", {"filename": filename})
    return [*questions[0], *first.ids]


def test_a_saved_slot_goes_on_where_it_was(
    drafted: Server, plain: Server, questions: list[list[int]]
) -> None:
    """Text and acceptance alike: the drafter's own state is saved too."""
    further, other = saved(drafted, questions, "slot"), questions[2]
    drafted.cold(other, 48)
    unbroken = drafted.cold(further, 64)
    drafted.cold(other, 48)
    restored = drafted.post("/slots/0?action=restore", {"filename": "slot"})
    assert restored["n_restored"] == len(further) - 1
    reply = drafted.complete(further, 64)
    assert reply.reused == len(further) - 1
    check_same(plain, further, plain.cold(further, 64), reply)
    assert reply.accepted >= 0.8 * unbroken.accepted > 0


def test_a_restored_slot_without_the_drafters_state_gives_the_same_text(
    drafted: Server, plain: Server, questions: list[list[int]]
) -> None:
    further, other = saved(drafted, questions, "alone"), questions[2]
    (drafted.log.parent / "alone.draft").unlink()
    drafted.cold(other, 48)  # the drafter's cache holds something else, and more of it
    drafted.post("/slots/0?action=restore", {"filename": "alone"})
    reply = drafted.complete(further, 64)
    assert reply.reused == len(further) - 1
    check_same(plain, further, plain.cold(further, 64), reply)


def test_a_server_whose_micro_batch_has_no_room_for_drafts_answers_plainly(
    tools: Path, pair: Pair, plain: Server, questions: list[list[int]], tmp_path: Path
) -> None:
    with Server(tools, arguments(pair, "-ub", 2), tmp_path / "log") as server:
        reply = server.cold(questions[0], 16)
        check_same(plain, questions[0], plain.cold(questions[0], 16), reply)
        assert reply.drafted == 0
    assert "raise -b and -ub for longer drafts" in (tmp_path / "log").read_text("utf-8", "replace")
