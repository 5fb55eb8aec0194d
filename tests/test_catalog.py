from __future__ import annotations

import re

from app import catalog


def test_ids_are_unique_names_of_folders() -> None:
    ids = [model.id for model in catalog.MODELS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) for name in ids)


def test_find() -> None:
    assert catalog.find("demo") is catalog.DEMO
    assert catalog.find("DEMO") is None


def test_what_cannot_be_had_says_so() -> None:
    assert catalog.DEMO.bundled
    assert not catalog.QWEN35_4B.bundled
    for model in catalog.MODELS:
        if model.bundled:
            assert (model.draft, model.coming) == (None, "")
        else:
            assert model.target is not None
            assert model.draft is not None
            pinned = model.target.revision and model.draft.revision
            assert pinned or model.coming  # what is not pinned is not downloaded


def test_a_pinned_revision_is_a_whole_commit() -> None:
    sources = [s for m in catalog.MODELS for s in (m.target, m.draft) if s is not None]
    assert all(s.revision is None or re.fullmatch("[0-9a-f]{40}", s.revision) for s in sources)
