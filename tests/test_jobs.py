from __future__ import annotations

import pytest

from app.jobs import CancelToken, JobCancelled


def test_a_job_goes_on_until_its_token_is_set() -> None:
    CancelToken().check()
    assert not CancelToken().cancelled


def test_a_set_token_stops_its_job() -> None:
    token = CancelToken()
    token.cancel()
    assert token.cancelled
    with pytest.raises(JobCancelled):
        token.check()
