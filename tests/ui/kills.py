"""What a kill -9 costs: `python -m tests.ui.kills [--times 50]`.

A window of its own asks, answers, edits, removes and drafts over a scripted engine, and writes
down what it shows (appended and flushed, by the clock); it is killed at a random moment, and
its chats are read again. No question may be missing of which an answer was seen, and nothing
that was finished; of an answer that came, and of a draft, at most the last two seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from app.drafting import Draft
from app.history import History

LOST_S: Final = 2.0
SETTLED_S: Final = 0.25
"""What is finished longer ago than this must be there: it is kept in the moment it ends, by
another thread."""


def victim(home: Path, seed: int) -> None:
    """In the process that is killed: work for ever, and write down what came of it."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from app.conversation import End, Role
    from app.engine import Script
    from app.settings import Settings
    from app.ui.application import CODEC
    from app.ui.look.theme import Theme
    from app.ui.window.main_window import MainWindow
    from tests.ui.fakes import BatchEngine, FakeModels

    chance = random.Random(seed)
    app = QApplication([])
    log = (home / "log").open("a", encoding="utf-8")
    text = " ".join(f"word{i}" for i in range(chance.randrange(40, 3_000)))
    engine = BatchEngine(Script(text=text), batch=1)
    window = MainWindow(
        engine, FakeModels(), Settings(theme="light"), lambda _: None, Theme(app, "light"),
        history=History(home / "chats.db", CODEC),
    )  # fmt: skip
    window.show()
    controller = window.controller
    told: set[str] = set()
    asked = 0

    def write(**what: Any) -> None:
        print(json.dumps({"at": time.time(), **what}), file=log, flush=True)

    killer = os.getppid()

    def look() -> None:
        if os.getppid() != killer:
            os._exit(1)  # nobody is there any more to do it
        for chat in controller.book._open.values():
            for turn in chat.turns.values():
                if turn.role is not Role.ASSISTANT or turn.id in told:
                    continue
                if turn.end is not End.COMING:
                    told.add(turn.id)
                    write(id=turn.id, question=turn.parent, done=turn.text)
                elif turn.text:
                    write(id=turn.id, question=turn.parent, came=len(turn.text))
        write()  # it is running

    def act() -> None:
        nonlocal asked
        if window.loader.obstacle:
            return
        path = controller.current.path()
        match chance.randrange(8):
            case 0 if path:
                controller.edit(path[0], f"Edited {asked}")
            case 1 if len(path) > 2 and not controller.busy:
                write(removed=[path[0].id, *(t.id for t in controller.current.below(path[0].id))])
                controller.remove(path[0])
            case 2:
                controller.new_chat()
            case 3 if path:
                controller.stop()
            case 4 if path and not controller.busy:
                controller.again()
            case 5 if path:
                window.composer.field.setPlainText(f"Draft {asked}")
                write(drafted=controller.current.id, draft=f"Draft {asked}")
            case _ if len(controller.answers.all) < 3:
                asked += 1
                controller.ask(f"Question {asked}")

    timers = [(QTimer(), 50, look), (QTimer(), chance.randrange(100, 900), act)]
    for timer, pace, work in timers:
        timer.timeout.connect(work)
        timer.start(pace)
    app.exec()


def one(folder: Path, seed: int, longest_s: float = 6.0) -> str:
    """Kill one at a moment by chance; what was lost, in words, empty where nothing was."""
    home = folder / str(seed)
    home.mkdir()
    environment = {**os.environ, "SLIPSTREAM_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "tests.ui.kills", "--victim", str(home), str(seed)]
    log = home / "log"
    with subprocess.Popen(command, env=environment) as process:
        deadline = time.monotonic() + 120
        while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
            if process.poll() is not None:
                return f"seed {seed}: it ended by itself"
            time.sleep(0.02)
        time.sleep(random.Random(seed).uniform(0.1, longest_s))
        process.send_signal(signal.SIGKILL)
        killed = time.time()
    return "; ".join(losses(home, killed))


def losses(home: Path, killed: float) -> list[str]:
    lines = (home / "log").read_text(encoding="utf-8").splitlines()
    done: dict[str, tuple[float, str]] = {}
    came: dict[str, int] = {}
    asked: set[str] = set()
    drafts: dict[str, tuple[float, str]] = {}
    removed: set[str] = set()
    for line in lines:
        try:
            told = json.loads(line)
        except ValueError:
            continue  # the last line, cut
        if "removed" in told:
            removed |= set(told["removed"])
        elif "drafted" in told:
            drafts[told["drafted"]] = (told["at"], told["draft"])
        elif "question" in told:
            asked.add(told["question"])
            if "done" in told:
                done[told["id"]] = (told["at"], told["done"])
            elif told["at"] < killed - LOST_S:
                came[told["id"]] = told["came"]
    kept: dict[str, str] = {}
    kept_drafts: dict[str, str] = {}
    with closing(History(home / "chats.db")) as history:
        opened = history.open().result()
        if opened.problem is not None:
            return [f"the file of chats: {opened.problem}"]
        for summary in opened.chats:
            chat, lost = history.load(summary.id).result()
            if chat is None or lost:
                return [f"{lost} rows of {summary.title}"]
            kept |= {turn.id: turn.text for turn in chat.turns.values()}
            kept_drafts[chat.id] = Draft.of_json(chat.draft).text
    found = [f"the question {id_}" for id_ in asked - removed - kept.keys()]
    for id_, (at, text) in drafts.items():
        if at < killed - LOST_S and kept_drafts.get(id_) != text:
            found.append(f"a draft, {killed - at:.1f} s before")
    for id_, (at, text) in done.items():
        if at < killed - SETTLED_S and id_ not in removed and kept.get(id_) != text:
            found.append(f"a finished answer, {killed - at:.1f} s before")
    for id_, length in came.items():
        if id_ not in removed and id_ not in done and len(kept.get(id_, "")) < length:
            found.append(f"{length - len(kept.get(id_, ''))} characters of a running answer")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--victim", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.victim:
        victim(Path(args.victim[0]), int(args.victim[1]))
        return 0
    lost = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.times):
            told = one(Path(folder), seed)
            lost += bool(told)
            print(f"{seed}: {told or 'nothing lost'}", flush=True)
    print(f"{args.times} kills, {lost} with a loss")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
