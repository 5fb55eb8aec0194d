"""Checkpoints from the Hugging Face Hub, in the hub's own cache on this machine.

The hub's client runs in a child process, which can be ended at any moment: what it has
fetched stays, and the next one goes on behind it.
"""

from __future__ import annotations

from app.download.listing import Found, Listing, RemoteFile
from app.download.meter import Pace, Patience
from app.download.service import MARGIN, Access, Fetched, fetch, forget, look, look_here

__all__ = [
    "MARGIN",
    "Access",
    "Fetched",
    "Found",
    "Listing",
    "Pace",
    "Patience",
    "RemoteFile",
    "fetch",
    "forget",
    "look",
    "look_here",
]
