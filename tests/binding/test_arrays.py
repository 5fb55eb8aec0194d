"""Numbers on their way into C."""

from __future__ import annotations

import pytest

from app.binding.arrays import ints
from app.errors import OptionError


@pytest.mark.parametrize("wrong", [2**31, 2**32 + 5, -(2**31) - 1])
def test_a_token_that_would_wrap_is_refused(wrong: int) -> None:
    with pytest.raises(OptionError, match=str(wrong)):
        ints([1, wrong])


def test_tokens_that_fit_pass() -> None:
    assert list(ints([0, 2**31 - 1, -1])) == [0, 2**31 - 1, -1]
