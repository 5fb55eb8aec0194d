"""Texts at which tokenizers part company: written ones, and many more by chance."""

from __future__ import annotations

import random
import unicodedata
from typing import Final

_WRITTEN: Final = (
    "Hello, world!",
    "1234567 12 3.14 1,000,000 0x1F ٣٤٥ ⅻ ² ½ 一二三",
    "\t\t         x\n\n\n  y \t \n z   ",
    "don't DON'T I'll we'Ve they'd it's 'tis o'clock ’s",
    "Café — 123 😊",
    "q\u0303 x\u0302y\u0302 a\u0323\u0328b",
    "안녕하세요 \u1112\u1161\u11ab",
    "line\r\n\nline\r\rline\n \n",
    "नमस्ते क्षत्रिय ไทย العَرَبِيَّة עִבְרִית",
    "👩‍👩‍👧‍👦 🇩🇪 ☺️ 𠮷野家 𝒳𝓎",
    "std::vector<int> a{1, 2}; // ok\n#include <x>\n\treturn a[i]->b;",
    "https://example.org/a_b?c=d&e=%20 mail@example.org",
    "   leading, trailing   ",
    "a\u00a0b\u2003c\u3000d\u200be\ufefff",
    "!!!???...---===___***###\n\n###",
    "\x00\x01\x7f \x1b[0m",
    "Ärger ÀÉÎÕÜ ß ﬁ Ⅷ ǅ ͅ ʰ",
    "CamelCase snake_case kebab-case ALLCAPS mixed123numbers456",
    "«»„“”‘’—–… ¡¿ §¶ €£¥ ©®™",
    "",
    " ",
    "\n",
)
_ALPHABET: Final = (
    *"aZéß9१Ⅻ½ \t\n\r'.,-_/#{<|>😊漢가ن",
    *("\u0302", "\u0301", "\u093f", "\u200d", "\ufe0f", "\u00a0", "\u3000", "\u200b"),
    *("'s", "'LL", "  ", "\r\n", "<|", "|>", "don't", "ab", "THE", "ing", "123"),
)
_SEED: Final = 20
_RANDOM: Final = 600


def texts(special: tuple[str, ...] = ()) -> list[str]:
    """The texts, in NFC; with each of the special tokens alone and in the midst of others.

    NFC, into which Qwen's tokenizer turns everything before it splits.
    """
    chance = random.Random(_SEED)
    pieces = (*_ALPHABET, *special[:64])
    made = ["".join(chance.choices(pieces, k=chance.randint(2, 24))) for _ in range(_RANDOM)]
    spelt = [text for token in special for text in (token, f"a{token} {token}\n")]
    return [unicodedata.normalize("NFC", text) for text in (*_WRITTEN, *made, *spelt)]
