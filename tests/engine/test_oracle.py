"""The converted demo pair against the code that trained it: transformers and our drafter.

F32 weights on both sides. What is left is the order of additions.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, Qwen3_5ForCausalLM, Qwen3_5TextConfig

from app.binding import NativePair
from app.binding.inspection import eval_draft, eval_target
from app.convert import WeightType, convert_target
from app.engine.pair import LoadedPair
from assets.demo.train import drafter as reference_drafter
from assets.demo.train import target as reference_target
from tests.convert import tiny

from .conftest import DEMO, chat

PROMPTS = (
    "What is DFlash?",
    "Count from 1 to 20.",
    "Tell me a short story about a fox in a library.",
    "repeat after me: 👩‍👩‍👧‍👦 안녕하세요 é",
    "Write a Python function that adds two numbers.",
)


@pytest.fixture(scope="module")
def model() -> Qwen3_5ForCausalLM:
    return reference_target.load(DEMO / "target")


def tokens_of(loaded: LoadedPair, prompt: str) -> list[int]:
    """Prompt and answer, so that all kinds of positions are compared."""
    tokens = loaded.prompt(chat(prompt), think=False).tokens
    first, _ = loaded.native.prompt(tokens)
    out = [*tokens, first]
    for _ in range(4):
        out += loaded.native.round(15).emitted
    return out


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("rows", [1, 16])
def test_logits_equal_transformers(
    cold: LoadedPair, model: Qwen3_5ForCausalLM, prompt: str, rows: int
) -> None:
    tokens = tokens_of(cold, prompt)
    ours = eval_target(cold.native, tokens, rows)
    with torch.no_grad():
        theirs = model(input_ids=torch.tensor([tokens])).logits[0].float().numpy()
    worst = float(np.abs(ours - theirs[:, : ours.shape[1]]).max())
    assert worst <= 2e-3


@pytest.mark.parametrize(("keys", "values"), [(2, 6), (4, 4), (1, 8)])
def test_logits_equal_transformers_whatever_the_number_of_heads(
    tmp_path: Path, keys: int, values: int
) -> None:
    """Rows of the linear attention in another order would leave every size as it is."""
    shape = tiny.Target(dtype="F32", key_heads=keys, value_heads=values)
    folder = tiny.write_target(tmp_path / "source", shape)
    done = convert_target(folder, tmp_path / "x.gguf", WeightType.F32)
    ids = [*range(40, 72), *range(100, 132)]
    pair = NativePair(done.path, n_ctx=256)
    try:
        ours = eval_target(pair, ids, 1)
    finally:
        pair.close()
    settings = json.loads((folder / "config.json").read_text("utf-8"))["text_config"]
    model = Qwen3_5ForCausalLM._from_config(Qwen3_5TextConfig(**settings, dtype="float32"))
    stored = load_file(folder / "model.safetensors")
    prefix = "model.language_model."
    model.model.load_state_dict({name.removeprefix(prefix): t for name, t in stored.items()})
    model.tie_weights()
    with torch.no_grad():
        theirs = model.eval()(input_ids=torch.tensor([ids])).logits[0].numpy()
    assert float(np.abs(ours - theirs).max()) <= 1e-4 * float(np.abs(theirs).max())


@pytest.mark.parametrize("prompt", PROMPTS)
def test_drafter_hidden_states_equal_the_training_module(
    cold: LoadedPair, model: Qwen3_5ForCausalLM, prompt: str
) -> None:
    tokens = tokens_of(cold, prompt)
    context, anchor = tokens[:-1], tokens[-1]
    features, hidden = eval_draft(cold.native, context, anchor)

    drafter = reference_drafter.load(DEMO / "draft")
    taps = drafter.config.target_layer_ids
    _, wanted = reference_target.run(model, torch.tensor([context]), taps)
    assert float(np.abs(features - wanted[0].detach().numpy()).max()) <= 2e-3

    block = torch.full((drafter.config.block_size,), drafter.config.mask_token_id)
    block[0] = anchor
    table = model.get_input_embeddings().weight
    theirs = reference_drafter.draft_hidden(drafter, table, block, torch.from_numpy(features))
    assert float(np.abs(hidden - theirs.numpy()).max()) <= 2e-3


@pytest.mark.parametrize(
    "text",
    [
        "1234567",
        "\t\t         x",
        "don't",
        "Café — 123 😊",
        "é ñ ֑ נ",
        "한국어 안녕",
        "a\r\n\nb",
        "  leading and trailing  ",
        "",
    ],
)
def test_token_ids_equal_the_source_tokenizer(cold: LoadedPair, text: str) -> None:
    theirs = AutoTokenizer.from_pretrained(DEMO / "target")
    assert cold.native.tokenize(text) == theirs(text, add_special_tokens=False)["input_ids"]
