"""The token is kept by the system, or says that it is not."""

from __future__ import annotations

from collections.abc import Iterator

import keyring
import keyring.errors
import pytest
from keyring.backend import KeyringBackend

from app.download.token import Tokens


class Store(KeyringBackend):
    priority = 1.0

    def __init__(self, locked: bool = False) -> None:
        super().__init__()
        self.locked = locked
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        self._open()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._open()
        del self.kept[service, username]

    def _open(self) -> None:
        if self.locked:
            raise keyring.errors.KeyringLocked("no")


@pytest.fixture
def store() -> Iterator[Store]:
    before, store = keyring.get_keyring(), Store()
    keyring.set_keyring(store)
    yield store
    keyring.set_keyring(before)


def test_kept_and_forgotten(store: Store) -> None:
    assert Tokens().get() is None
    assert Tokens().put(" hf_x ") == ""
    assert list(store.kept.values()) == ["hf_x"]
    assert Tokens().get() == "hf_x"
    assert Tokens().put("") == ""
    assert Tokens().get() is None


def test_without_a_store_it_lasts_until_the_end(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.locked = True
    tokens = Tokens()
    assert tokens.get() is None
    assert "until you close" in tokens.put("hf_secret")
    assert tokens.get() == "hf_secret"
    assert "hf_secret" not in caplog.text
