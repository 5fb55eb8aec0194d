"""Screenshots of text and meters: `python -m tests.ui.shots_text OUT_DIR [--scale 2]`.

A long answer with every kind of block, the meters in each state, a proof, a replay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import shiboken6
from PySide6.QtWidgets import QApplication

from app.engine import (
    Ask,
    Command,
    Control,
    Decoded,
    Event,
    Finished,
    LoadedModel,
    Plain,
    Reading,
    RoundRecord,
    Script,
    WidthReason,
)
from app.engine.fake import FAKE_CPU
from app.settings import Settings
from app.ui.look.theme import Space, Theme
from app.ui.markdown.formula import typesetter
from app.ui.window.main_window import MainWindow
from tests.ui.fakes import BatchEngine, FakeModels
from tests.ui.shots import ANSWER, PATTERN, QUESTION, answered, in_both_palettes, wait

BLOCKS = r"""# Every kind of block

A paragraph with **bold**, *emphasis*, ~~gone~~, `code -> x`, a [link](https://a.b/c), a bare \
https://example.org/a_(b), an image ![a cat](https://example.org/cat.png) and a note.[^1]

## Lists

1. The first of three
2. The second, with a longer text that has to be wrapped, so that one sees where its lines begin
   - nested, tight
   - again
3. The third

- [x] done
- [ ] still to do

> A quote, with a formula $e^{i\pi} + 1 = 0$ in it.
>
> > And one within.

## Formulas

For $ax^2 + bx + c = 0$ with $a \neq 0$ (it costs $5 to $6):

$$x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$$

\[ |x| = \begin{cases} x & \text{if } x \ge 0 \\ -x & \text{otherwise} \end{cases} \quad
A = \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix} \qquad \boxed{x = 42} \]

## A table

| Shape | Sides | Area |
|:--|--:|:-:|
| Triangle | 3 | $\frac{bh}{2}$ |
| Square | 4 | $a^2$ |

```python
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)  # slow
```

العربية من اليمين إلى اليسار، 日本語, 👩‍👩‍👧‍👦.

---

[^1]: The note itself.
"""


def take(out: Path, app: QApplication, look: Theme, name: str) -> list[Path]:
    look.choose(name)
    script = Script(text=BLOCKS, accepted=PATTERN, block=16)
    engine = BatchEngine(script)
    window = MainWindow(
        engine, FakeModels(), Settings(theme="dark" if name == "dark" else "light"),
        lambda _: None, look,
    )  # fmt: skip
    files: list[Path] = []

    def shoot(what: str) -> None:
        wait(lambda: True)
        files.append(out / f"{what}-{name}.png")
        window.grab().save(str(files[-1]))

    def ask(text: str = QUESTION, until: Callable[[], bool] = lambda: answered(window)) -> None:
        window.controller.ask(text)
        wait(until)

    window.resize(1280, 1700)
    window.show()
    wait(lambda: window.meters.plain_tokens_per_s is not None)
    ask()
    wait(lambda: not typesetter().busy)
    window.chats.view.verticalScrollBar().setValue(0)
    shoot("blocks")
    view, text = window.chats.view, window.chats.view.answers[0].body
    shown = view.rect()  # without any figures of the scripted engine
    shown.setBottom(text.mapTo(view, text.rect().bottomLeft()).y() + Space.XS)
    shown.moveTopLeft(view.mapTo(window, shown.topLeft()))
    files.append(out / f"text-{name}.png")
    window.grab(shown).save(str(files[-1]))
    window.resize(1280, 800)
    script.text = ANSWER
    window.controller.new_chat()
    ask()
    window.actions_.prove.trigger()
    wait(lambda: bool(window.proof_page.lanes[1].text))
    shoot("proving")
    wait(lambda: not window.proof_page.busy)
    shoot("proved")
    window.actions_.replay.trigger()
    wait(lambda: len(window.proof_page.lanes[0].text) > 100)
    shoot("replay")
    window.proving.leave()
    engine.script.control = Control(0.013, 0.021, False)
    window.chats.view.answers[-1]._why.click()
    window.chats.view.go_down()
    shoot("why")
    script.accepted, script.round_ms = (0, 1, 0), 60.0
    window.controller.new_chat()
    ask("A poem, please")
    window.chats.view.answers[-1]._why.click()
    window.chats.view.go_down()
    shoot("slow")
    window.close()
    shiboken6.delete(window)  # or each change of the palette goes through all of it again
    return files


DIFFERS = 44
"""The token of the drafted answer that is another one than without drafting..."""

OTHER = 100_000
"""... and its id."""

FALLBACK = "The GPU has 2.1 GB free and the model needs 3.4 GB."


class Staged(BatchEngine):
    """An engine whose answers stop where a picture is to be taken."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, batch=1)
        self.reason = WidthReason.PAYS
        self.reads = self.differs = False  # whether it stops while it reads, and ends otherwise
        self.stops_at = 0  # characters of the answer
        self.fallback = ""
        self._said = 0

    def step(self) -> bool:
        return not (self.stops_at and self._said >= self.stops_at) and super().step()

    def go_on(self) -> None:
        self.stops_at, self.reads, self.batch = 0, False, 1_000

    def events(self, request: int, command: Command) -> Iterator[Event]:
        self._said = 0
        if isinstance(command, Ask) and self.reads:
            self._said = self.stops_at
            yield Reading(request, 6_144, 21_300)
        for event in super().events(request, command):
            if isinstance(event, Decoded):
                self._said += len(event.text)
            elif isinstance(event, Finished) and self._differs(command):
                ids = event.answer.token_ids
                ids = (*ids[:DIFFERS], OTHER, *ids[DIFFERS + 1 :])
                event = replace(event, answer=replace(event.answer, token_ids=ids))
            yield event

    def _set_model(self, model: LoadedModel | None) -> None:
        super()._set_model(model and replace(model, fallback=self.fallback))

    def _differs(self, command: Command) -> bool:
        return self.differs and isinstance(command, Ask) and command.params.draft

    def _round(self, pieces: list[str], at: int, index: int, draft: bool) -> RoundRecord:
        if self.differs and draft:
            pieces[DIFFERS] = " whole"
        draft = draft and self.reason is not WidthReason.PLAIN
        record = replace(super()._round(pieces, at, index, draft), reason=self.reason)
        if not draft:
            verify_ms = record.verify_ms + (record.draft_ms or 0.0)
            return replace(record, draft_ms=None, verify_ms=verify_ms)
        if self.differs:
            ids = tuple(OTHER if i == DIFFERS else i for i in record.token_ids)
            record = replace(record, token_ids=ids)
        return record


def take_meters(out: Path, app: QApplication, look: Theme, name: str) -> list[Path]:
    """The meters in each of their states, and a proof that found a difference."""
    look.choose(name)
    files: list[Path] = []

    def opened(**changes: str) -> tuple[MainWindow, Staged]:
        engine = Staged(Script(text=ANSWER, accepted=PATTERN, block=16))
        engine.fallback = changes.pop("fallback", "")
        if engine.fallback:
            engine.device_list = (FAKE_CPU,)
        engine.script.exact = not engine.fallback
        settings = Settings(theme=name, n_ctx=32_768, **changes)  # type: ignore[arg-type]
        window = MainWindow(engine, FakeModels(), settings, lambda _: None, look)
        window.resize(1280, 800)
        window.show()
        wait(lambda: window.meters.plain_tokens_per_s is not None)
        wait(lambda: window.meters.model is not None and window.meters.model.exact is not None)
        return window, engine

    def shoot(window: MainWindow, what: str) -> None:
        wait(lambda: True)
        files.append(out / f"meters-{what}-{name}.png")
        window.grab().save(str(files[-1]))

    def ended(window: MainWindow) -> None:
        window.close()
        shiboken6.delete(window)

    window, engine = opened()
    shoot(window, "nothing")

    def state(what: str, chars: int, then: Callable[[], None] = lambda: None) -> None:
        """A picture after so many characters of an answer, which ends then."""
        window.controller.new_chat()
        engine.stops_at, engine.batch, engine._said = chars, 1, 0
        window.controller.ask(QUESTION)
        wait(lambda: engine._said >= chars)
        then()
        shoot(window, what)
        engine.go_on()
        wait(lambda: answered(window))

    engine.reads = True
    state("reading", 1)
    state("drafting", 500)
    engine.reason = WidthReason.PLAIN
    state("paused", 300)
    engine.reason = WidthReason.PAYS
    engine.script.text = ANSWER + "\n\n" + ANSWER

    def slow_down() -> None:
        engine.script.round_ms, engine.stops_at = 35.0, 1_900
        wait(lambda: engine._said >= 1_900)

    state("busy", 900, slow_down)
    engine.script.text, engine.script.round_ms = ANSWER, 10.0
    window.meters.set_plain(Plain())
    engine.script.plain_tokens_per_s = None
    state("not-measured", 500)
    engine.script.plain_tokens_per_s = 60.0  # a round takes less: other programs held it up
    window.meters.set_plain(Plain(60.0))
    state("uneven", 500)
    engine.script.plain_tokens_per_s = 200.0
    state("ended", 500)
    shoot(window, "finished")
    first = window.controller.book.summaries[0].id
    window.controller.new_chat()
    window.controller.show_chat(first)
    shoot(window, "another-chat")
    engine.differs = True
    engine.script.control = Control(0.5, 0.02, False)
    window.actions_.prove.trigger()
    wait(lambda: not window.proof_page.busy)
    shoot(window, "difference")
    ended(window)
    window, engine = opened(fallback=FALLBACK)
    engine.go_on()
    window.controller.ask(QUESTION)
    wait(lambda: answered(window))
    window.chats.view.answers[-1]._why.click()
    window.chats.view.go_down()
    shoot(window, "fallback")
    ended(window)
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--scale", default="1", help="device pixels a pixel")
    args = parser.parse_args()

    def taken(app: QApplication, look: Theme, name: str) -> list[Path]:
        return [
            *take(args.out, app, look, name),
            *take_meters(args.out, app, look, name),
        ]

    in_both_palettes(taken, args.out, args.scale)
    return 0


if __name__ == "__main__":
    sys.exit(main())
