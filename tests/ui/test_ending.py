"""Told to end, it ends: soon, with status 0, and with what came of an answer kept.

Once at each moment here; `python -m tests.ui.endings` does it fifty times.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.hub import running
from tests.ui.endings import MOMENTS, WAYS, Endings


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endings]:
    """The guide is converted by the first one that loads it."""
    with running() as hub:
        yield Endings(tmp_path_factory.mktemp("ending"), hub)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal there")
@pytest.mark.parametrize(
    ("moment", "way"),
    [
        *((moment, WAYS[(at + 2) % len(WAYS)]) for at, moment in enumerate(MOMENTS)),
        ("", ""),  # what the last ones left of a model is gone on with
    ],
)
def test_at_any_moment(endings: Endings, moment: str, way: str) -> None:
    assert not endings.one(moment, way).fault
