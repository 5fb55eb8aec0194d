from __future__ import annotations

import pytest

from app.jobs import CancelToken, JobCancelled


def test_a_token_stops_its_job_once_set() -> None:
    token = CancelToken()
    token.check()
    assert not token.cancelled
    token.cancel()
    assert token.cancelled
    with pytest.raises(JobCancelled):
        token.check()
