"""What every error promises to whoever shows it."""

from __future__ import annotations

import pickle

from app.errors import ModelFileError, SlipstreamError


def test_its_text_can_be_shown_and_written_whatever_it_names() -> None:
    error = ModelFileError("`caf\udce9` is cut. 😊", remedy="Remove `\ud800`.")
    assert str(error) == "`caf\ufffd` is cut. 😊 Remove `\ufffd`."
    (error.message + error.remedy).encode()


def test_it_can_travel() -> None:
    again: SlipstreamError = pickle.loads(pickle.dumps(ModelFileError("Cut.", remedy="Get it.")))
    assert (type(again), again.message, again.remedy) == (ModelFileError, "Cut.", "Get it.")
