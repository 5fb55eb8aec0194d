"""Desktops for the tests here; without the programs they need they are skipped, in CI they fail."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.ui.desktop.session import Desktop, lacks

REQUIRED = "SLIPSTREAM_REQUIRE_DESKTOP"  # set where a skipped test would hide a fault: in CI

OpenDesktop = Callable[..., Desktop]


@pytest.fixture
def open_desktop() -> Iterator[OpenDesktop]:
    """`open_desktop("ibus-daemon", size=(1366, 768), scale=1.5)`: with the programs it names."""
    with ExitStack() as stack:

        def open_it(
            *programs: str, size: tuple[int, int] = (1280, 800), scale: float = 1.0
        ) -> Desktop:
            if missing := lacks(programs):
                if os.environ.get(REQUIRED):
                    pytest.fail(missing)
                pytest.skip(missing)
            # Sockets lie in it, whose paths must be short.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            return stack.enter_context(Desktop(folder / "desktop", size, scale))

        yield open_it
