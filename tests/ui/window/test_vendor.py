"""A pair of the catalogue starts as its vendor says."""

from __future__ import annotations

from dataclasses import asdict

from pytestqt.qtbot import QtBot

from app import catalog
from app.engine import AskParams
from app.presets import ChatOptions
from app.settings import Settings
from app.ui.settings.flow import SettingsFlow
from app.ui.window.vendor import VendorDefaults, of_vendor
from tests.ui.conftest import OpenWindow


def test_the_vendors_sampling_by_mode_unless_the_user_chose(qtbot: QtBot) -> None:
    flow = SettingsFlow(Settings(), lambda _: None)
    defaults = VendorDefaults(flow)
    flow.change(model="qwen3.5-4b")
    assert (flow.current.temperature, flow.current.top_p) == (0.7, 0.8)
    assert flow.current.presence_penalty == 1.5
    assert flow.current.verify == "gpu-sample"
    flow.change(think=True)
    assert (flow.current.temperature, flow.current.top_p) == (1.0, 0.95)
    flow.change(temperature=0.3)
    flow.change(think=False)
    assert flow.current.temperature == 0.3
    flow.change(**of_vendor("qwen3.5-4b", think=False))
    flow.change(model="demo")
    assert (flow.current.verify, flow.current.presence_penalty) == ("greedy", 0)
    flow.close()
    defaults.deleteLater()


def test_a_reset_puts_back_what_the_vendor_says(open_window: OpenWindow) -> None:
    window = open_window(model="qwen3.5-4b", think=True, temperature=0.1, seed=7)
    window.sheet._reset("Answers")
    now = window.flow.current
    vendors = of_vendor("qwen3.5-4b", think=False)
    assert {key: getattr(now, key) for key in vendors} == vendors
    assert (now.think, now.seed, now.verify) == (False, None, "gpu-sample")
    window.flow.change(model="demo")
    window.flow.change(verify="host-sample", temperature=0.1)
    window.sheet._reset("Answers")
    assert (window.flow.current.verify, window.flow.current.temperature) == (
        Settings().verify,
        Settings().temperature,
    )


def test_nothing_that_a_vendor_recommends_is_dropped_in_silence() -> None:
    for model in catalog.MODELS:
        for mode, think in (("thinking", True), ("plain", False)):
            for name, value in asdict(model.sampling[mode]).items() if model.sampling else ():
                assert of_vendor(model.id, think)[name] == value


def test_a_chat_that_thinks_for_itself_is_sampled_as_its_mode_is(open_window: OpenWindow) -> None:
    window = open_window(**of_vendor("qwen3.5-4b", think=False), model="qwen3.5-4b")
    controller = window.controller

    def sampling() -> AskParams:
        result = controller.ask_params()
        assert result is not None
        return result

    assert sampling().sampling.temperature == 0.7
    controller.set_options(ChatOptions().choose("think", True))
    params = sampling()
    assert (params.think, params.sampling.temperature, params.sampling.top_p) == (True, 1.0, 0.95)
    assert params.sampling.presence_penalty == 1.5
    controller.set_options(ChatOptions().choose("think", True).choose("temperature", 0.2))
    assert sampling().sampling.temperature == 0.2
    window.flow.change(top_k=5)  # a choice of the user's own
    controller.set_options(ChatOptions().choose("think", True))
    assert sampling().sampling.temperature == 0.7
