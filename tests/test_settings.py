"""Settings survive a round trip, a careless hand and a broken file."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from app import settings
from app.errors import OptionError, OutputError
from app.settings import Settings

CHANGED = Settings(
    theme="dark",
    model='C:\\моделі\\"q" 😊\x7f',
    temperature=1e-7,
    seed=2**63 - 1,
    block=8,
    think=True,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.toml"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("value", [Settings(), CHANGED])
def test_saved_is_loaded(file: Path, value: Settings) -> None:
    settings.save(file, value)
    assert settings.load(file) == (value, ())
    assert list(file.parent.iterdir()) == [file]


def test_the_file_is_readable(file: Path) -> None:
    settings.save(file, Settings())
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["version = 4", 'theme = "system"', 'model = "demo"', 'backend = "auto"']
    assert not [line for line in lines if line.startswith(("seed", "block"))]


def test_the_limit_that_nobody_chose_is_none(file: Path) -> None:
    write(file, "version = 1\nmax_tokens = 1024\ntop_k = 7\n")
    assert settings.load(file) == (Settings(top_k=7), ())


def test_the_context_that_nobody_chose_is_as_much_as_fits(file: Path) -> None:
    write(file, "version = 2\nn_ctx = 4096\nmax_tokens = 1024\n")
    assert settings.load(file) == (Settings(max_tokens=1024), ())
    for chosen in (8192, 4096):
        settings.save(file, Settings(n_ctx=chosen))
        assert settings.load(file).settings.n_ctx == chosen


QWEN = 'model = "qwen3.5-4b"\nverify = "gpu-sample"\n'


@pytest.mark.parametrize(
    ("version", "before", "sampling", "penalty"),
    [
        (3, QWEN, (1.0, 20, 0.95, 0.0), 1.5),
        (2, QWEN, (0.7, 20, 0.8, 0.0), 1.5),
        (4, QWEN, (0.7, 20, 0.8, 0.0), 0.0),
        (3, QWEN, (0.7, 21, 0.8, 0.0), 0.0),
        (3, QWEN.replace("gpu-sample", "greedy"), (0.7, 20, 0.8, 0.0), 0.0),
        (3, "", (0.7, 20, 0.8, 0.0), 0.0),
    ],
)
def test_a_vendors_sampling_gets_the_penalty_that_belongs_to_it(
    file: Path, version: int, before: str, sampling: tuple[float, ...], penalty: float
) -> None:
    names = ("temperature", "top_k", "top_p", "min_p")
    lines = [f"{name} = {value}\n" for name, value in zip(names, sampling, strict=True)]
    write(file, f"version = {version}\n{before}{''.join(lines)}")
    assert settings.load(file).settings.presence_penalty == penalty


def test_a_limit_that_was_chosen_stays(file: Path) -> None:
    write(file, "version = 1\nmax_tokens = 2048\n")
    assert settings.load(file).settings.max_tokens == 2048
    settings.save(file, Settings(max_tokens=1024))
    assert settings.load(file).settings.max_tokens == 1024


def test_defaults_without_a_file(file: Path) -> None:
    assert settings.load(file) == (Settings(), ())
    assert not file.parent.exists()


@pytest.mark.parametrize(
    "content",
    [b"theme = ", b"\xff\xfe", b"a = 1\na = 2\n", b"a = " + b"[" * 9999, b"a = " + b"{a=" * 9999],
)
def test_a_broken_file_is_set_aside(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    loaded = settings.load(file)
    assert loaded.settings == Settings()
    assert file.with_name("settings.toml.broken").read_bytes() == content
    assert not file.exists()
    (problem,) = loaded.problems
    assert "settings.toml.broken" in problem
    assert problem in caplog.text


def test_one_bad_value_costs_one_value(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(file, 'theme = "pink"\ntop_k = 7\ntop_p = nan\nthink = 1\ntemperature = 1\nnew = 3\n')
    loaded = settings.load(file)
    assert loaded.settings == Settings(top_k=7, temperature=1.0)
    assert len(loaded.problems) == 3
    for name, problem in zip(("theme", "top_p", "think"), loaded.problems, strict=True):
        assert f"`{name}`" in problem
        assert problem in caplog.text


def test_a_mark_before_the_text_is_no_part_of_it(file: Path) -> None:
    write(file, '\ufefftheme = "dark"\n')  # as some editors write it
    assert settings.load(file) == (Settings(theme="dark"), ())


NEWER = """\
version = 99
backend = "cpu"
"a b" = "c\\u007f"
count = 9223372036854775807
ratio = 1e-7
limit = -inf
on = true
since = 2026-11-28T12:00:00Z
day = 2026-11-28
at = 12:30:00
list = [1, [2, "x"], {y = 1.5}]
[server]
port = 8080
[server.more]
"é" = []
"""


def test_what_a_newer_version_wrote_survives_a_save(file: Path) -> None:
    write(file, NEWER)
    loaded = settings.load(file)
    assert loaded == (Settings(backend="cpu"), ())
    settings.save(file, dataclasses.replace(loaded.settings, theme="dark"))
    before, after = tomllib.loads(NEWER), tomllib.loads(file.read_text(encoding="utf-8"))
    assert {name: after[name] for name in before} == before
    assert after["theme"] == "dark"
    assert settings.load(file).settings == Settings(theme="dark", backend="cpu")


@pytest.mark.parametrize("content", [b"theme = ", b"\xff", b"a = " + b"[" * 9999])
def test_a_file_that_broke_meanwhile_is_kept(file: Path, content: bytes) -> None:
    """Each of them, as of one who edits it by hand while the window is open."""
    file.parent.mkdir()
    for turn in (b"", b"# again\n"):
        file.write_bytes(turn + content)
        settings.save(file, Settings())
        assert settings.load(file) == (Settings(), ())
    kept = [path.read_bytes() for path in sorted(file.parent.glob("settings.toml.broken*"))]
    assert kept == [content, b"# again\n" + content]


def test_a_value_that_no_file_can_hold(file: Path) -> None:
    settings.save(file, Settings())
    with pytest.raises(OutputError, match=r"settings\.toml"):
        settings.save(file, Settings(model="caf\udce9"))
    assert settings.load(file) == (Settings(), ())


def test_a_folder_in_place_of_the_file(file: Path) -> None:
    file.mkdir(parents=True)
    loaded = settings.load(file)
    assert loaded.settings == Settings()
    assert len(loaded.problems) == 1
    with pytest.raises(OutputError, match=r"settings\.toml"):
        settings.save(file, Settings())
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_p", 0.0),
        ("n_ctx", 255),
        ("draft_backend", "tpu"),
        ("seed", -1),
        ("block", 0),
        ("verify", "fast"),
        ("top_k", True),
        ("models_folder", "a\0b"),
    ],
)
def test_values_are_checked(name: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"`{name}`"):
        dataclasses.replace(Settings(), **{name: value})  # type: ignore[arg-type]


def test_ranges_are_of_settings() -> None:
    assert set(settings.RANGES) <= {f.name for f in dataclasses.fields(Settings)}


def test_a_number_that_is_out_of_range_is_told_its_range() -> None:
    with pytest.raises(OptionError, match=r"Use above 0, up to 1\."):
        Settings(top_p=0.0)
