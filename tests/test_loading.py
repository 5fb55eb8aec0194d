"""One choice, and what is loaded by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine import Backend, KvType, LoadParams
from app.errors import OptionError
from app.library import Pair
from app.loading import LoadChoice

PAIR = Pair("cat", "Cat", Path("target.gguf"), Path("draft.gguf"))


def test_everything_chosen_is_loaded_so() -> None:
    choice = LoadChoice("cat", Backend.GPU, draft_backend=Backend.CPU, n_ctx=512)
    wanted = LoadParams(PAIR.target, PAIR.draft, Backend.GPU, 512, draft_backend=Backend.CPU)
    assert choice.params(PAIR) == wanted


def test_by_default_it_is_what_the_engine_does() -> None:
    assert LoadChoice().params(PAIR) == LoadParams(PAIR.target, PAIR.draft)


def test_without_the_drafter() -> None:
    assert LoadChoice(draft=False).params(PAIR).draft is None


def test_a_context_that_cannot_be_is_refused_before_there_are_files() -> None:
    with pytest.raises(OptionError, match="n_ctx"):
        LoadChoice(n_ctx=255)


def test_threads_are_handed_on() -> None:
    assert LoadChoice(threads=3).params(PAIR).threads == 3
    with pytest.raises(OptionError):
        LoadChoice(threads=0)


def test_the_type_of_keys_and_values_is_handed_on() -> None:
    assert LoadChoice().params(PAIR).kv_type is None
    assert LoadChoice(kv_type=KvType.Q8_0).params(PAIR).kv_type == "q8_0"
