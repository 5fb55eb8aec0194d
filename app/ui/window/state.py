"""What the chip in the header says: from events and counters, never from settings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.engine import LoadedModel
from app.ui.look import words
from app.ui.look.language import tr
from app.ui.meters.model import Meters


class Level(StrEnum):
    ON = "on"
    OFF = "off"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class State:
    level: Level
    text: str
    about: str


def state_of(meters: Meters, activity: str = "") -> State:
    """`activity` is what is being prepared or loaded."""
    if activity:
        return State(Level.BUSY, tr(activity), tr("The model is on its way."))
    model = meters.model
    if model is None:
        return State(Level.OFF, tr("No model"), tr("Choose a model to begin."))
    dflash = _dflash(model, meters)
    if not model.fallback:
        return dflash
    where = model.backend.upper()  # not a GPU, which was left to Slipstream
    return State(dflash.level, f"{dflash.text} · {where}", f"{model.fallback} {dflash.about}")


def _dflash(model: LoadedModel, meters: Meters) -> State:
    totals = meters.counters.totals
    if not model.has_draft and not totals.drafted:
        return State(Level.OFF, tr("DFlash off"), tr("The model was loaded without a drafter."))
    if not totals.rounds:
        return State(
            Level.OFF, tr("DFlash ready"), tr("The drafter is loaded; no round has run yet.")
        )
    if meters.paused:
        about = tr("Drafting rests: it was not worth it for this text.")
        return State(Level.OFF, tr("DFlash paused"), about)
    if not totals.drafted:
        return State(Level.OFF, tr("DFlash off"), tr("Nothing was drafted in the last answer."))
    kept = tr("{accepted} of {drafted} drafted tokens were accepted.").format(
        accepted=totals.accepted, drafted=totals.drafted
    )
    own = totals.drafted > totals.looked_up  # the drafter's
    on = tr("DFlash on") if own else tr("Drafts from the chat")
    gain = meters.speedup.times
    if gain is None:
        about = f"{kept} {tr('Speed-up: {told}.').format(told=words.speedup(meters.speedup))}"
        return State(Level.ON, on, about)
    about = f"{kept} {tr('Measured against plain decoding on this machine.')}"
    if gain < 1:  # no warning: nobody can act on it, and the governor does
        about = f"{about} {tr('Drafting costs more here than it saves.')}"
    return State(Level.ON, f"{on} {words.times(gain)}", about)
