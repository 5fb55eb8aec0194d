"""The user's access token for the hub, in the system's own store of secrets.

`HF_TOKEN` goes before it, and the hub's own client keeps one of its own; this is for people
who have neither. Where there is no such store it lasts as long as the application.
"""

from __future__ import annotations

import logging
from typing import Final

_SERVICE: Final = "slipstream-hub"
_USER: Final = "access-token"

_log = logging.getLogger(__name__)


class Tokens:
    """One token. Reading the store may wait for the user to unlock it."""

    def __init__(self) -> None:
        self._given: str | None = None

    def get(self) -> str | None:
        if self._given is None:
            import keyring  # here: finding its store takes a while

            try:
                return keyring.get_password(_SERVICE, _USER) or None
            except Exception as error:  # whatever its store throws
                _log.info("The keyring cannot be read (%s).", type(error).__name__)
        return self._given

    def put(self, token: str) -> str:
        """Keep `token`, or forget the one that is kept where it is empty.

        Returns what is to be said if it lasts only until the end; empty where it is stored.
        """
        import keyring

        self._given = token.strip() or None
        try:
            if self._given:
                keyring.set_password(_SERVICE, _USER, self._given)
            elif keyring.get_password(_SERVICE, _USER):
                keyring.delete_password(_SERVICE, _USER)
        except Exception as error:
            _log.info("The keyring cannot be written (%s).", type(error).__name__)
            return "This system has no keyring that could keep it: it is used until you close."
        self._given = None
        return ""
