"""Files appear whole or not at all, whatever stops the work, in bounded memory."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tracemalloc
from math import prod
from pathlib import Path
from typing import NamedTuple

import pytest
from gguf import GGUFReader

from app.convert import (
    Converted,
    WeightType,
    conversion,
    convert_draft,
    convert_pair,
    convert_target,
)
from app.errors import CheckpointError, OutputError
from app.jobs import CancelToken, JobCancelled
from tests.convert import tiny

ROOT = Path(__file__).resolve().parents[2]


def test_result(target: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "folder" / "x.gguf"
    done = convert_target(target, output, WeightType.Q8_0)
    assert isinstance(done, Converted)
    data = output.read_bytes()
    assert (done.path, done.bytes, done.tensors) == (output, len(data), 55)
    assert done.sha256 == hashlib.sha256(data).hexdigest()
    assert done.seconds > 0
    assert [file.name for file in output.parent.iterdir()] == ["x.gguf"]


def test_the_same_bytes_every_time(target: Path, tmp_path: Path) -> None:
    files = [convert_target(target, tmp_path / name, WeightType.BF16) for name in ("a", "b")]
    assert files[0].sha256 == files[1].sha256


def test_pair(target: Path, draft: Path, tmp_path: Path) -> None:
    done = convert_pair(
        target, draft, tmp_path / "out", WeightType.Q8_0, draft_type=WeightType.BF16
    )
    assert done.target.path == tmp_path / "out" / "target-q8_0.gguf"
    assert done.draft
    assert done.draft.path == tmp_path / "out" / "draft-bf16.gguf"
    alone = convert_draft(draft, target, tmp_path / "x.gguf", WeightType.BF16)
    assert alone.sha256 == done.draft.sha256
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_progress(target: Path, draft: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    done = convert_pair(
        target, draft, tmp_path, WeightType.F16, progress=lambda *step: seen.append(step)
    )
    assert len({total for _, total, _ in seen}) == 1
    counts = [count for count, _, _ in seen]
    assert counts == sorted(set(counts))
    assert counts[-1] == seen[0][1]
    assert done.draft
    assert len(seen) >= done.target.tensors + done.draft.tensors
    assert seen[0][2] == "output_norm.weight"


class TestCancelled:
    def test_before_the_start(self, target: Path, tmp_path: Path) -> None:
        token = CancelToken()
        token.cancel()
        with pytest.raises(JobCancelled):
            convert_target(target, tmp_path / "out" / "x", WeightType.F32, cancelled=token)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("percent", [0, 10, 50, 91, 99.9, 100])
    def test_under_way(self, target: Path, draft: Path, tmp_path: Path, percent: float) -> None:
        token, out = CancelToken(), tmp_path / "out"
        steps = []

        def progress(done: int, total: int, name: str) -> None:
            steps.append(name)
            assert not list(out.glob("*.gguf"))
            if done >= total * percent / 100:
                token.cancel()

        with pytest.raises(JobCancelled):
            convert_pair(target, draft, out, WeightType.F32, progress=progress, cancelled=token)
        assert list(out.iterdir()) == []
        assert percent or len(steps) == 1, "one step after the flag is set is one too many"

    def test_leaves_an_older_file_as_it_was(self, target: Path, tmp_path: Path) -> None:
        token, output = CancelToken(), tmp_path / "x.gguf"
        output.write_text("older")
        with pytest.raises(JobCancelled):
            convert_target(
                target,
                output,
                WeightType.F32,
                progress=lambda *_: token.cancel(),
                cancelled=token,
            )
        assert output.read_text() == "older"
        assert not output.with_name("x.gguf.part").exists()


def test_killed(target: Path, tmp_path: Path) -> None:
    """`kill -9` leaves a part behind and no file; the next run takes the part's place."""
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from app.convert import WeightType, convert_target\n"
        "def stop(done, total, name):\n"
        "    if done > total / 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "convert_target(Path(sys.argv[1]), Path(sys.argv[2]), WeightType.F32, progress=stop)\n"
    )
    output = tmp_path / "out" / "x.gguf"
    command = [sys.executable, "-c", script, str(target), str(output)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert [file.name for file in output.parent.iterdir()] == ["x.gguf.part"]
    done = convert_target(target, output, WeightType.F32)
    assert [file.name for file in output.parent.iterdir()] == ["x.gguf"]
    assert done.sha256 == convert_target(target, tmp_path / "y.gguf", WeightType.F32).sha256


class Usage(NamedTuple):
    total: int
    used: int
    free: int


class TestDisk:
    def test_too_little_room_is_told_before(
        self, target: Path, draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 500_000))
        with pytest.raises(OutputError, match=r"0\.001 GB free|0\.000 GB free") as caught:
            convert_pair(target, draft, tmp_path / "out", WeightType.F32)
        assert "Free some space" in caught.value.remedy
        assert not (tmp_path / "out").exists()

    def test_room_asked_for_is_enough_and_not_much_more(
        self, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done = convert_target(target, tmp_path / "x.gguf", WeightType.F32)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, done.bytes - 1))
        with pytest.raises(OutputError):
            convert_target(target, tmp_path / "y.gguf", WeightType.F32)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, done.bytes + 2_000_000))
        convert_target(target, tmp_path / "y.gguf", WeightType.F32)

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
    def test_fails_while_writing(
        self, target: Path, draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        def fail(_: int) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OutputError) as caught:
            convert_pair(target, draft, tmp_path / "out", WeightType.F32)
        assert ("disk is full" in caught.value.message) == (code == errno.ENOSPC)
        assert list((tmp_path / "out").iterdir()) == []

    def test_really_cannot_grow(self, target: Path, tmp_path: Path) -> None:
        """The kernel itself refuses a write half-way: a limit of the file size."""
        resource = pytest.importorskip("resource")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        try:
            with pytest.raises(OutputError, match="cannot be written"):
                convert_target(target, tmp_path / "out" / "x.gguf", WeightType.F32)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert list((tmp_path / "out").iterdir()) == []

    def test_written_bytes_are_checked(
        self, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = os.fsync

        def lose_a_byte(descriptor: int) -> None:
            real(descriptor)
            os.truncate(descriptor, os.fstat(descriptor).st_size - 1)

        monkeypatch.setattr(os, "fsync", lose_a_byte)
        with pytest.raises(OutputError, match="not written as planned"):
            convert_target(target, tmp_path / "out" / "x.gguf", WeightType.F32)
        assert list((tmp_path / "out").iterdir()) == []


class TestPaths:
    def test_output_is_a_folder(self, target: Path, tmp_path: Path) -> None:
        with pytest.raises(OutputError, match="is a folder"):
            convert_target(target, tmp_path, WeightType.F32)

    def test_parent_is_a_file(self, target: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine")
        with pytest.raises(OutputError, match=r"x\.gguf"):
            convert_target(target, tmp_path / "file" / "x.gguf", WeightType.F32)
        assert (tmp_path / "file").read_text() == "mine"

    def test_read_only_folder(
        self, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        if os.geteuid() == 0:  # to whom only the kernel's own folders are closed
            closed = Path("/proc/self")
            monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, 10**9))
        with pytest.raises(OutputError, match=r"x\.gguf` cannot be written") as caught:
            convert_target(target, closed / "x.gguf", WeightType.F32)
        assert "may write" in caught.value.remedy

    @pytest.mark.parametrize("name", ["x.gguf", "м" * 125 + ".gguf", "x" * 250 + ".gguf"])
    def test_long_foreign_names(self, tmp_path: Path, name: str) -> None:
        folder = tmp_path / "Загрузки" / "模型 😊" / ("long " * 40).strip()
        target = tiny.write_target(folder / "target é")
        draft = tiny.write_draft(folder / "draft #1%20?")
        try:
            (tmp_path / name).touch()
        except OSError:
            with pytest.raises(OutputError):
                convert_target(target, folder / "out" / name, WeightType.F16)
            return
        done = convert_target(target, folder / "out" / name, WeightType.F16)
        convert_draft(draft, target, folder / "out" / "d.gguf", WeightType.F16)
        fields = GGUFReader(done.path).fields
        assert fields["slipstream.source.name"].contents() == "target é"
        assert {file.name for file in (folder / "out").iterdir()} == {name, "d.gguf"}

    def test_relative(self, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = convert_target(target, tmp_path / "x.gguf", WeightType.F16)
        monkeypatch.chdir(target)
        assert convert_target(Path(), Path("x.gguf"), WeightType.F16).sha256 == whole.sha256


def test_a_shard_that_shrinks_under_way(target: Path, tmp_path: Path) -> None:
    file = target / "model.safetensors"

    def cut(*_: object) -> None:
        os.truncate(file, 5000)

    with pytest.raises(CheckpointError, match="ends inside the tensor"):
        convert_target(target, tmp_path / "out" / "x.gguf", WeightType.F32, progress=cut)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"---\n: [\n---\n", b"\xff\xfe", b"---\nlicense: {a: 1}\n---\n"]
)
def test_a_model_card_cannot_stop_it(target: Path, tmp_path: Path, content: bytes) -> None:
    (target / "README.md").write_bytes(content)
    (target / "generation_config.json").write_text('{"top_k": "many", "temperature": true')
    convert_target(target, tmp_path / "x.gguf", WeightType.F32)


def test_a_list_in_a_model_card_where_there_is_one_text(target: Path, tmp_path: Path) -> None:
    (target / "README.md").write_text("---\nlicense: [apache-2.0, mit]\nname: ['']\n---\n")
    convert_target(target, tmp_path / "x.gguf", WeightType.F32)
    fields = GGUFReader(tmp_path / "x.gguf").fields
    assert fields["general.license"].contents() == "apache-2.0, mit"
    assert fields["general.name"].contents() == target.name


def test_a_commit_is_no_name(tmp_path: Path) -> None:
    """In the hub's cache a folder is called by it."""
    snapshots = tmp_path / "models--Qwen--Qwen3.5-4B" / "snapshots"
    folder = tiny.write_target(snapshots / "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a")
    convert_target(folder, tmp_path / "x.gguf", WeightType.BF16)
    fields = GGUFReader(tmp_path / "x.gguf").fields
    assert fields["general.name"].contents() == "Qwen3.5 4B"
    assert fields["slipstream.source.name"].contents() == "Qwen3.5-4B"
    texts = [f.contents() for n, f in fields.items() if n.startswith(("general.", "slipstream."))]
    assert not any("851bf6" in str(text) for text in texts)


@pytest.mark.parametrize("name", [7, ["x"], "\udcff"])
def test_a_name_that_is_none_cannot_either(target: Path, tmp_path: Path, name: object) -> None:
    tiny.edit_json(target / "config.json", lambda config: config.update(_name_or_path=name))
    convert_target(target, tmp_path / "x.gguf", WeightType.F32)


def test_hints_for_sampling_that_no_file_holds_are_left_out(target: Path, tmp_path: Path) -> None:
    hints = '{"top_k": 4294967296, "temperature": 1e300, "top_p": 0.5, "min_p": NaN}'
    (target / "generation_config.json").write_text(hints)
    convert_target(target, tmp_path / "x.gguf", WeightType.F32)
    fields = GGUFReader(tmp_path / "x.gguf").fields
    assert [k for k in fields if "sampling" in k] == ["general.sampling.top_p"]


LARGE = tiny.Target(
    hidden=512, ff=4096, vocab=8192, layers=4, key_heads=8, value_heads=48, linear_dim=128
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_target(tmp_path_factory.mktemp("large"), LARGE)


@pytest.mark.parametrize(
    "weight_type", [WeightType.F32, WeightType.BF16, WeightType.Q8_0, WeightType.Q4_K_M]
)
def test_memory_is_bounded(
    large: Path, tmp_path: Path, weight_type: WeightType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most four times the largest tensor as it is stored, however many tensors there are."""
    largest = 2 * max(prod(shape) for _, shape in tiny.target_shapes(LARGE))
    source = (large / "model.safetensors").stat().st_size
    assert source > 6 * largest, "else the bound would hold for the whole file at once"
    monkeypatch.setattr(conversion, "run_apart", lambda work, jobs, *rest: work(jobs, *rest[:2]))
    tracemalloc.start()
    try:
        convert_target(large, tmp_path / "x.gguf", weight_type)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * largest


def test_needs_neither_torch_nor_transformers(target: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'transformers']))\n"
        "from pathlib import Path; from app.convert import WeightType, convert_target\n"
        "convert_target(Path(sys.argv[1]), Path(sys.argv[2]), WeightType.Q8_0)\n"
    )
    command = [sys.executable, "-c", script, str(target), str(tmp_path / "x.gguf")]
    subprocess.run(command, cwd=ROOT, check=True)
