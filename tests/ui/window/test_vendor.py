"""A pair of the catalogue starts as its vendor says."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.settings import Settings
from app.ui.settings.flow import SettingsFlow
from app.ui.window.vendor import VendorDefaults, of_vendor


def test_the_vendors_sampling_by_mode_unless_the_user_chose(qtbot: QtBot) -> None:
    flow = SettingsFlow(Settings(), lambda _: None)
    defaults = VendorDefaults(flow)
    flow.change(model="qwen3.5-4b")
    assert (flow.current.temperature, flow.current.top_p) == (0.7, 0.8)
    assert flow.current.verify == "gpu-sample"
    flow.change(think=True)
    assert (flow.current.temperature, flow.current.top_p) == (1.0, 0.95)
    flow.change(temperature=0.3)
    flow.change(think=False)
    assert flow.current.temperature == 0.3
    flow.change(**of_vendor("qwen3.5-4b", think=False))
    flow.change(model="demo")
    assert flow.current.verify == "greedy"
    flow.close()
    defaults.deleteLater()
