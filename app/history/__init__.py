"""Conversations on disk: one SQLite file, worked on by one thread.

`History` is what the window uses; `exchange` writes a chat for other programs and reads
ours back.
"""

from app.history.history import History
from app.history.records import ChatRecord, Codec, Hit, Opened, Summary, TurnRecord

__all__ = ["ChatRecord", "Codec", "History", "Hit", "Opened", "Summary", "TurnRecord"]
