"""The reference drafter: many blocks in one pass equal one block at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from assets.demo.train import drafter  # noqa: E402

DEMO = Path(__file__).parents[2] / "assets" / "demo"


def test_many_blocks_equal_single_drafts() -> None:
    torch.manual_seed(1)
    model = drafter.load(DEMO / "draft")
    config = model.config
    table = torch.randn(config.vocab_size, config.hidden_size)
    features = torch.randn(1, 200, len(config.target_layer_ids) * config.hidden_size)
    anchors, ids = torch.tensor([[3, 150, 200]]), torch.tensor([[7, 8, 9]])
    blocks = drafter.place_blocks(anchors, 200, config.block_size, config.sliding_window)
    with torch.no_grad():
        embeds = drafter.embed_blocks(table, ids, config)
        together = model(embeds, model.fuse(features), blocks)[0].view(3, config.block_size, -1)
    for row, anchor, first in zip(together, anchors[0], ids[0], strict=True):
        block = torch.full((config.block_size,), config.mask_token_id)
        block[0] = first
        alone = drafter.draft_hidden(model, table, block, features[0, :anchor])
        torch.testing.assert_close(row, alone, atol=2e-4, rtol=1e-4)


def test_sliding_layers_see_less_than_a_window_back() -> None:
    blocks = drafter.place_blocks(torch.tensor([[100]]), 100, 16, 40)
    first, last = blocks.sliding[0, 0, 0], blocks.sliding[0, 0, -1]
    assert first[:100].nonzero()[0].item() == 61
    assert last[:100].nonzero()[0].item() == 76
    assert blocks.full[0, 0].all()
