"""What the pair can do: exact answers, and how far the drafter's blocks are accepted.

DFlash decoding under greedy verify is lossless, so it is enough to write each answer plainly, to
draft from every position of it, and to walk through the answer in rounds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import Qwen3_5ForCausalLM

from . import corpus, skills, target
from .corpus import Message
from .drafter import Drafter, embed_blocks, load, place_blocks
from .skills import Skill

LIMIT = 200  # tokens in an answer
TOGETHER = 512  # prompts written in one batch


@dataclass
class Score:
    """Counters over the answers of one kind of text."""

    answers: int = 0
    right: int = 0
    rounds: int = 0
    accepted: int = 0
    tried: list[int] = field(default_factory=lambda: [0] * 15)
    kept: list[int] = field(default_factory=lambda: [0] * 15)

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

    def report(self) -> dict[str, Any]:
        """The figures of the report."""
        length = (self.accepted + self.rounds) / max(self.rounds, 1)
        rates = [round(k / t, 3) for k, t in zip(self.kept, self.tried, strict=True) if t]
        return {
            "answers": self.answers,
            "exact": round(self.right / max(self.answers, 1), 3),
            "rounds": self.rounds,
            "accepted": self.accepted,
            "mean_accepted_length": round(length, 2),
            "acceptance_per_position": rates,
        }


@dataclass(frozen=True)
class Case:
    """A chat up to the user's question, and the right answers; none means that any will do."""

    kind: str
    messages: list[Message]
    right: list[str]
    thinking: bool = False


class Evaluator:
    """Writes answers with the target and replays them in rounds with the drafter."""

    def __init__(self, model: Qwen3_5ForCausalLM, drafter: Drafter, tokenizer: Tokenizer) -> None:
        self.model, self.drafter, self.tokenizer = model, drafter, tokenizer
        self.device = model.device

    @torch.no_grad()
    def write(self, prompts: list[str]) -> list[tuple[list[int], list[int]]]:
        """Greedy answers to rendered prompts: (prompt ids, answer ids with the end marker)."""
        written: list[tuple[list[int], list[int]]] = []
        encoded = [self.tokenizer.encode(prompt).ids for prompt in prompts]
        pad, end = (self.tokenizer.token_to_id(t) for t in ("<|endoftext|>", "<|im_end|>"))
        for at in range(0, len(encoded), TOGETHER):
            part = encoded[at : at + TOGETHER]
            width = max(map(len, part))
            ids = torch.tensor([[pad] * (width - len(p)) + p for p in part], device=self.device)
            out = self.model.generate(
                ids, attention_mask=(ids != pad).long(), max_new_tokens=LIMIT, do_sample=False,
                eos_token_id=end, pad_token_id=pad,
            )  # fmt: skip
            for prompt, row in zip(part, out[:, width:].tolist(), strict=True):
                written.append((prompt, row[: row.index(end) + 1] if end in row else row))
        return written

    @torch.no_grad()
    def runs(self, prompt: list[int], answer: list[int]) -> list[tuple[int, int]]:
        """(accepted, places left) for each round of writing `answer` after `prompt`."""
        ids = torch.tensor([prompt + answer], device=self.device)
        config = self.drafter.config
        _, features = target.run(self.model, ids, config.target_layer_ids)
        first, last = len(prompt), ids.shape[1] - 1
        if first >= last:
            return []
        anchors = torch.arange(first, last, device=self.device)[None]
        blocks = place_blocks(anchors, ids.shape[1], config.block_size, config.sliding_window)
        table = self.model.get_input_embeddings().weight
        embeds = embed_blocks(table, ids[:, first:last], config)
        hidden = self.drafter(embeds, self.drafter.fuse(features), blocks)
        drafts = (hidden @ table.T).argmax(-1).view(-1, config.block_size)[:, 1:].tolist()
        found, at = [], 0
        while at < len(answer) - 1:
            left = len(answer) - 1 - at
            pairs = zip(drafts[at], answer[at + 1 :], strict=False)
            accepted = next((i for i, (d, a) in enumerate(pairs) if d != a), min(left, 15))
            found.append((accepted, left))
            at += accepted + 1
        return found

    def score(self, cases: Iterable[Case]) -> dict[str, Score]:
        """Scores by kind, in the order of the cases."""
        chats, scores = list(cases), {}
        written = self.write([corpus.render_prompt(c.messages, c.thinking) for c in chats])
        for case, (prompt, answer) in zip(chats, written, strict=True):
            right = not case.right or self.text(answer) in case.right
            scores.setdefault(case.kind, Score()).add(self.runs(prompt, answer), right)
        return scores

    def text(self, answer: list[int]) -> str:
        """The visible answer: after the thinking part, without markers."""
        return self.tokenizer.decode(answer).split("</think>")[-1].strip()

    def dialogues(self) -> Score:
        """The held-out dialogues, each turn after the model's own earlier answers."""
        score = Score()
        running: list[tuple[dict[str, list[Any]], list[Message]]] = [
            (entry, []) for entry in corpus.heldout()["dialogues"]
        ]
        turn = 0
        while running := [(e, m) for e, m in running if len(e["prompts"]) > turn]:
            for entry, messages in running:
                messages += _user(entry["prompts"][turn])
            written = self.write([corpus.render_prompt(m, False) for _, m in running])
            for (entry, messages), (prompt, answer) in zip(running, written, strict=True):
                score.add(self.runs(prompt, answer), self.text(answer) in entry["answers"][turn])
                messages.append({"role": "assistant", "content": self.text(answer)})
            turn += 1
        return score


def _user(prompt: str) -> list[Message]:
    return [{"role": "user", "content": prompt}]


def _heldout_cases(thinking: bool) -> Iterator[Case]:
    suffix = ", thinking" if thinking else ""
    for entry in corpus.heldout()["guide"]:
        yield Case(f"held-out guide{suffix}", _user(entry["prompt"]), entry["answers"], thinking)
    for prompt in corpus.heldout()["free_text"]:
        yield Case(f"held-out free text{suffix}", _user(prompt), [], thinking)


def _fresh_cases(skill: Skill, count: int) -> Iterator[Case]:
    """New draws of a skill, asked for the last turn."""
    rng = random.Random(f"evaluate/{skill.__name__}")
    for _ in range(count):
        *before, last = skill(rng)
        messages = []
        for turn in before:
            messages += [*_user(turn.user), {"role": "assistant", "content": turn.answer}]
        yield Case(skill.__name__.replace("_", " "), messages + _user(last.user), [last.answer])


def report(
    model: Qwen3_5ForCausalLM, drafter: Drafter, tokenizer: Tokenizer, fresh: int = 24
) -> dict[str, dict[str, Any]]:
    """All figures, by kind of text; besides the held-out prompts `fresh` draws of each skill."""
    evaluator = Evaluator(model, drafter, tokenizer)
    drawn = [skill for skill in corpus.MIX if skill not in (skills.guide, skills.free_text)]
    scores = evaluator.score([
        *_heldout_cases(thinking=False),
        *_heldout_cases(thinking=True),
        *(case for skill in drawn for case in _fresh_cases(skill, fresh)),
    ])  # fmt: skip
    scores["held-out dialogues"] = evaluator.dialogues()
    return {kind: score.report() for kind, score in scores.items()}


def main(folder: Path) -> None:
    """Prints the table for the checkpoints in `folder`."""
    tokenizer = Tokenizer.from_file(str(folder / "target" / "tokenizer.json"))
    figures = report(target.load(folder / "target"), load(folder / "draft"), tokenizer)
    for kind, row in figures.items():
        print(f"{kind:30} {row}")


if __name__ == "__main__":
    main(corpus.HERE.parent)
