"""Asks the guide what a stranger would, as he would: `slipstream ask`, one process for a question.

    python -m assets.demo.train.asked [--program slipstream]

writes asked.md: each question with its answer, whether that is right, and why not. Right or wrong
is what a reader of the answer says: a mark stays while the answer does, and what is new
is marked "unread".
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

LOG = Path(__file__).with_name("asked.md")
UNREAD = "unread"
QUESTIONS = (
    "so what does this program actually do for me?", "my laptop has no graphics card, will this still run?",
    "Is anybody at your company going to read what I type?", "where did the conversation from this morning go",
    "How can I get rid of a conversation for good?", "the letters are way too tiny for my eyes", "Can it be used on a flight?",
    "I'd like to feed it my thesis as a PDF", "What do the little coloured blocks stand for?", "who came up with this dflash thing",
    "does the speed trick make it dumber?", "It says paused up there. Did I break something?", "how do I get the smarter one",
    "How many gigs will the download eat?", "I hit enter too early, can I fix what I wrote?", "that reply was rubbish, do another",
    "it stopped mid sentence", "how do i shut it up", "Can my Python script talk to it?", "can I make the background black",
    "wheres the list of hotkeys", "Why is my video card not selectable?", "what's Q4_K_M supposed to be",
    "how do I make it always reply the same thing", "explain temperature to my mum", "Do you cost anything after a month?",
    "Which company is behind you?", "what is a token?", "how do I print what we discussed", "can you remember what I told you last week?",
    "Wie mache ich die Buchstaben hier größer?", "¿Dónde veo los atajos que hay?", "What's the capital of Australia?",
    "should I break up with my boyfriend", "recommend me a laptop for gaming", "fix this sentence: me go home", "what is 34 + 29",
    "Count backwards from 10", "write a haiku about rain", "asdkjh",
)  # fmt: skip


def ask(program: list[str], question: str) -> str:
    """The answer, on one line."""
    done = subprocess.run(
        [*program, "ask", "--json", question], capture_output=True, check=True, encoding="utf-8"
    )
    return " ".join(json.loads(done.stdout)["text"].split())


def marks(text: str) -> dict[tuple[str, str], str]:
    """What was said of each question and answer of a log."""
    rows = (re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in text.splitlines())
    return {(row[1], row[2]): row[3] for row in rows if len(row) == 4 and row[0].isdigit()}


def write(answers: dict[str, str], read: dict[tuple[str, str], str], told: str) -> str:
    """The log; `told` is what answered."""
    rows = []
    for question, answer in answers.items():
        cells = question.replace("|", r"\|"), answer.replace("|", r"\|")
        rows.append((*cells, read.get(cells, UNREAD)))
    count = Counter(mark.split(":")[0] for *_, mark in rows)
    return "\n".join([
        "# 40 questions of a stranger\n",
        "Written after the training, asked once, with `python -m assets.demo.train.asked`; the marks are a reader's"
        f" reading. Answered by {told}.\n",
        ", ".join(f"{number} {mark}" for mark, number in count.most_common()) + ".\n",
        "| | question | answer | read as |", "|---:|---|---|---|",
        *(f"| {i} | {' | '.join(row)} |" for i, row in enumerate(rows, 1)), "",
    ])  # fmt: skip


def main() -> None:
    """Asks all and writes the log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", help="the command of the app; at first that of the checkout")
    parser.add_argument("--told", default="the checkout's `slipstream ask`", help="what answers")
    arguments = parser.parse_args()
    program = [sys.executable, "-m", "app"]
    if arguments.program:
        program = shlex.split(arguments.program)
    read = marks(LOG.read_text(encoding="utf-8")) if LOG.exists() else {}
    answers = {question: ask(program, question) for question in QUESTIONS}
    LOG.write_text(write(answers, read, arguments.told), encoding="utf-8")


if __name__ == "__main__":
    main()
