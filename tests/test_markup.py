"""A line of a list shows words, not the signs of their source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.markup import without_markup


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("In **Lisbon** or *Porto*", "In Lisbon or Porto"),
        ("**strong, with *slanted* in it**", "strong, with slanted in it"),
        ("***both***, ~~gone~~; **a** **b**", "both, gone; a b"),
        ("# A plan\n- [x] one\n2. two\n> three", "A plan\none\ntwo\nthree"),
        ("`code` and ~~gone~~", "code and gone"),
        ("```python\nx = 1\n```", "\nx = 1\n"),
        ("see [the page](https://a.b/c_(d)) now", "see the page now"),
        ("![a tram](tram.png)", "a tram"),
        ("2 * 3, a*b*c, 2**x, f(*args)", "2 * 3, a*b*c, 2**x, f(*args)"),
        ("(a+b)**2 + a[i]**2 = 3*(4*5)", "(a+b)**2 + a[i]**2 = 3*(4*5)"),
        ("int **p; print(**kw, **more)", "int **p; print(**kw, **more)"),
        ("the end of strong** type", "the end of strong** type"),
        ("a - b, #1, snake_case, x[i](j", "a - b, #1, snake_case, x[i](j"),
        ("**粗体**文字", "粗体文字"),
        ("In **\x02Lisbon\x03**", "In \x02Lisbon\x03"),
        ("[here](https://\x02lisbon\x03.pt)", "[here](https://\x02lisbon\x03.pt)"),
    ],
)
def test_words_are_left(text: str, words: str) -> None:
    assert without_markup(text) == words


@given(st.text(max_size=120))
def test_nothing_is_added(text: str) -> None:
    left = iter(text)
    assert all(c in left for c in without_markup(text))
