"""GGUF files that are wrong in one place or a few, made from whole ones by a number.

The same number gives the same damage: what was found once can be looked at again.
(Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from gguf.constants import GGML_QUANT_SIZES

STRING, ARRAY = 8, 9
NUMBERS: Final = {
    **{0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B"},
    **{10: "<Q", 11: "<q", 12: "<d"},
}
FLOATS: Final = (6, 12)
ALIGNMENT: Final = 32
LARGEST: Final = 1 << 20  # bytes of a tensor that is written
SIZES: Final = {kind.value: sizes for kind, sizes in GGML_QUANT_SIZES.items()}


@dataclass(frozen=True, slots=True)
class Value:
    """Of a key: the number of its type, and its bytes in the file."""

    kind: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Tensor:
    name: bytes
    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(slots=True)
class Image:
    """A GGUF file taken apart. `counts` are what its head says of tensors and keys."""

    keys: list[tuple[bytes, Value]]
    tensors: list[Tensor]
    data: bytearray
    version: int = 3
    counts: tuple[int | None, int | None] = (None, None)  # None: as many as there are
    pad: int = ALIGNMENT
    rough: list[Callable[[bytearray], None]] = field(default_factory=list)  # done to all its bytes
    head: int = 0  # bytes of what was written before the data

    @classmethod
    def read(cls, file: Path) -> Self:
        raw = file.read_bytes()
        at = 24
        n_tensors, n_keys = struct.unpack("<QQ", raw[8:24])

        def text() -> bytes:
            nonlocal at
            (n,) = struct.unpack_from("<Q", raw, at)
            at += 8 + n
            return raw[at - n : at]

        def value(kind: int) -> None:
            nonlocal at
            if kind == STRING:
                text()
            elif kind == ARRAY:
                inner, n = struct.unpack_from("<IQ", raw, at)
                at += 12
                for _ in range(n):
                    value(inner)
            else:
                at += struct.calcsize(NUMBERS[kind])

        keys = []
        for _ in range(n_keys):
            name = text()
            (kind,) = struct.unpack_from("<I", raw, at)
            at += 4
            start = at
            value(kind)
            keys.append((name, Value(kind, raw[start:at])))
        tensors = []
        for _ in range(n_tensors):
            name = text()
            (n,) = struct.unpack_from("<I", raw, at)
            shape = struct.unpack_from(f"<{n}Q", raw, at + 4)
            kind, offset = struct.unpack_from("<IQ", raw, at + 4 + 8 * n)
            at += 16 + 8 * n
            tensors.append(Tensor(name, shape, kind, offset))
        return cls(keys, tensors, bytearray(raw[at + -at % ALIGNMENT :]))

    def copy(self) -> Image:
        return replace(
            self, keys=[*self.keys], tensors=[*self.tensors], data=bytearray(self.data), rough=[]
        )

    def written(self) -> bytes:
        n_tensors, n_keys = self.counts
        out = bytearray(b"GGUF")
        out += struct.pack("<I", self.version)
        out += unsigned(len(self.tensors) if n_tensors is None else n_tensors)
        out += unsigned(len(self.keys) if n_keys is None else n_keys)
        for name, value in self.keys:
            out += text(name) + struct.pack("<I", value.kind) + value.raw
        for tensor in self.tensors:
            out += text(tensor.name) + struct.pack("<I", len(tensor.shape))
            out += b"".join(map(unsigned, tensor.shape))
            out += struct.pack("<I", tensor.kind) + unsigned(tensor.offset)
        out += bytes(-len(out) % self.pad)
        self.head = len(out)
        out += self.data
        for change in self.rough:
            change(out)
        return bytes(out)

    def lay_out(self) -> None:
        """Gives each tensor the place and the bytes that its shape and type want, as a file would
        have that was written so: else it is the place that is refused."""
        data = bytearray()
        for at, tensor in enumerate(self.tensors):
            block, width = SIZES.get(tensor.kind, (1, 4))
            size = math.prod(tensor.shape) // block * width
            if size > LARGEST:
                return
            old = self.data[min(tensor.offset, len(self.data) - 64) :][:size] or bytes(64)
            self.tensors[at] = replace(tensor, offset=len(data))
            data += (old * (1 + size // len(old)))[:size]
            data += bytes(-len(data) % ALIGNMENT)
        self.data = data

    def index(self, name: str) -> int | None:
        at = [i for i, (key, _) in enumerate(self.keys) if key == name.encode()]
        return at[0] if at else None

    def set(self, name: str, value: Value) -> None:
        at = self.index(name)
        if at is None:
            self.keys.append((name.encode(), value))
        else:
            self.keys[at] = (self.keys[at][0], value)


def unsigned(number: int) -> bytes:
    return struct.pack("<Q", number % 2**64)


def text(raw: bytes) -> bytes:
    return unsigned(len(raw)) + raw


def array(kind: int, items: Sequence[bytes], count: int | None = None) -> Value:
    n = len(items) if count is None else count
    return Value(ARRAY, struct.pack("<I", kind) + unsigned(n) + b"".join(items))


def items(value: Value) -> tuple[int, list[bytes]]:
    """Type and elements of an array of numbers or texts; none of one that is damaged already."""
    kind, n = struct.unpack_from("<IQ", value.raw)
    if n > len(value.raw) or (kind != STRING and kind not in NUMBERS):
        return kind, []
    if kind != STRING:
        width = struct.calcsize(NUMBERS[kind])
        return kind, [value.raw[i : i + width] for i in range(12, 12 + n * width, width)]
    at, found = 12, []
    for _ in range(n):
        length = int.from_bytes(value.raw[at : at + 8], "little")
        found.append(value.raw[at : at + 8 + length])
        at += 8 + length
    return kind, found


# --- what is wrong, by kind ----------------------------------------------------------------

WHOLE: Final = (
    *(0, 1, 2, 3, 5, 7, 16, 31, 33, 255, 256, 1000, 4096, 65_535, 65_536, 10**6),
    *(2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1),
)
REAL: Final = (
    *(0.0, -0.0, -1.0, 1.0, 1e-45, 1e-30, 1e30, 3.4e38, 1e300),
    *(math.nan, math.inf, -math.inf, 0.5, -1e-6, 1e7),
)
ODD: Final = (
    *(b"", b"\0", b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80", b" ", b"\n"),
    *("\u0120".encode(), "\u010a\u0120".encode(), "\U0001f600".encode(), b"x" * 70_000, b"%s%n{}"),
    *(b"<|im_end|>", b"<think>", b"<0x0A>", b"<unused1>", b"\xe2\x96\x81"),
)
TEMPLATES: Final = (
    b"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    b"{{ 'x' * 1000000000 }}",
    b"{% set a = namespace(x='x') %}{% for i in range(60) %}{% set a.x = a.x ~ a.x %}{% endfor %}",
    b"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    b"{{ 9 ** 9 ** 9 }}",
    b"{{ '%999999999d' % 1 }}",
    b"{{ '{:>999999999}'.format(1) }}",
    b"{{ messages.__class__.__mro__ }}",
    b"{{ strftime_now('%' * 9999) }}",
    b"{{ strftime_now('\\ud800') }}",
    b"{{ raise_exception(messages) }}",
    b"{{ messages | tojson(indent=999999999) }}",
    b"{{ (" + b"(" * 3000 + b"1" + b")" * 3000 + b") }}",
    b"{% if " * 300,
    b"{{ messages[0].content | list | permutations }}",
    b"{% include 'x' %}",
    b"{{ messages | sum }}",
    b"{{ lipsum(n=100000) }}",
    b"{{ range(10**12) | list }}",
    b"{{ messages[0]['content'] }}\xff",
)
ARCHITECTURES: Final = tuple(
    "llama qwen2 qwen3 qwen3moe qwen3next qwen35moe qwen35 dflash mamba2 t5 bert clip".split()
)


def number(kind: int, chance: random.Random, old: bytes = b"") -> bytes:
    """A number of a type that is odd there, or next to the old one."""
    if kind in FLOATS:
        value = chance.choice(REAL)
        if kind == 6 and math.isfinite(value):
            value = max(-3.4e38, min(value, 3.4e38))
        return struct.pack(NUMBERS[kind], value)
    width = struct.calcsize(NUMBERS[kind])
    before = int.from_bytes(old, "little")
    near = (before + 1, before - 1, before * 2, before // 2, before * 3, before + 32, before * 1000)
    return (chance.choice(near + WHOLE) % 2 ** (8 * width)).to_bytes(width, "little")


def element(kind: int, chance: random.Random, old: bytes) -> bytes:
    return text(chance.choice(ODD)) if kind == STRING else number(kind, chance, old)


def any_value(chance: random.Random) -> Value:
    kind = chance.choice([*NUMBERS, STRING, ARRAY, 13, 255, 2**31])
    if kind == STRING:
        return Value(kind, text(chance.choice(ODD)))
    if kind == ARRAY:
        inner = chance.choice([*NUMBERS, STRING, ARRAY, 13])
        n = chance.choice((0, 1, 3, 300))
        if inner == STRING:
            return array(inner, [text(chance.choice(ODD[:9])) for _ in range(n)])
        if inner == ARRAY:
            return array(inner, [array(4, [bytes(4)] * 2).raw for _ in range(n)])
        return array(inner, [number(inner, chance) if inner in NUMBERS else b"\0"] * n)
    return Value(kind, number(kind, chance) if kind in NUMBERS else bytes(8))


def some_key(image: Image, chance: random.Random, kinds: Sequence[int] | None = None) -> int | None:
    fit = [i for i, (_, v) in enumerate(image.keys) if kinds is None or v.kind in kinds]
    return chance.choice(fit) if fit else None


def put_value(image: Image, at: int, value: Value) -> None:
    image.keys[at] = (image.keys[at][0], value)


def bits(image: Image, chance: random.Random) -> None:
    times, inside = chance.choice((1, 1, 1, 2, 8)), chance.random() < 0.8

    def change(raw: bytearray) -> None:
        end = image.head if inside else len(raw)
        for _ in range(times):
            raw[chance.randrange(min(end, len(raw)))] ^= 1 << chance.randrange(8)

    image.rough.append(change)


def span(image: Image, chance: random.Random) -> None:
    """Some bytes of the head overwritten, left out or put in."""

    def change(raw: bytearray) -> None:
        at, n = chance.randrange(min(image.head, len(raw))), chance.choice((1, 4, 8, 64, 1000))
        new = chance.choice((b"", bytes(n), b"\xff" * n, chance.randbytes(n), bytes(raw[:n])))
        raw[at : at + chance.choice((0, n))] = new

    image.rough.append(change)


def cut(image: Image, chance: random.Random) -> None:
    ahead = chance.random() < 0.7

    def change(raw: bytearray) -> None:
        del raw[chance.randrange(min(image.head, len(raw)) if ahead else len(raw)) :]

    image.rough.append(change)


def counts(image: Image, chance: random.Random) -> None:
    here = [len(image.tensors), len(image.keys)]
    which = chance.randrange(2)
    wrong: list[int | None] = [None, None]
    wrong[which] = chance.choice((here[which] + 1, here[which] - 1, *WHOLE))
    image.counts = (wrong[0], wrong[1])
    if chance.random() < 0.1:
        image.version = chance.choice((0, 1, 2, 4, 2**31))


def missing_key(image: Image, chance: random.Random) -> None:
    del image.keys[chance.randrange(len(image.keys))]


def doubled_key(image: Image, chance: random.Random) -> None:
    at = chance.randrange(len(image.keys))
    value = image.keys[at][1] if chance.random() < 0.5 else any_value(chance)
    image.keys.insert(chance.randrange(len(image.keys) + 1), (image.keys[at][0], value))


def renamed_key(image: Image, chance: random.Random) -> None:
    at = chance.randrange(len(image.keys))
    image.keys[at] = (chance.choice((*ODD, image.keys[at][0] + b"x")), image.keys[at][1])


def other_type(image: Image, chance: random.Random) -> None:
    put_value(image, chance.randrange(len(image.keys)), any_value(chance))


def other_number(image: Image, chance: random.Random) -> None:
    at = some_key(image, chance, tuple(NUMBERS))
    if at is not None:
        old = image.keys[at][1]
        put_value(image, at, Value(old.kind, number(old.kind, chance, old.raw)))


def known_key(image: Image, chance: random.Random) -> None:
    """A key that llama.cpp reads where it is there, and that no file here has."""
    at = image.index("general.architecture")  # an earlier damage can have taken it, or its letters
    name = "" if at is None else image.keys[at][1].raw[8:].decode("utf-8", "replace")
    key = chance.choice(KNOWN)
    image.set(key.format(name), any_value(chance))


KNOWN: Final = (
    *("general.alignment", "general.file_type", "general.quantization_version", "split.count"),
    *("split.no", "split.tensors.count", "{}.rope.scaling.type", "{}.rope.scaling.factor"),
    *("{}.rope.scaling.original_context_length", "{}.rope.scaling.yarn_log_multiplier"),
    *("{}.attention.scale", "{}.attention.sliding_window", "{}.attention.causal", "{}.vocab_size"),
    *("{}.attention.sliding_window_pattern", "{}.expert_count", "{}.expert_used_count"),
    *("{}.attention.clamp_kqv", "{}.attention.max_alibi_bias", "{}.logit_scale"),
    *("{}.pooling_type", "{}.nextn_predict_layers", "{}.leading_dense_block_count"),
    *("{}.final_logit_softcapping", "{}.attn_logit_softcapping", "{}.rope.freq_base_swa"),
    *("{}.rope.dimension_sections", "{}.rope.dimension_count", "{}.attention.head_count_kv"),
    *("{}.full_attention_interval", "{}.attention.recurrent_layers", "{}.ssm.dt_b_c_rms"),
    *("{}.attention.layer_norm_rms_epsilon", "{}.classifier.output_labels", "{}.n_swa"),
    *(
        "tokenizer.ggml.precompiled_charsmap",
        "tokenizer.ggml.scores",
        "tokenizer.ggml.add_bos_token",
    ),
    *("tokenizer.ggml.bos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"),
    *("tokenizer.ggml.unknown_token_id", "tokenizer.ggml.seperator_token_id"),
    *(
        "tokenizer.ggml.padding_token_id",
        "tokenizer.ggml.mask_token_id",
        "tokenizer.ggml.cls_token_id",
    ),
    *("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.token_type_count", "adapter.type"),
    *("tokenizer.ggml.add_space_prefix", "tokenizer.ggml.add_bos_token"),
)


def other_array(image: Image, chance: random.Random) -> None:
    at = some_key(image, chance, (ARRAY,))
    if at is None:
        return
    kind, old = items(image.keys[at][1])
    match chance.randrange(6):
        case 0:
            new = array(kind, [])
        case 1:
            new = array(kind, old, chance.choice(WHOLE))
        case 2:
            new = array(kind, old[: chance.randrange(len(old) + 1)])
        case 3:
            new = array(kind, old * chance.choice((2, 3, 1 + 600 // max(1, len(old)))))
        case 4:
            new = array(chance.choice([*NUMBERS, STRING, ARRAY, 99]), old)
        case _:
            for _ in range(chance.choice((1, 1, 5))):
                if old:
                    i = chance.randrange(len(old))
                    odd = (
                        text(chance.choice(ODD)) if kind == STRING else number(kind, chance, old[i])
                    )
                    old[i] = odd
            new = array(kind, old)
    put_value(image, at, new)


def other_text(image: Image, chance: random.Random) -> None:
    at = some_key(image, chance, (STRING,))
    if at is not None:
        raw = text(chance.choice(ODD))
        if chance.random() < 0.2:
            raw = unsigned(chance.choice(WHOLE)) + raw[8:]
        put_value(image, at, Value(STRING, raw))


def architecture(image: Image, chance: random.Random) -> None:
    image.set("general.architecture", Value(STRING, text(chance.choice(ARCHITECTURES).encode())))


def template(image: Image, chance: random.Random) -> None:
    image.set("tokenizer.chat_template", Value(STRING, text(chance.choice(TEMPLATES))))


def tokens(image: Image, chance: random.Random) -> None:
    """The vocabulary: odd texts, equal ones, others in number; types and merges to match or not."""
    name = chance.choice(("tokens", "tokens", "token_type", "merges", "pre", "model", "scores"))
    at = image.index(f"tokenizer.ggml.{name}")
    if name in ("pre", "model"):
        known = (b"qwen35", b"qwen2", b"default", b"llama-bpe", b"gpt2", b"bert", b"t5", b"rwkv")
        more = (b"no_vocab", b"none", b"plamo2", b"gpt-4o", b"deepseek-v3", b"tekken", b"", b"?")
        image.set(f"tokenizer.ggml.{name}", Value(STRING, text(chance.choice(known + more))))
        return
    if name == "scores" or at is None:
        n = chance.choice((0, 1, 268, 269, 270))
        image.set("tokenizer.ggml.scores", array(6, [number(6, chance)] * n))
        return
    kind, old = items(image.keys[at][1])
    for _ in range(chance.choice((1, 1, 10, 200))):
        i = chance.randrange(len(old)) if old else 0
        match chance.randrange(4):
            case 0 if old:
                old[i] = (
                    text(chance.choice(ODD)) if kind == STRING else number(kind, chance, old[i])
                )
            case 1 if old:
                old[i] = chance.choice(old)
            case 2:
                old.insert(i, old[i] if old else (text(b"?") if kind == STRING else bytes(4)))
            case _ if len(old) > 1:
                del old[i]
    put_value(image, at, array(kind, old))


def merges(image: Image, chance: random.Random) -> None:
    odd = (
        b"",
        b" ",
        b"  ",
        b"a",
        b"a b c",
        b"\xff \xff",
        b"a ",
        b" b",
        b"x" * 5000 + b" y",
        b"a\0 b",
    )
    at = image.index("tokenizer.ggml.merges")
    if at is not None:
        _, old = items(image.keys[at][1])
        for _ in range(chance.choice((1, 4))):
            old.insert(chance.randrange(len(old) + 1), text(chance.choice(odd)))
        put_value(image, at, array(STRING, old))


def missing_tensor(image: Image, chance: random.Random) -> None:
    del image.tensors[chance.randrange(len(image.tensors))]


def doubled_tensor(image: Image, chance: random.Random) -> None:
    image.tensors.insert(0, chance.choice(image.tensors))


def changed_tensor(image: Image, chance: random.Random, **change: object) -> None:
    at = chance.randrange(len(image.tensors))
    image.tensors[at] = replace(image.tensors[at], **change)  # type: ignore[arg-type]


def renamed_tensor(image: Image, chance: random.Random) -> None:
    other = chance.choice(image.tensors).name
    changed_tensor(image, chance, name=chance.choice((other, b"blk.0.attn_q.weight", *ODD)))


def shape(image: Image, chance: random.Random) -> None:
    at = chance.randrange(len(image.tensors))
    old = [*image.tensors[at].shape]
    i = chance.randrange(len(old)) if old else 0
    match chance.randrange(6):
        case 0:
            old[i] = chance.choice(WHOLE)
        case 1:
            old = old[::-1]
        case 2:
            old = old[: chance.randrange(len(old) + 1)]
        case 3:
            old += [chance.choice((0, 1, 2, 2**32))] * chance.choice((1, 2, 4, 60))
        case 4:
            old[i] = max(0, old[i] + chance.choice((-32, -1, 1, 32)))
        case _:
            old = [
                chance.choice((2**16, 2**31, 2**32, 2**33)) for _ in range(chance.choice((2, 4)))
            ]
    image.tensors[at] = replace(image.tensors[at], shape=tuple(old))


def alike(image: Image, chance: random.Random) -> None:
    """All tensors of one name in all layers of another shape, that agree among each other."""
    last = chance.choice(image.tensors).name.split(b".", 2)[-1]
    which, size = chance.randrange(2), chance.choice((0, 1, 8, 16, 48, 64))
    for at, tensor in enumerate(image.tensors):
        if tensor.name.split(b".", 2)[-1] == last and which < len(tensor.shape):
            new = [*tensor.shape]
            new[which] = size
            image.tensors[at] = replace(tensor, shape=tuple(new))


def tensor_type(image: Image, chance: random.Random) -> None:
    changed_tensor(image, chance, kind=chance.choice([*range(42), 99, 2**31, 2**32 - 1]))


def offset(image: Image, chance: random.Random) -> None:
    at = chance.randrange(len(image.tensors))
    old = image.tensors[at].offset
    new = chance.choice((old + 1, old + 32, old - 32, 0, *WHOLE)) % 2**64
    image.tensors[at] = replace(image.tensors[at], offset=new)


def alignment(image: Image, chance: random.Random) -> None:
    image.set("general.alignment", Value(4, number(4, chance, struct.pack("<I", ALIGNMENT))))
    if chance.random() < 0.3:
        image.pad = chance.choice((1, 8, 64, 4096))


def weights(image: Image, chance: random.Random) -> None:
    """Numbers that are none, or absurd, in the data."""
    odd = (math.nan, math.inf, -math.inf, 3.4e38, -3.4e38, 1e-40, 0.0)
    for _ in range(chance.choice((1, 1, 20))):
        n = chance.choice((1, 1, 16, 4000))
        at = chance.randrange(max(1, len(image.data) // 4)) * 4
        raw = (
            struct.pack("<f", chance.choice(odd)) * n if chance.random() < 0.8 else b"\xff" * 4 * n
        )
        image.data[at : at + len(raw)] = raw[: len(image.data) - at]


def whole(image: Image, chance: random.Random) -> None:
    """Nothing is wrong: shows that what is tried answers otherwise."""


KINDS: Final[dict[str, tuple[Callable[[Image, random.Random], None], int]]] = {
    made.__name__: (made, weight)
    for made, weight in (
        *((bits, 6), (span, 4), (cut, 3), (counts, 2), (missing_key, 2), (doubled_key, 2)),
        *((renamed_key, 2), (other_type, 5), (other_number, 8), (known_key, 4), (other_array, 5)),
        *((other_text, 4), (architecture, 1), (template, 2), (tokens, 6), (merges, 2)),
        *((missing_tensor, 2), (doubled_tensor, 1), (renamed_tensor, 2), (shape, 5), (alike, 3)),
        *((tensor_type, 3), (offset, 3), (alignment, 2), (weights, 4), (whole, 1)),
    )
}
"""What can be wrong, and how often it is tried."""

LAID_OUT: Final = {
    "missing_tensor",
    "doubled_tensor",
    "renamed_tensor",
    "shape",
    "alike",
    "tensor_type",
}


@dataclass(frozen=True, slots=True)
class Damage:
    """What number `seed` does to a pair. `draft` None: it is tried without a drafter."""

    seed: int
    kinds: tuple[str, ...]
    which: str  # the file that it is done to
    target: bytes
    draft: bytes | None


def damaged(seed: int, pairs: Sequence[tuple[Image, Image]]) -> Damage:
    chance = random.Random(seed)
    target, draft = (image.copy() for image in chance.choice(pairs))
    with_draft = chance.random() < 0.75
    which = "draft" if with_draft and chance.random() < 0.4 else "target"
    image = draft if which == "draft" else target
    names, odds = list(KINDS), [weight for _, weight in KINDS.values()]
    kinds = chance.choices(names, odds, k=chance.choice((1, 1, 1, 2, 3)))
    for kind in kinds:
        if image.keys and image.tensors:
            KINDS[kind][0](image, chance)
    if LAID_OUT & {*kinds} and chance.random() < 0.7:
        image.lay_out()
    if which == "target" and chance.random() < 0.5:
        # The drafter has to have the same vocabulary, or it is refused before that is read.
        for key, value in target.keys:
            if key.startswith(b"tokenizer.ggml.") and draft.index(key.decode("utf-8", "replace")):
                draft.set(key.decode("utf-8", "replace"), value)
    return Damage(
        seed, tuple(kinds), which, target.written(), draft.written() if with_draft else None
    )
