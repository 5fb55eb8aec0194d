"""What the pair can do: right answers, and how far the drafter's blocks are accepted.

DFlash decoding under greedy verify is lossless, so it is enough to write each answer plainly, to
draft from every position of it, and to walk through the answer in rounds.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import Qwen3_5ForCausalLM

from . import corpus, heldout, skills, target
from .corpus import Message
from .drafter import Drafter, embed_blocks, load, place_blocks
from .phrasing import topics
from .skills import Skill

LIMIT = 320  # tokens in an answer
TOGETHER = 1024  # prompts written in one batch
ALONGSIDE = 8  # answers replayed in one
REPLAYED = 64  # answers of a kind that are replayed in rounds
ALIKE = 0.5  # share of common words from which on an answer is that to another question
AIMS = {
    "right_topic": 0.95, "word_exact": 0.90, "unknown_recognised": 0.95, "wrong_topic": 0.02,
    "guide_length": 8.0, "free_text_length": 4.0, "code_length": 6.0,
}  # fmt: skip
"""What the guide is to reach on the held-out questions; of `wrong_topic` no more."""


@dataclass
class Score:
    """Counters over the answers of one kind of text."""

    answers: int = 0
    right: int = 0
    topics: int = 0  # answers of which the topic is known: right, and that of another question
    right_topic: int = 0
    wrong_topic: int = 0
    thoughts: int = 0
    rounds: int = 0
    accepted: int = 0
    tried: list[int] = field(default_factory=lambda: [0] * 15)
    kept: list[int] = field(default_factory=lambda: [0] * 15)
    failures: list[dict[str, str]] = field(default_factory=list)

    def add(self, runs: list[tuple[int, int]], right: bool) -> None:
        """Counts one answer; `runs` has (accepted, places left in the answer) for each round."""
        self.answers += 1
        self.right += right
        self.rounds += len(runs)
        for accepted, left in runs:
            self.accepted += accepted
            for place in range(min(left, 15)):
                self.tried[place] += 1
                self.kept[place] += accepted > place

    def judge(self, wanted: str, text: str) -> None:
        """Counts whether `text` answers the question that was asked, or another one."""
        found = topic_of(text)
        self.topics += 1
        self.right_topic += found == wanted
        self.wrong_topic += found not in ("", wanted, *skills.REFUSALS)

    def report(self) -> dict[str, Any]:
        """The figures of the report."""
        length = (self.accepted + self.rounds) / max(self.rounds, 1)
        rates = [round(k / t, 3) for k, t in zip(self.kept, self.tried, strict=True) if t]
        of_topics = {
            "right_topic": round(self.right_topic / max(self.topics, 1), 3),
            "wrong_topic": round(self.wrong_topic / max(self.topics, 1), 3),
        }
        return {
            "answers": self.answers,
            "exact": round(self.right / max(self.answers, 1), 3),
            **(of_topics if self.topics else {}),
            **({"thoughts": round(self.thoughts / self.answers, 3)} if self.thoughts else {}),
            "rounds": self.rounds,
            "accepted": self.accepted,
            "mean_accepted_length": round(length, 2),
            "acceptance_per_position": rates,
            "failures": self.failures,
        }


@cache
def _known() -> dict[str, frozenset[str]]:
    answers = {topic.name: topic.answer for topic in topics()} | dict(skills.REFUSALS)
    return {name: _words(answer) for name, answer in answers.items()}


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.lower()))


def topic_of(text: str) -> str:
    """The topic that `text` is the answer to, also with slips; "" where it is none's."""
    words = _words(text.removeprefix(skills.APOLOGY))
    shares = {n: len(words & known) / len(words | known) for n, known in _known().items()}
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= ALIKE else ""


@dataclass(frozen=True)
class Case:
    """A chat up to the user's question, and the right answer; "" means that any will do.

    `topic` is the one that is right, where the question has one.
    """

    kind: str
    messages: list[Message]
    right: str = ""
    thinking: bool = False
    topic: str = ""


class Evaluator:
    """Writes answers with the target and replays them in rounds with the drafter."""

    def __init__(
        self,
        model: Qwen3_5ForCausalLM,
        drafter: Drafter,
        tokenizer: Tokenizer,
        limit: int = LIMIT,
    ) -> None:
        self.model, self.drafter, self.tokenizer = model, drafter, tokenizer
        self.device, self.limit = model.device, limit

    @torch.no_grad()
    def write(self, prompts: list[str]) -> list[tuple[list[int], list[int]]]:
        """Greedy answers to rendered prompts: (prompt ids, answer ids with the end marker)."""
        encoded = [self.tokenizer.encode(prompt).ids for prompt in prompts]
        pad, end = (self.tokenizer.token_to_id(t) for t in ("<|endoftext|>", "<|im_end|>"))
        written: dict[int, list[int]] = {}
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
        for at in range(0, len(order), TOGETHER):
            part = [encoded[i] for i in order[at : at + TOGETHER]]
            width = max(map(len, part))
            ids = torch.tensor([[pad] * (width - len(p)) + p for p in part], device=self.device)
            out = self.model.generate(
                ids, attention_mask=(ids != pad).long(), max_new_tokens=self.limit, do_sample=False,
                eos_token_id=end, pad_token_id=pad,
            )  # fmt: skip
            for i, row in zip(order[at:], out[:, width:].tolist(), strict=False):
                written[i] = row[: row.index(end) + 1] if end in row else row
        return [(prompt, written[i]) for i, prompt in enumerate(encoded)]

    @torch.no_grad()
    def runs(self, written: list[tuple[list[int], list[int]]]) -> list[list[tuple[int, int]]]:
        """(accepted, places left) for each round of writing each answer after its prompt."""
        found: list[list[tuple[int, int]]] = [[] for _ in written]
        order = sorted(range(len(written)), key=lambda i: len(written[i][1]))
        for at in range(0, len(order), ALONGSIDE):
            part = order[at : at + ALONGSIDE]
            drafts = self._drafts([written[i] for i in part])
            for i, several in zip(part, drafts, strict=True):
                found[i] = list(_walk(several, written[i][1]))
        return found

    def _drafts(self, written: list[tuple[list[int], list[int]]]) -> list[list[list[int]]]:
        """What the drafter proposes at each place of each answer."""
        config, pad = self.drafter.config, self.tokenizer.token_to_id("<|endoftext|>")
        width, most = max(map(_length, written)), max(len(answer) for _, answer in written)
        ids = torch.tensor(
            [p + a + [pad] * (width - len(p) - len(a)) for p, a in written], device=self.device
        )
        anchors = torch.tensor(
            [[min(len(p) + i, len(p) + len(a) - 1) for i in range(most)] for p, a in written],
            device=self.device,
        )
        _, features = target.run(self.model, ids, config.target_layer_ids)
        blocks = place_blocks(anchors, width, config.block_size, config.sliding_window)
        table = self.model.get_input_embeddings().weight
        embeds = embed_blocks(table, ids.gather(1, anchors), config)
        hidden = self.drafter(embeds, self.drafter.fuse(features), blocks)
        choice = (hidden @ table.T).argmax(-1).unflatten(1, (-1, config.block_size))
        drafts: list[list[list[int]]] = choice[:, :, 1:].tolist()
        return drafts

    def score(self, cases: Iterable[Case]) -> dict[str, Score]:
        """Scores by kind, in the order of the cases."""
        chats = list(cases)
        scores: dict[str, Score] = {}
        written = self.write([corpus.render_prompt(c.messages, c.thinking) for c in chats])
        count = Counter[str]()
        replayed = []
        for i, case in enumerate(chats):
            count[case.kind] += 1
            if count[case.kind] <= REPLAYED:
                replayed.append(i)
        runs = dict(zip(replayed, self.runs([written[i] for i in replayed]), strict=True))
        for i, (case, (_, answer)) in enumerate(zip(chats, written, strict=True)):
            score, text = scores.setdefault(case.kind, Score()), self.text(answer)
            right = case.right in ("", text)
            score.add(runs.get(i, []), right)
            if case.topic:
                score.judge(case.topic, text)
            if case.thinking:
                thought, ended, _ = self.tokenizer.decode(answer).partition("</think>")
                score.thoughts += bool(ended) and len(thought.split()) >= 3
            if not right:
                score.failures.append({"prompt": case.messages[-1]["content"], "answer": text})
        return scores

    def text(self, answer: list[int]) -> str:
        """The visible answer: after the thinking part, without markers."""
        return self.tokenizer.decode(answer).split("</think>")[-1].strip()

    def dialogues(self) -> Score:
        """The held-out dialogues, each turn after the model's own earlier answers."""
        score = Score()
        running: list[tuple[tuple[tuple[str, str], ...], list[Message]]] = [
            (turns, []) for turns in heldout.DIALOGUES
        ]
        turn = 0
        while running := [(t, m) for t, m in running if len(t) > turn]:
            for turns, messages in running:
                messages += _user(turns[turn][0])
            written = self.write([corpus.render_prompt(m, False) for _, m in running])
            runs = self.runs(written)
            for (turns, messages), (_, answer), rounds in zip(running, written, runs, strict=True):
                text = self.text(answer)
                score.add(rounds, text == turns[turn][1])
                if text != turns[turn][1]:
                    score.failures.append({"prompt": turns[turn][0], "answer": text})
                messages.append({"role": "assistant", "content": text})
            turn += 1
        return score


def _length(written: tuple[list[int], list[int]]) -> int:
    return len(written[0]) + len(written[1])


def _walk(drafts: list[list[int]], answer: list[int]) -> Iterator[tuple[int, int]]:
    """(accepted, places left) for each round, from the drafts at each place of the answer."""
    at = 0
    while at < len(answer) - 1:
        left = len(answer) - 1 - at
        pairs = zip(drafts[at], answer[at + 1 :], strict=False)
        accepted = next((i for i, (d, a) in enumerate(pairs) if d != a), min(left, 15))
        yield accepted, left
        at += accepted + 1


def _user(prompt: str) -> list[Message]:
    return [{"role": "user", "content": prompt}]


def _turns(before: Iterable[tuple[str, str]]) -> list[Message]:
    return [
        message
        for asked, answered in before
        for message in (*_user(asked), {"role": "assistant", "content": answered})
    ]


def heldout_cases(most: int) -> Iterator[Case]:
    """Up to `most` held-out questions of each kind; those of the guide and texts also thinking."""
    count: dict[str, int] = {}
    for question in heldout.questions():
        count[question.kind] = count.get(question.kind, 0) + 1
        if count[question.kind] <= most:
            messages = [*_turns(question.before), *_user(question.prompt)]
            modes = (False, True) if question.kind in ("guide", "free text") else (False,)
            for thinking in modes:
                kind = f"{question.kind}, thinking" if thinking else question.kind
                yield Case(kind, messages, question.right, thinking, question.topic)


def _fresh_cases(skill: Skill, count: int) -> Iterator[Case]:
    """New draws of a skill, asked for the last turn."""
    rng = random.Random(f"evaluate/{skill.__name__}")
    for _ in range(count):
        *before, last = skill(rng)
        messages = [*_turns((turn.user, turn.answer) for turn in before), *_user(last.user)]
        right = "" if skill is skills.free_text else last.answer
        yield Case(f"skill: {skill.__name__.replace('_', ' ')}", messages, right)


def report(
    model: Qwen3_5ForCausalLM,
    drafter: Drafter,
    tokenizer: Tokenizer,
    fresh: int = 48,
    most: int = 1000,
    limit: int = LIMIT,
) -> dict[str, dict[str, Any]]:
    """All figures, by kind of text: up to `most` held-out questions of each kind, and `fresh` draws
    of each skill. No answer is longer than `limit` tokens."""
    evaluator = Evaluator(model, drafter, tokenizer, limit)
    drawn = [skill for skill in corpus.MIX if skill not in (skills.guide, skills.free_text)]
    scores = evaluator.score([
        *heldout_cases(most),
        *(case for skill in drawn for case in _fresh_cases(skill, fresh)),
    ])  # fmt: skip
    scores["dialogues"] = evaluator.dialogues()
    return {kind: score.report() for kind, score in scores.items()}


def summary(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The figures that `AIMS` are for, each over all kinds it is of."""

    def mean(name: str, begins: tuple[str, ...]) -> float:
        rows = [row for kind, row in figures.items() if kind.startswith(begins) and name in row]
        total = sum(row["answers"] for row in rows)
        return round(sum(row[name] * row["answers"] for row in rows) / max(total, 1), 4)

    about = ("guide", "fresh", "other languages")
    return {
        "right_topic": mean("right_topic", about),
        "word_exact": mean("exact", (*about, "follow-ups")),
        "unknown_recognised": mean("right_topic", ("unknown", "nonsense")),
        "wrong_topic": mean("wrong_topic", (*about, "unknown", "nonsense")),
        "guide_length": figures["guide"]["mean_accepted_length"],
        "free_text_length": figures["free text"]["mean_accepted_length"],
        "code_length": figures["skill: code"]["mean_accepted_length"],
    }


def missed(found: Mapping[str, float]) -> list[str]:
    """The names of the aims that `found` does not reach."""
    return [
        name
        for name, aim in AIMS.items()
        if (found[name] > aim if name == "wrong_topic" else found[name] < aim)
    ]


def table(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """The report as a Markdown table."""
    lines = [
        "| text | answers | right topic | word for word | another topic | mean accepted length |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind, row in figures.items():
        exact = "" if kind.startswith("free text") else f"{row['exact']:.1%}"
        right, wrong = (
            f"{row[name]:.1%}" if name in row else "" for name in ("right_topic", "wrong_topic")
        )
        length = row["mean_accepted_length"]
        lines.append(f"| {kind} | {row['answers']} | {right} | {exact} | {wrong} | {length} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table for the checkpoints in a folder, the failures, and the aims missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=corpus.HERE.parent)
    parser.add_argument("--most", type=int, default=1000, help="questions of a kind, at most")
    parser.add_argument("--fresh", type=int, default=48, help="draws of each skill")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    folder, device = arguments.folder, torch.device(arguments.device)
    tokenizer = Tokenizer.from_file(str(folder / "target" / "tokenizer.json"))
    figures = report(
        target.load(folder / "target").to(device), load(folder / "draft").to(device), tokenizer,
        arguments.fresh, arguments.most,
    )  # fmt: skip
    for kind, row in figures.items():
        for failure in row["failures"]:
            print(f"{kind} | {failure['prompt']} | {failure['answer']}")
    found = summary(figures)
    print(table(figures), found, f"missed: {missed(found) or 'no aim'}", sep="\n")


if __name__ == "__main__":
    main()
