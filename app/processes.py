"""Processes that work for another one."""

from __future__ import annotations

import os
import signal
import threading


def belong_to_parent() -> None:
    """In a process that `multiprocessing` began: Ctrl-C is its parent's, which ends this one, and
    so does the parent's own end, however it comes."""
    from multiprocessing import parent_process  # here: the window opens without

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := parent_process()) is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
