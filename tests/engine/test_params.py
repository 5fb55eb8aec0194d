from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from app import engine
from app.engine import AskParams, LoadParams, Sampling
from app.errors import OptionError


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": 1.0},
        {"min_p": -0.1},
        {"seed": -1},
        {"seed": 2**64},
        {"presence_penalty": math.nan},
        {"presence_penalty": 2.1},
        {"frequency_penalty": -math.inf},
        {"frequency_penalty": -2.1},
        {"repeat_penalty": 0.0},
        {"repeat_penalty": math.inf},
        {"penalty_last_n": -2},
        {"penalty_last_n": 2**32},
        {"logit_bias": ((-1, 1.0),)},
        {"logit_bias": ((2**32, 1.0),)},
        {"logit_bias": ((1, math.nan),)},
        {"logit_bias": ((1, -math.inf),)},
    ],
)
def test_sampling_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as caught:
        Sampling(**wrong)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": -1}, {"block": 0}, {"stop": ("",)}, {"stop": ("a", "")}]
)
def test_ask_params_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        AskParams(**wrong)


@pytest.mark.parametrize("wrong", [{"n_ctx": 0}, {"n_ubatch": 7}, {"threads": 0}])
def test_load_params_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        LoadParams(Path("x.gguf"), **wrong)


def test_the_door_shows_what_it_says() -> None:
    for name in engine.__all__:
        assert hasattr(engine, name)
    assert sorted(engine.__all__) == list(dict.fromkeys(sorted(engine.__all__)))
