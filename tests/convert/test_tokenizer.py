"""The tokenizer is taken exactly or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFReader

from app.convert import WeightType, convert_target, tokenizer
from app.convert.json_file import JsonFile
from app.convert.pretokenizer import recognise
from app.convert.template import chat_template
from app.errors import CheckpointError, ModelFileError, SlipstreamError, UnsupportedModelError
from tests.convert import tiny
from tests.convert.test_checkpoint import refuse

Change = Callable[[dict[str, Any]], object]

TEXT = {"Sequence": {"id": "A", "type_id": 0}}
START = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}


def template(*single: Any) -> dict[str, Any]:
    """A post-processor; what it says of pairs of texts is nothing to us."""
    return {
        "type": "TemplateProcessing",
        "single": list(single),
        "pair": [TEXT, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            "<|im_start|>": {"id": "<|im_start|>", "ids": [263], "tokens": ["<|im_start|>"]}
        },
    }


def split(t: dict[str, Any]) -> dict[str, Any]:
    return t["pre_tokenizer"]["pretokenizers"][0]


def byte_level(t: dict[str, Any]) -> dict[str, Any]:
    return t["pre_tokenizer"]["pretokenizers"][1]


@pytest.mark.parametrize(
    "change",
    [
        # One token off in a million, and no error anywhere.
        lambda t: split(t)["pattern"].update(
            Regex=tiny.QWEN35_REGEX.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
        ),
        lambda t: split(t)["pattern"].update(Regex=tiny.QWEN35_REGEX.replace(r"[\r\n]*", "")),
        lambda t: split(t).update(pattern={"String": " "}),
        lambda t: split(t).update(behavior="Removed"),
        lambda t: byte_level(t).update(add_prefix_space=True),
        lambda t: byte_level(t).update(use_regex=True),
        lambda t: byte_level(t).update(type="Whitespace"),
        lambda t: t["pre_tokenizer"]["pretokenizers"].pop(0),
        lambda t: t.update(pre_tokenizer=None),
        lambda t: t.update(normalizer=None),
        lambda t: t.update(normalizer={"type": "NFKC"}),
        lambda t: t.update(normalizer={"type": "Lowercase"}),
        lambda t: t.update(normalizer={"type": "Sequence", "normalizers": []}),
        lambda t: t.update(
            normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}
        ),
        lambda t: t.update(normalizer={"type": "Sequence"}),
        lambda t: t.update(post_processor=template()),
        lambda t: t.update(post_processor=template(START, TEXT)),
        lambda t: t.update(post_processor=template(TEXT, TEXT)),
        lambda t: t.update(post_processor=template(7)),
        lambda t: t.update(post_processor={"type": "Sequence", "processors": [template(START)]}),
        lambda t: t.update(post_processor={"type": "Sequence"}),
        lambda t: t["model"].update(type="Unigram"),
        lambda t: t["model"].update(byte_fallback=True),
        lambda t: t["model"].update(ignore_merges=True),
        lambda t: t["model"].update(dropout=0.1),
        lambda t: t.update(model=[]),
    ],
)
def test_another_pre_tokenizer(target: Path, change: Change) -> None:
    tiny.edit_json(target / "tokenizer.json", lambda t: (change(t), None)[1])
    refuse(target, UnsupportedModelError, str(target / "tokenizer.json"))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update(post_processor=None),
        lambda t: t["model"].pop("ignore_merges"),
        lambda t: t.update(post_processor={"type": "Sequence", "processors": [byte_level(t)]}),
        # What transformers 5 saves where nothing is put around a text.
        lambda t: t.update(post_processor=template(TEXT)),
        lambda t: t.update(
            post_processor={"type": "Sequence", "processors": [byte_level(t), template(TEXT)]}
        ),
        lambda t: t.update(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]}),
        # The same rules in other words, as other versions of the tools write them.
        lambda t: split(t)["pattern"].update(Regex=tiny.QWEN35_REGEX + " "),
        lambda t: split(t)["pattern"].update(
            Regex=tiny.QWEN35_REGEX.replace(
                "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?i:'(?:[stmd]|re|ve|ll))"
            )
        ),
        lambda t: t.update(
            pre_tokenizer={"type": "Sequence", "pretokenizers": [t["pre_tokenizer"]]}
        ),
    ],
)
def test_what_makes_no_difference(change: Change) -> None:
    table = tiny.tokenizer_json()
    change(table)
    assert recognise(table, "x") == "qwen35"


def test_saved_anew_by_transformers(target: Path) -> None:
    """As everybody's training ends; the tokens are those of the file that it was read from."""
    from transformers import AutoTokenizer

    tiny.edit_json(target / "tokenizer.json", lambda t: t.update(post_processor=None))
    config = JsonFile.read(target / "config.json")
    before = tokenizer.Tokenizer.read(target, config, 320)
    AutoTokenizer.from_pretrained(target).save_pretrained(target)
    saved = json.loads((target / "tokenizer.json").read_text("utf-8"))
    assert saved["post_processor"]["type"] == "TemplateProcessing"
    after = tokenizer.Tokenizer.read(target, config, 320)
    assert (after.tokens, after.types, after.pre) == (before.tokens, before.types, before.pre)
    assert not any(after.special.add.values())


def test_a_known_neighbour_is_taken_for_what_it_does() -> None:
    """Qwen2's rules, which a fine-tune may have been trained with."""
    table = tiny.tokenizer_json(tiny.QWEN35_REGEX.replace(r"\p{M}", ""))
    assert recognise(table, "x") == "qwen2"


def test_a_file_that_splits_otherwise_than_its_source_is_no_file(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever led to it: here, a merge that is lost on the way."""
    whole = tokenizer._merges
    monkeypatch.setattr(
        tokenizer, "_merges", lambda *of: [merge for merge in whole(*of) if merge != "l l"]
    )
    with pytest.raises(ModelFileError, match="other tokens than") as caught:
        convert_target(target, tmp_path / "out" / "x.gguf", WeightType.BF16)
    assert str(target / "tokenizer.json") in caught.value.message
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "saved",
    [
        {"padding": {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None,
                     "pad_id": 262, "pad_type_id": 0, "pad_token": "<|endoftext|>"}},
        {"truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst",
                        "stride": 0}},
    ],
)  # fmt: skip
def test_how_batches_were_made_is_no_part_of_a_tokenizer(
    target: Path, tmp_path: Path, saved: dict[str, Any]
) -> None:
    tiny.edit_json(target / "tokenizer.json", lambda t: t.update(saved))
    convert_target(target, tmp_path / "x.gguf", WeightType.BF16)


def test_the_regex_is_that_of_transformers(llama_source: Path) -> None:
    """And the one that llama.cpp quotes for `qwen35`."""
    from transformers.models.qwen3_5.tokenization_qwen3_5 import PRETOKENIZE_REGEX

    assert tiny.QWEN35_REGEX == PRETOKENIZE_REGEX
    quoted = json.dumps(tiny.QWEN35_REGEX)
    assert quoted in (llama_source / "src" / "llama-vocab.cpp").read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t["model"].pop("vocab"), ["no vocabulary"]),
        (lambda t: t["model"]["vocab"].update(x=320), ["320", "320 rows"]),
        (lambda t: t["model"]["vocab"].update(x=3), ["one id"]),
        (lambda t: t["model"]["vocab"].update(x=-1), ["token id"]),
        (lambda t: t["model"]["vocab"].update(x="3"), ["token id"]),
        (lambda t: t["model"].update(merges=[]), ["no merges"]),
        (lambda t: t["model"]["merges"].append(["q", "z"]), ["['q', 'z']"]),
        (lambda t: t["model"]["merges"].append(["q"]), ["['q']", "pair"]),
        (lambda t: t["model"]["merges"].append(["q", 7]), ["['q', 7]", "pair"]),
        # A hole that the tokenizer library would close by giving other ids.
        (lambda t: t["added_tokens"].pop(0), ["<|im_start|>", "263", "262"]),
        (lambda t: t["added_tokens"][0].update(id=400), ["<|endoftext|>", "400", "262"]),
        (lambda t: t["added_tokens"][0].pop("content"), ["None"]),
        (lambda t: t["added_tokens"][0].update(content=["x"]), ["['x']"]),
        (lambda t: t["added_tokens"].append("x"), ["added_tokens", "objects"]),
        (lambda t: t.update(added_tokens=7), ["added_tokens", "7"]),
        (lambda t: t["added_tokens"][0].update(content="\udcff"), ["surrogate"]),
    ],
)
def test_broken_vocabulary(target: Path, change: Change, words: list[str]) -> None:
    tiny.edit_json(target / "tokenizer.json", lambda t: (change(t), None)[1])
    refuse(target, CheckpointError, "tokenizer.json", *words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(pad_token="<|nope|>"), ["<|nope|>"]),
        (lambda c: c.update(added_tokens_decoder={"262": {"content": "<a>"}}), ["disagree", "262"]),
        (lambda c: c.update(added_tokens_decoder={"299": {"content": "<a>"}}), ["disagree", "299"]),
        (lambda c: c.update(added_tokens_decoder={"262": "<a>"}), ["disagree", "262"]),
        (lambda c: c.update(additional_special_tokens=7), ["additional_special_tokens"]),
        (lambda c: c.update(chat_template=7), ["chat_template"]),
        (lambda c: c.update(chat_template="\udcff"), ["chat_template"]),
        (lambda c: c.update(chat_template=[{"name": "x"}]), ["chat_template"]),
    ],
)
def test_settings_that_contradict(target: Path, change: Change, words: list[str]) -> None:
    (target / "chat_template.jinja").unlink()
    tiny.edit_json(target / "tokenizer_config.json", lambda t: (change(t), None)[1])
    refuse(target, CheckpointError, "tokenizer_config.json", *words)


@pytest.mark.parametrize("content", ["", "{}", "[1]", "{'a': 1}"])
def test_broken_file(target: Path, content: str) -> None:
    (target / "tokenizer.json").write_text(content)
    kind: type[SlipstreamError] = UnsupportedModelError if content == "{}" else CheckpointError
    refuse(target, kind, "tokenizer.json")


def test_role_outside_of_the_vocabulary(target: Path) -> None:
    (target / "tokenizer_config.json").unlink()
    tiny.edit_json(target / "config.json", lambda c: c.update(eos_token_id=320))
    refuse(target, CheckpointError, "320")


def test_a_space_in_a_merge_is_written_as_its_byte(target: Path, tmp_path: Path) -> None:
    def spaced(t: dict[str, Any]) -> None:
        t["model"]["vocab"] |= {" ": 262, "h e": 263, "h ": 264}
        t["model"]["merges"] += [["h", " "], ["h ", "e"]]
        for token in t["added_tokens"]:
            token["id"] += 3

    tiny.edit_json(target / "tokenizer.json", spaced)
    convert_target(target, tmp_path / "x.gguf", WeightType.F32)
    merges = GGUFReader(tmp_path / "x.gguf").fields["tokenizer.ggml.merges"].contents()
    assert merges[-2:] == ["h Ġ", "hĠ e"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [("jinja", tiny.TEMPLATE), ("config", tiny.TEMPLATE), ("none", None)],
)
@pytest.mark.parametrize("tokenizer_config", [True, False])
def test_chat_template(
    tmp_path: Path, place: str, expected: str | None, tokenizer_config: bool
) -> None:
    folder = tiny.write_target(tmp_path / "t", template=place, tokenizer_config=tokenizer_config)
    convert_target(folder, tmp_path / "x.gguf", WeightType.F32)
    field = GGUFReader(tmp_path / "x.gguf").fields.get("tokenizer.chat_template")
    if place == "config" and not tokenizer_config:
        expected = None
    assert (field.contents() if field else None) == expected


def test_of_several_templates_the_one_that_transformers_takes(tmp_path: Path) -> None:
    folder = tiny.write_target(tmp_path / "t", template="none")
    taken = []
    for file, content in (
        ("tokenizer_config.json", None),
        ("chat_template.json", json.dumps({"chat_template": "processor"})),
        ("chat_template.jinja", "jinja"),
    ):
        if content is None:
            tiny.edit_json(folder / file, lambda c: c.update(chat_template="config"))
        else:
            (folder / file).write_text(content)
        settings = JsonFile.read(folder / "tokenizer_config.json")
        taken.append(chat_template(folder, settings))
    assert taken == ["config", "processor", "jinja"]


def test_a_template_that_is_no_utf8(target: Path) -> None:
    (target / "chat_template.jinja").write_bytes(b"{{ '\xff' }}")
    error = refuse(target, CheckpointError, "chat_template.jinja", "0xff")
    assert "UTF-8" in error.remedy


@pytest.mark.parametrize(
    ("ids", "generation", "expected"),
    [
        ([262, 264], {}, 264),  # Qwen's end of a turn, wherever it stands
        ([262, 263], {}, 262),
        (None, {"eos_token_id": [263, 264]}, 264),
        (None, {"eos_token_id": 262}, 262),
        (None, {}, 264),
    ],
)
def test_an_end_token_is_found_where_there_is_one(
    target: Path, tmp_path: Path, ids: Any, generation: dict[str, Any], expected: int
) -> None:
    tiny.edit_json(target / "tokenizer_config.json", lambda c: c.pop("eos_token"))
    tiny.edit_json(target / "config.json", lambda c: c["text_config"].update(eos_token_id=ids))
    tiny.write_json(target / "generation_config.json", generation)
    convert_target(target, tmp_path / "x.gguf", WeightType.F32)
    field = GGUFReader(tmp_path / "x.gguf").fields["tokenizer.ggml.eos_token_id"]
    assert field.contents() == expected


def test_without_any_end_token_it_is_refused(target: Path) -> None:
    tiny.edit_json(target / "tokenizer_config.json", lambda c: c.pop("eos_token"))
    tiny.edit_json(target / "config.json", lambda c: c["text_config"].update(eos_token_id=None))
    (target / "generation_config.json").unlink()
    for name in ("tokenizer.json", "chat_template.jinja"):
        text = (target / name).read_text("utf-8").replace("<|im_end|>", "<|stop|>")
        (target / name).write_text(text, "utf-8")
    refuse(target, CheckpointError, "which token ends an answer")
