from __future__ import annotations

import json
import re

import pytest

from app import catalog, paths
from app.catalog import HubSource
from app.errors import OptionError


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
        assert model.n_ctx is not None
        assert model.max_context is not None
        assert model.n_ctx <= model.max_context


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


@pytest.mark.parametrize("text", ["", "name", "a/b/c", "../b", "a/..", "a b/c", "a/b@", "a/b@x y"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(OptionError, match="hub"):
        HubSource.parse(text)


def test_a_pair_of_the_users_own() -> None:
    pair = catalog.own(HubSource("Some.One/Qwen3.5-4B_tuned"), HubSource("a/b"))
    assert (pair.id, pair.title) == ("some.one-qwen3.5-4b-tuned", "Qwen3.5-4B_tuned")
    assert catalog.own(HubSource("Qwen/Qwen3.5-4B"), None).sampling
