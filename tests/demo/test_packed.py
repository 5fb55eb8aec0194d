"""Rows in which several chats stand: each learns as if it stood there alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tokenizers import Tokenizer  # noqa: E402

from assets.demo.train import corpus, packed, target, train  # noqa: E402

DEMO = Path(__file__).parents[2] / "assets" / "demo"


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return Tokenizer.from_file(str(DEMO / "target" / "tokenizer.json"))


@pytest.fixture(scope="module")
def rows(words: Tokenizer) -> np.ndarray:
    return corpus._pack(("a seed", 60, words.to_str()))


def test_a_chat_beside_others_gives_the_logits_that_it_gives_alone() -> None:
    """A text, noise, and one token for ever, over two chunks each."""
    model = target.load(DEMO / "target")
    dice = torch.Generator().manual_seed(1)
    chats = [
        torch.randint(0, 4000, (87,), generator=dice),
        torch.randint(0, 4000, (61,), generator=dice),
        torch.full((108,), 17),
    ]
    places = torch.cat([torch.arange(len(chat)) for chat in chats])[None]
    with torch.no_grad():
        hidden = packed.Packed(model, compiled=False).hidden(torch.cat(chats)[None], places)
        logits = (
            packed.norm(hidden, model.model.norm.weight) @ model.get_input_embeddings().weight.T
        )
        for chat, found in zip(chats, logits[0].split([len(c) for c in chats]), strict=True):
            wanted = model(input_ids=chat[None], use_cache=False).logits[0]
            torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-4)


def test_its_gradients_are_those_of_the_plain_loss() -> None:
    model = target.load(DEMO / "target")
    ids = torch.randint(0, 4000, (1, 128), generator=torch.Generator().manual_seed(2))
    logits = model(input_ids=ids, use_cache=False).logits
    torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:]).backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    weights = torch.ones(1, 128)
    weights[0, 0] = 0
    alone = packed.Rows(ids, torch.arange(128)[None], weights)
    packed.Packed(model, compiled=False).loss(alone).backward()
    for name, p in model.named_parameters():
        assert (p.grad - wanted[name]).norm() <= 2e-3 * wanted[name].norm(), name


def test_the_inverse_holds_where_powers_would_not() -> None:
    """All keys equal: the powers of the matrix have entries of 1e18."""
    lower = torch.ones(64, 64).tril(-1)
    torch.testing.assert_close(
        packed.inverse(lower) @ (lower + torch.eye(64)), torch.eye(64), atol=1e-4, rtol=0
    )


def test_parts_of_a_chat_have_the_tokens_of_the_whole(words: Tokenizer) -> None:
    known, rng = corpus.Words(words.to_str()), random.Random(5)
    for _ in range(300):
        chat = corpus.draw_chat(rng)
        ids, _ = corpus.encode(known, chat)
        assert ids.tolist() == words.encode(corpus.render_chat(chat)).ids


def test_words_split_at_random_are_the_same_words(words: Tokenizer) -> None:
    known, rng = corpus.Words(words.to_str()), random.Random(6)
    splits = {known.split("what does the drafter do", rng) for _ in range(50)}
    assert len(splits) > 5
    assert {words.decode(list(ids)) for ids in splits} == {"what does the drafter do"}


def test_rows_hold_whole_chats_and_count_what_the_guide_writes(
    rows: np.ndarray, words: Tokenizer
) -> None:
    assert rows.shape[1:] == (3, corpus.WIDTH)
    end = words.token_to_id("<|im_end|>")
    for ids, places, weights in rows:
        begins = np.flatnonzero(places == 0)
        assert (ids[begins[ids[begins] != corpus.PAD]] == words.token_to_id("<|im_start|>")).all()
        assert not weights[ids == corpus.PAD].any()
        assert (weights[(ids == end) & (weights > 0)] >= 1).all()
    assert 0.3 < (rows[:, 2] > 0).mean() < 0.8
    assert words.token_to_id("<|endoftext|>") == corpus.PAD


def test_batches_are_new_while_there_are_new_ones(rows: np.ndarray) -> None:
    made = iter([rows, None, None])
    stream = train.Stream(made, len(rows) // 2, 1, torch.device("cpu"))
    batches = iter(stream)
    first, second, third = (next(batches) for _ in range(3))
    assert stream.again == 1
    assert not torch.equal(first.ids, second.ids)
    assert any(torch.equal(third.ids, batch.ids) for batch in (first, second))
    assert first.ids.shape == (len(rows) // 2, corpus.WIDTH)
