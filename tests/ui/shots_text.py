"""Screenshots of text and meters: `python -m tests.ui.shots_text OUT_DIR [--scale 2]`.

A long answer with every kind of block, the meters in each state, a proof, a replay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import shiboken6
from PySide6.QtWidgets import QApplication

from app.engine import Control, Script
from app.settings import Settings
from app.ui.look.theme import Theme
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

| Model | tokens/s | Formula |
|:--|--:|:-:|
| Plain | 49 | $\frac{1}{t}$ |
| DFlash | 118 | $\frac{a + 1}{t}$ |

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--scale", default="1", help="device pixels a pixel")
    args = parser.parse_args()
    in_both_palettes(partial(take, args.out), args.out, args.scale)
    return 0


if __name__ == "__main__":
    sys.exit(main())
