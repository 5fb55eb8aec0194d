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
    "ok so how do i get the real ai instead of this little one?",
    "How big is the download for the 4B thing, I only have a slow line here",
    "can i shut my laptop halfway thru the download or does it start all over",
    "It says \"there is no connection to huggingface.co\". Now what?",
    "do I need to make a huggingface account for the big model",
    "I've already got a .gguf file sitting in my downloads folder, can I use that one",
    "whats the diff between 4B 2B and 0.8B on that list",
    "how do I switch back to the guide after I installed qwen",
    "Where on my disk did you put the model? My drive is nearly full.",
    "how to uninstall a model i dont want anymore",
    "why is there a line through GPU",
    "I have an RTX 3060, shouldn't it be using that?",
    "will this run ok on my old thinkpad with 8 gigs of ram??",
    "does it work w/ AMD cards",
    "Mac version when?",
    "my brother is on Windows 11, can he install it",
    "it keeps jumping back to CPU by itself saying something about free memory",
    "What do the little green squares on the right mean?",
    "and the dotted boxes?",
    "some of the squares have a dot inside, whats that",
    "what does 1.4 x mean up there in big letters",
    "why does it only say \"not measured yet\"",
    "it was 5x faster on one answer and barely anything on the next, is something broken?",
    "\"Drafting paused: not worth it for this text\" huh?",
    "what's the Replay button for",
    "does making it faster make the answers worse?",
    "what the heck is a token",
    "Explain \"drafter\" like I'm five",
    "what's that 70 / 32k at the bottom",
    "says the prompt has 5120 tokens and context holds 4096. what am i supposed to do",
    "What does the lightbulb \"Think\" button do and should I leave it on?",
    "hey is anything i type here sent to anybody?",
    "does it work on a plane, no wifi",
    "is this free or will you ask for my card after a month",
    "where are my old chats kept",
    "oh no I just deleted the wrong conversation, can I get it back???",
    "how can I rename a chat",
    "can i keep one chat always on top of the list",
    "I want to save a conversation as a file to mail it to a colleague",
    "can it read a PDF if I drop one in",
    "is there a dark mode, this white is killing my eyes",
    "The letters are too small for me, I am 71. How do I make them bigger?",
    "what keys can I use so I don't have to grab the mouse all the time",
    "Wie stelle ich die Antworten weniger zufällig ein?",
    "Kann ich das auch ohne Fenster im Terminal benutzen?",
    "¿Cómo paro una respuesta que está siendo demasiado larga?",
    "¿mis conversaciones se suben a la nube?",
    "Comment je fais pour supprimer toutes mes discussions ?",
    "pourquoi c'est si lent chez moi",
    "怎么下载大模型？",
    "这个软件支持显卡加速吗",
    "who won the world cup in 2022",
    "how long do i boil an egg so its still soft in the middle",
    "Whats the weather like in Manchester tomorrow",
    "can you write me a python script that renames all my photos by date",
    "how do i make a pivot table in excel",
    "Capital of Australia? Sydney right?",
    "my tooth hurts since yesterday, should I take ibuprofen or paracetamol",
    "is chatgpt better than claude",
    "how do i turn off notifications in whatsapp",
    "what year did the titanic sink",
    "recommend me a good series on netflix, something like Dark",
    "How do I delete a chat in Telegram for both sides",
    "who is the president of france atm",
    "count from 1 to 30 pls",
    "what's 17 plus 25",
    "Say \"the cat sat on the mat\" three times.",
    "tell me a story, a short one, for my daughter, with a fox",
    "put this in capital letters: meet me at noon",
    "can you repeat after me: slow is smooth and smooth is fast",
    "Count backwards from ten",
    "make this sound more polite: send me the report now",
    "hiya :)",
    "asdfgh jkl",
    "this is useless, you don't know ANYTHING",
    "thx, that helped",
    "??",
    "banana fridge yesterday seven of the purple",
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
        f"# {len(answers)} questions of a stranger\n",
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
