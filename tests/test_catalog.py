from __future__ import annotations

import json
import re
from math import prod
from pathlib import Path

import pytest

from app import catalog, paths
from app.catalog import HubSource
from app.convert import Recipe, WeightType, default_recipe, qwen35
from app.convert.checkpoint import read_config
from app.convert.mix import choose_kinds, order
from app.convert.qwen35 import Qwen35
from app.convert.qwen35_tensors import expected_tensors
from app.convert.weights import bytes_of
from app.errors import OptionError
from tests.convert import full_size, tiny


def test_ids_are_unique_names_of_folders() -> None:
    ids = [model.id for model in catalog.MODELS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) for name in ids)


def test_find() -> None:
    assert catalog.find("demo") is catalog.DEMO
    assert catalog.find("DEMO") is None
    known = catalog.find("qwen3.5-4b")
    assert known is not None
    assert known.target == HubSource("Qwen/Qwen3.5-4B", None, "apache-2.0")
    assert known.draft is not None
    assert known.draft.repo == "z-lab/Qwen3.5-4B-DFlash"


def test_each_can_be_got_and_knows_how_its_vendor_samples() -> None:
    for model in catalog.MODELS:
        if model.bundled:
            continue
        assert model.type in catalog.TYPES
        assert set(model.sampling) == {"thinking", "coding", "plain"}
        assert model.max_context is not None


def test_a_pinned_revision_is_a_whole_commit() -> None:
    sources = [s for m in catalog.MODELS for s in (m.target, m.draft) if s is not None]
    assert all(s.revision is None or re.fullmatch("[0-9a-f]{40}", s.revision) for s in sources)


def test_what_is_not_known_is_null_in_the_file() -> None:
    table = json.loads((paths.assets() / "catalog.json").read_text(encoding="utf-8"))
    sources = [m[role] for m in table["models"] for role in ("target", "draft") if m[role]]
    assert all(set(source) == {"repo", "revision", "licence"} for source in sources)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("owner/name", HubSource("owner/name")),
        (" owner/name@abc1 ", HubSource("owner/name", "abc1")),
        ("https://huggingface.co/owner/name/", HubSource("owner/name")),
    ],
)
def test_sources_by_name(text: str, source: HubSource) -> None:
    assert HubSource.parse(text) == source


def test_a_folder_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owner" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert HubSource.parse("./owner/name") == HubSource(str(tmp_path / "owner" / "name"))
    assert HubSource.parse("owner/name") == HubSource("owner/name")


@pytest.mark.parametrize("text", ["", "name", "a/b/c", "../b", "a/..", "a b/c", "a/b@", "a/b@x y"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(OptionError, match="hub"):
        HubSource.parse(text)


def test_a_pair_of_the_users_own() -> None:
    pair = catalog.own(HubSource("Some.One/Qwen3.5-4B_tuned"), HubSource("a/b"))
    assert (pair.id, pair.title) == ("some.one-qwen3.5-4b-tuned", "Qwen3.5-4B_tuned")
    assert catalog.own(HubSource("Qwen/Qwen3.5-4B"), None).sampling


def test_what_a_type_comes_to_is_what_the_converter_plans(tmp_path: Path) -> None:
    """Of a target with the shapes of Qwen3.5-4B."""
    config = tiny.target_config(full_size.SHAPE)
    config["text_config"]["rope_parameters"]["mrope_section"] = [11, 11, 10]
    tiny.write_json(tmp_path / "config.json", config)
    model = Qwen35.read(read_config(tmp_path, qwen35.ARCHITECTURES))
    tensors = [(e.name, e.stored_shape or e.shape) for e in expected_tensors(model)]
    tensors = sorted((t for t in tensors if t[0] != "output.weight"), key=lambda t: order(t[0]))
    assert full_size.converted_bytes(32) == sum(2 * prod(shape) for _, shape in tensors)
    for one in catalog.STORED:
        kinds = choose_kinds(tensors, WeightType(one.type), Recipe(one.recipe))
        sizes = (bytes_of(shape, kind) for (_, shape), kind in zip(tensors, kinds, strict=True))
        assert one.bytes == sum(sizes), one


def test_the_default_recipe_is_the_nearer_one_at_5_per_cent_more() -> None:
    for kind in catalog.TYPES:
        recipes = catalog.stored(kind)
        least = min(one.bytes for one in recipes.values())
        near = [one for one in recipes.values() if one.bytes <= 1.05 * least]
        best = min(near, key=lambda one: one.divergence).recipe
        assert next(iter(recipes)) == best == default_recipe(WeightType(kind))
