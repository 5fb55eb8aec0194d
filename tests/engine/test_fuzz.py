"""A few hundred damaged models end as answers or errors, and so does each kind found before.

`dev.py fuzz` tries 20,000.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine import fuzz
from tests.engine.damage import KINDS

TIMES = 500

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="counts and bounds processes as Linux does"
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    fuzz.make_pairs(folder)
    return folder


@pytest.mark.timeout(1800)  # beside whatever else runs
def test_no_damage_ends_the_process(pairs: Path) -> None:
    done = list(fuzz.tries(pairs, 0, TIMES, fuzz.WORKERS))
    assert not [str(made) for made in done if made.fault]
    assert sorted(made.seed for made in done) == list(range(TIMES))
    # Or nothing is shown: each kind was tried, some were harmless, and most were not.
    assert {kind for made in done for kind in made.kinds} == set(KINDS)
    outcomes = {made.outcome for made in done}
    assert outcomes >= {"answered", "ModelFileError", "PairMismatchError", "NonFiniteError"}
    assert all(made.outcome == "answered" for made in done if made.kinds == ("whole",))
