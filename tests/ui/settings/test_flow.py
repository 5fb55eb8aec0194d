"""One owner of the settings: it tells what changed, and writes it elsewhere."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QObject

from app.errors import OptionError, OutputError, SlipstreamError
from app.settings import Settings
from app.ui.settings.flow import SettingsFlow
from tests.ui.conftest import LONGEST_WAIT_MS, WaitUntil

LONGEST_WAIT_S = LONGEST_WAIT_MS / 1000


class Slow:
    """A disk that writes when it is let."""

    def __init__(self) -> None:
        self.written: list[Settings] = []
        self.began = threading.Event()
        self.let = threading.Event()

    def save(self, settings: Settings) -> None:
        self.began.set()
        assert self.let.wait(LONGEST_WAIT_S)
        self.written.append(settings)


def test_only_what_changed_is_told(owner: QObject) -> None:
    flow = SettingsFlow(Settings(), lambda _: None, owner)
    told: list[frozenset[str]] = []
    thought: list[bool] = []
    flow.changed.connect(told.append)
    flow.follow("think", thought.append)
    flow.change(top_k=7, think=True, theme="system")
    flow.change(top_k=7)
    flow.change(top_k=8)
    assert told == [{"top_k", "think"}, {"top_k"}]
    assert thought == [False, True]


def test_a_bad_value_changes_nothing(owner: QObject) -> None:
    flow = SettingsFlow(Settings(), lambda _: None, owner)
    with pytest.raises(OptionError):
        flow.change(top_p=2.0, think=True)
    assert flow.current == Settings()


def test_they_are_written_off_the_main_thread(owner: QObject, wait_until: WaitUntil) -> None:
    threads: list[threading.Thread] = []
    flow = SettingsFlow(Settings(), lambda _: threads.append(threading.current_thread()), owner)
    flow.change(think=True)
    wait_until(lambda: bool(threads))
    assert threads[0] is not threading.main_thread()


def test_of_many_changes_the_newest_is_written(owner: QObject, wait_until: WaitUntil) -> None:
    disk = Slow()
    flow = SettingsFlow(Settings(), disk.save, owner)
    for top_k in range(10):
        flow.change(top_k=top_k)
    disk.let.set()
    wait_until(lambda: bool(disk.written) and disk.written[-1].top_k == 9)
    assert [s.top_k for s in disk.written] == [0, 9]


@pytest.mark.parametrize("more", [False, True])
def test_nothing_is_lost_when_it_closes(owner: QObject, more: bool) -> None:
    disk = Slow()
    flow = SettingsFlow(Settings(), disk.save, owner)
    flow.change(top_k=1)
    assert disk.began.wait(LONGEST_WAIT_S)
    if more:
        flow.change(top_k=2)
    threading.Timer(0.1, disk.let.set).start()
    flow.close()
    assert disk.written[-1] == flow.current


def test_nothing_is_written_where_nothing_changed(owner: QObject) -> None:
    written: list[Settings] = []
    flow = SettingsFlow(Settings(), written.append, owner)
    flow.change(think=False)
    flow.close()
    assert not written


def test_a_failure_is_told_and_the_next_change_tries_again(
    owner: QObject, wait_until: WaitUntil
) -> None:
    error = OutputError("The disk is full.", remedy="Make room.")
    written: list[Settings] = []

    def save(settings: Settings) -> None:
        if not errors:
            raise error
        written.append(settings)

    errors: list[SlipstreamError] = []
    flow = SettingsFlow(Settings(), save, owner)
    flow.failed.connect(errors.append)
    flow.change(top_k=1)
    wait_until(lambda: errors == [error])
    assert flow.current.top_k == 1
    flow.change(top_k=2)
    wait_until(lambda: [s.top_k for s in written] == [2])
