"""Trains the demo pair: tokenizer, target, drafter, report.

    python -m assets.demo.train.train --out assets/demo

Both trainings end after a number of steps or of seconds, whichever comes first, and the learning
rate follows the same clock, so that a slow card still ends with a finished model. All cores but
two make chats for the target while it learns.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import Qwen3_5ForCausalLM

from . import corpus, drafter, evaluate, heldout, target, tokenizer
from .drafter import Drafter, DrafterConfig, embed_blocks, place_blocks
from .packed import Packed, Rows

Data = dict[int, tuple[np.ndarray, np.ndarray]]
Batch = tuple[Tensor, Tensor]
WARMUP = 200
DECAY = 7.0  # how fast the weight of a block place falls: exp(-i / DECAY)


class Stream:
    """Endless batches of packed rows, each of them new while `made` keeps up.

    `made` gives rows as `corpus.rows` does. `again` counts the batches that were given once more.
    """

    def __init__(
        self, made: Iterator[np.ndarray | None], count: int, seed: int, device: torch.device
    ) -> None:
        self.made, self.count, self.device, self.again = made, count, device, 0
        self.rng = random.Random(seed)
        self.kept: list[Tensor] = []
        self.waiting = torch.empty((0, 3, corpus.WIDTH), dtype=torch.int16, device=device)

    def __iter__(self) -> Iterator[Rows]:
        while True:
            while len(self.waiting) < self.count and (came := next(self.made)) is not None:
                rows = torch.from_numpy(came).to(self.device)
                self.waiting = torch.cat((self.waiting, rows))
            if len(self.waiting) >= self.count:
                self.kept.append(self.waiting[: self.count])
                self.waiting = self.waiting[self.count :]
                batch = self.kept[-1]
            elif self.kept:
                self.again += 1
                batch = self.rng.choice(self.kept)
            else:
                time.sleep(0.01)
                continue
            ids, places, weights = batch.unbind(1)
            yield Rows(ids.long(), places.long(), weights.float())


def batches(data: Data, tokens: int, seed: int, device: torch.device) -> Iterator[Batch]:
    """Endless batches (ids [B, S] int64, loss mask [B, S] bool) of about `tokens` tokens each."""
    held = {
        n: (torch.from_numpy(i).to(device), torch.from_numpy(m).to(device))
        for n, (i, m) in data.items()
    }
    rng, dice = random.Random(seed), torch.Generator().manual_seed(seed)
    while True:
        plan: list[tuple[int, Tensor]] = []
        for length, (ids, _) in held.items():
            order = torch.randperm(len(ids), generator=dice).to(device)
            plan += [(length, part) for part in order.split(max(1, tokens // length))]
        rng.shuffle(plan)
        for length, rows in plan:
            ids, mask = held[length]
            yield ids[rows].long(), mask[rows]


def recorded(step: Callable[[Rows], Tensor], rows: Rows) -> Callable[[Rows], Tensor]:
    """`step` as one CUDA graph, for batches of the shape of `rows`.

    It has 2,000 kernels, which take half of the time that launching them one by one does.
    """
    held = Rows(*(part.clone() for part in rows))
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):  # compiles, and makes what the optimizer keeps
            step(held)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(held)

    def replay(batch: Rows) -> Tensor:
        for part, new in zip(held, batch, strict=True):
            part.copy_(new)
        graph.replay()
        return loss.clone()

    return replay


def fit(
    name: str,
    parameters: list[nn.Parameter],
    loss_of: Callable[[Any], Tensor],
    stream: Iterator[Any],
    steps: int,
    seconds: float,
    graph: bool = False,
    rate: float = 1.5e-3,
) -> dict[str, object]:
    """AdamW with warm-up and cosine decay. Returns steps, seconds and the course of the loss.

    With `graph` each step is a replay of the first one's.
    """
    matrices = [p for p in parameters if p.ndim >= 2]
    vectors = [p for p in parameters if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    device = parameters[0].device
    pace = torch.zeros((), device=device)
    on_card = device.type == "cuda"
    optimizer = torch.optim.AdamW(
        groups, lr=pace, betas=(0.9, 0.95), fused=on_card, capturable=on_card
    )

    def learn(batch: Any) -> Tensor:
        loss = loss_of(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss.detach()

    if graph:
        learn = recorded(learn, next(stream))
    started, course, step, losses = time.monotonic(), [], 0, []
    while True:
        elapsed = time.monotonic() - started
        done = max(step / steps, elapsed / seconds)
        if done >= 1:
            break
        now = rate * min(1.0, (step + 1) / WARMUP) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"].fill_(now)
        losses.append(learn(next(stream)))
        step += 1
        if step % 25 == 0 and on_card:
            torch.cuda.synchronize()  # the clock is that of the card
        if len(losses) == 250:
            course.append(round(torch.stack(losses).mean().item(), 4))
            print(f"{name} step {step} loss {course[-1]} after {elapsed:.0f} s", flush=True)
            losses.clear()
    return {"steps": step, "seconds": round(time.monotonic() - started, 1), "loss": course}


def drafter_loss(model: Qwen3_5ForCausalLM, draft: Drafter, batch: Batch) -> Tensor:
    """Cross-entropy against the target's own choices, at random anchors.

    A place of a block counts only while the text before it, from the anchor on, is what the target
    itself would have written: beyond that its choice belongs to another text.
    """
    ids, mask = batch
    config, length = draft.config, ids.shape[1]
    with torch.no_grad():
        final, features = target.run(model, ids, config.target_layer_ids)
        table = model.get_input_embeddings().weight
        choice = (final @ table.T).argmax(-1)
    anchors = torch.multinomial(mask.float(), max(8, length // 12), replacement=True)
    blocks = place_blocks(anchors, length, config.block_size, config.sliding_window)
    hidden = draft(
        embed_blocks(table, ids.gather(1, anchors), config), draft.fuse(features), blocks
    )
    hidden = hidden.unflatten(1, (-1, config.block_size))[:, :, 1:]
    places = blocks.positions.view(*anchors.shape, -1)[..., 1:]
    at = places.clamp(max=length - 1)
    wanted = choice.gather(1, (at - 1).flatten(1)).view_as(at)
    inside = mask.gather(1, at.flatten(1)).view_as(at) & (places < length)
    follows = ids.gather(1, at.flatten(1)).view_as(at) == wanted
    on_path = F.pad(follows.long().cumprod(-1)[..., :-1], (1, 0), value=1)
    fade = torch.exp(-torch.arange(config.block_size - 1, device=ids.device) / DECAY)
    weight = (inside.long().cumprod(-1) * on_path) * fade
    loss = F.cross_entropy((hidden @ table.T).flatten(0, 2), wanted.flatten(), reduction="none")
    return (loss * weight.flatten()).sum() / weight.sum()


def check_heldout(seed: int, count: int) -> None:
    """Asserts on a sample that no training prompt contains a held-out one."""
    rng = random.Random(seed)
    for _ in range(count):
        for message in corpus.draw_chat(rng).messages:
            assert message["role"] != "user" or not corpus.is_heldout(message["content"])


def train(arguments: argparse.Namespace) -> None:
    """The whole recipe, from the seed to the report."""
    started = time.monotonic()
    device = torch.device(arguments.device)
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("high")
    folders = arguments.out / "target", arguments.out / "draft"
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)

    check_heldout(arguments.seed, 2000)
    pool = multiprocessing.Pool(max(1, (os.cpu_count() or 1) - 2))  # before there is a card
    words: Tokenizer = tokenizer.train(pool, arguments.seed)
    tokenizer.save(words, folders[0])
    print(f"vocabulary after {time.monotonic() - started:.0f} s", flush=True)

    model = target.create().to(device)
    on_card = device.type == "cuda"
    packed = Packed(model, compiled=on_card)
    made = corpus.rows(pool, words, arguments.seed, ahead=2 * arguments.rows)
    stream = Stream(made, arguments.rows, arguments.seed, device)
    target_course = fit(
        "target", list(model.parameters()), packed.loss, iter(stream),
        arguments.target_steps, arguments.target_seconds, graph=on_card and arguments.graph,
    )  # fmt: skip
    print(f"target learned after {time.monotonic() - started:.0f} s", flush=True)
    target_course |= {"rows": arguments.rows, "batches_again": stream.again}
    target.round_to_bf16(model)
    model.eval().requires_grad_(False)
    target.save(model, folders[0])

    data = corpus.build(pool, words, arguments.seed, arguments.chats)
    pool.terminate()
    counts = {length: len(ids) for length, (ids, _) in data.items()}
    print(f"{counts} chats by length after {time.monotonic() - started:.0f} s", flush=True)
    draft = Drafter(DrafterConfig()).to(device)
    draft_course = fit(
        "drafter", list(draft.parameters()), lambda b: drafter_loss(model, draft, b),
        batches(data, arguments.tokens, arguments.seed, device),
        arguments.draft_steps, arguments.draft_seconds,
    )  # fmt: skip
    target.round_to_bf16(draft)
    draft.eval()
    drafter.save(draft, folders[1])

    print(f"trained after {time.monotonic() - started:.0f} s", flush=True)
    torch.set_float32_matmul_precision("highest")
    figures = evaluate.report(
        model, draft, words, arguments.fresh, arguments.most, arguments.answer_tokens
    )
    found = evaluate.summary(figures)
    result = {
        "seed": arguments.seed,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
        "chats": counts,
        "parameters": {
            "target": sum(p.numel() for p in model.parameters()),
            "drafter": sum(p.numel() for p in draft.parameters()),
        },
        "target": target_course,
        "drafter": draft_course,
        "summary": found,
        "missed": evaluate.missed(found),
        "evaluation": figures,
        "seconds": round(time.monotonic() - started),
    }
    target.write_json(result, arguments.out / "train" / "report.json")
    heldout.write(arguments.out / "train" / heldout.JSON.name)
    print(evaluate.table(figures), found, f"missed: {result['missed'] or 'no aim'}", sep="\n")
    print(f"ready after {result['seconds']} s", flush=True)


def main() -> None:
    """Reads the arguments; the defaults are for one H100 or H200 within ten minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=corpus.HERE.parent)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rows", type=int, default=64, help="packed rows in a batch of the target")
    parser.add_argument(
        "--graph", action=argparse.BooleanOptionalAction, default=True, help="record a step as one"
    )
    parser.add_argument("--chats", type=int, default=150_000, help="for the drafter")
    parser.add_argument("--tokens", type=int, default=24_576, help="in a batch of the drafter")
    parser.add_argument("--target-steps", type=int, default=200_000)
    parser.add_argument("--target-seconds", type=float, default=300)
    parser.add_argument("--draft-steps", type=int, default=20_000)
    parser.add_argument("--draft-seconds", type=float, default=70)
    parser.add_argument("--fresh", type=int, default=48, help="draws of each skill, to measure")
    parser.add_argument("--most", type=int, default=1000, help="held-out questions of a kind")
    parser.add_argument("--answer-tokens", type=int, default=evaluate.LIMIT)
    arguments = parser.parse_args()
    (arguments.out / "train").mkdir(parents=True, exist_ok=True)
    train(arguments)


if __name__ == "__main__":
    main()
