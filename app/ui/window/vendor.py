"""A pair of the catalogue starts with the sampling of its vendor, for each mode.

Where the user has chosen values of their own, these stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from PySide6.QtCore import QObject

from app import catalog
from app.catalog import VendorSampling
from app.presets import ChatOptions
from app.settings import Settings
from app.ui.settings.flow import SettingsFlow

_KEYS: Final = ("temperature", "top_k", "top_p", "min_p", "presence_penalty")


def of_vendor(model: str, think: bool) -> dict[str, Any]:
    """The settings for this model and mode; empty where its vendor is not known."""
    sampling = _sampling(model, think)
    return {} if sampling is None else _values(sampling)


def defaults(model: str) -> Settings:
    """The settings where nothing was chosen but this model."""
    first = Settings()
    return replace(first, **of_vendor(model, first.think))


def in_chat(settings: Settings, options: ChatOptions) -> Settings:
    """The settings as they are for a chat: one that thinks where they say not to, or the other
    way round, is sampled as its mode is, unless the user chose other values."""
    think = options.get("think")
    if think is not None and think != settings.think:
        usual = of_vendor(settings.model, settings.think)
        if usual and all(getattr(settings, key) == value for key, value in usual.items()):
            settings = replace(settings, **of_vendor(settings.model, think))
    return options.over(settings)


class VendorDefaults(QObject):
    """Follows the model and the mode."""

    def __init__(self, flow: SettingsFlow, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._flow = flow
        self._model, self._think = flow.current.model, flow.current.think
        flow.changed.connect(self._follow)

    def _follow(self, names: frozenset[str]) -> None:
        if not names & {"model", "think"}:
            return
        now = self._flow.current
        before = of_vendor(self._model, self._think) or _own_defaults()
        self._model, self._think = now.model, now.think
        if all(getattr(now, key) == value for key, value in before.items()):
            self._flow.change(**(of_vendor(now.model, now.think) or _own_defaults()))


def _sampling(model: str, think: bool) -> VendorSampling | None:
    known = catalog.find(model)
    return known.sampling.get("thinking" if think else "plain") if known else None


def _own_defaults() -> dict[str, Any]:
    first = Settings()
    return {key: getattr(first, key) for key in (*_KEYS, "verify")}


def _values(sampling: VendorSampling) -> dict[str, Any]:
    return {key: getattr(sampling, key) for key in _KEYS} | {"verify": "gpu-sample"}
