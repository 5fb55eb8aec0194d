"""Each file equals, tensor for tensor and key for key, what the tree's own converter writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader, ReaderTensor

from app.convert import Recipe, convert_draft, convert_target
from tests.convert.cases import CASES, DEMO, Case

# Keys that only this converter writes. All else is equal.
OURS = {
    "slipstream.format",
    "slipstream.recipe",
    "slipstream.role",
    "slipstream.source.name",
    "slipstream.source.config_sha256",
    "slipstream.pair.target_config_sha256",
    "slipstream.pair.tokenizer_sha256",
    "slipstream.pair.target_layers",
    "slipstream.pair.target_hidden",
    "slipstream.pair.target_vocab",
}
NORMS = ("_norm.weight",)


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def files(
    request: pytest.FixtureRequest,
    sources: dict[str, Path],
    oracle_files: dict[str, Path],
    tmp_path: Path,
) -> tuple[Case, GGUFReader, GGUFReader]:
    case: Case = request.param
    output = tmp_path / "ours.gguf"
    source = sources[case.name]
    if case.target:
        convert_draft(source, sources[case.target], output, case.weight_type, recipe=Recipe.LLAMA)
    else:
        convert_target(source, output, case.weight_type, recipe=Recipe.LLAMA)
    return case, GGUFReader(output), GGUFReader(oracle_files[case.name])


def test_equals_the_trees_converter(files: tuple[Case, GGUFReader, GGUFReader]) -> None:
    case, ours, oracle = files
    compare_tensors(ours.tensors, oracle.tensors, case.dtype)
    compare_keys(case, keys_of(ours), keys_of(oracle))


def compare_tensors(ours: list[ReaderTensor], oracle: list[ReaderTensor], dtype: str) -> None:
    """By name: ours are in the order of layers, the tree's in that of the shards."""
    ours, oracle = (sorted(tensors, key=lambda t: t.name) for tensors in (ours, oracle))
    assert [outline(t) for t in ours] == [outline(t) for t in oracle]
    for mine, theirs in zip(ours, oracle, strict=True):
        if dtype == "F16" and mine.name.endswith((".ssm_a", *NORMS)):
            # Computed by the tree in half precision; what is right is in test_qwen35_tensors.py.
            assert np.allclose(mine.data, theirs.data, rtol=2**-10, atol=0), mine.name
        elif mine.name.endswith(".ssm_a"):
            # torch leaves exp to MKL, whose last bit depends on the processor. What is
            # exact is tested in test_qwen35_tensors.py.
            bits = [t.data.view(np.int32).astype(np.int64) for t in (mine, theirs)]
            assert np.abs(bits[0] - bits[1]).max() <= 1, mine.name
        else:
            assert mine.data.tobytes() == theirs.data.tobytes(), mine.name


def compare_keys(case: Case, ours: dict[str, Any], oracle: dict[str, Any]) -> None:
    extra = set(OURS)
    if "dflash.attention.sliding_window" in oracle:
        extra.add("dflash.attention.sliding_causal")
    if "tokenizer.chat_template" not in oracle and "tokenizer.chat_template" in ours:
        # The tree drops chat_template.jinja where there is no tokenizer_config.json.
        assert case.name == "no-tokenizer-config" or case.name.startswith("demo-")
        extra.add("tokenizer.chat_template")
    assert set(ours) - set(oracle) == extra
    assert {key: ours[key] for key in oracle if key in ours} == oracle


def outline(tensor: ReaderTensor) -> tuple[str, list[int], int]:
    return tensor.name, tensor.shape.tolist(), tensor.tensor_type


def keys_of(reader: GGUFReader) -> dict[str, Any]:
    """Value and types of each key. `GGUF.*` are counts of the file, not keys in it."""
    return {
        name: (field.types, field.contents())
        for name, field in reader.fields.items()
        if not name.startswith("GGUF.")
    }


def test_the_demo_pair_is_among_the_cases() -> None:
    assert (DEMO / "target" / "config.json").is_file()
    assert sum(case.name.startswith("demo-") for case in CASES) == 5
