"""Greedy text with the drafter equals plain greedy text, or the control explains it (C28)."""

from __future__ import annotations

from app.engine import AskParams
from app.engine.session import Session
from tests.engine.conftest import ask, chat

LENGTH = 256


def prompts(heldout: dict[str, list[object]]) -> list[str]:
    guide = [str(entry["prompt"]) for entry in heldout["guide"][:20]]  # type: ignore[index]
    return guide + [str(text) for text in heldout["free_text"][:10]]


def test_drafted_text_is_plain_text_or_the_control_flips(
    demo: Session, heldout: dict[str, list[object]]
) -> None:
    """30 prompts of 256 tokens, end-of-generation tokens run over."""
    pair, same = demo.pair, 0
    for question in prompts(heldout):
        tokens = demo.prompt_tokens(chat(question), think=False)
        texts = []
        for n_draft in (0, 15):
            pair.reset()
            ids = [pair.prompt(tokens, drafting=n_draft > 0)[0]]
            while len(ids) < LENGTH:
                ids += pair.round(n_draft).emitted
            texts.append(ids[:LENGTH])
        plain, drafted = texts
        at = next((i for i in range(LENGTH) if plain[i] != drafted[i]), None)
        if at is None:
            same += 1
            continue
        found = demo.control(chat(question), AskParams(), plain, at)
        assert found.explains, (question, at, found)
    assert same >= 25  # the control explains the odd one, not the rule


def test_the_control_does_not_explain_a_fault(demo: Session) -> None:
    question = chat("What is DFlash?")
    plain = ask(demo, question, AskParams(max_tokens=40, draft=False)).answer.token_ids
    found = demo.control(question, AskParams(), plain, 17)
    assert not found.explains
    assert found.gap > found.spread > 0


def test_the_control_sees_a_target_that_flips(demo: Session) -> None:
    """An answer that the target itself does not give stands for one it gives only by chance."""
    question = chat("What is DFlash?")
    plain = list(ask(demo, question, AskParams(max_tokens=40, draft=False)).answer.token_ids)
    plain[9] = plain[9] + 1 if plain[9] + 1 != plain[10] else plain[9] + 2
    assert demo.control(question, AskParams(), plain, 20).flips
