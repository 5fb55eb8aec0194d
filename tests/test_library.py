"""A broken model costs its own row; nothing of the user's is touched."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app import catalog, moving, paths
from app.bundled import Bundled
from app.errors import ModelFileError, NoModelError, OptionError, OutputError
from app.jobs import CancelToken, Progress
from app.library import Library, ModelState, ModelStatus
from app.passport import Check, Made, Passport, sha256_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


@pytest.fixture
def library(root: Path, tmp_path: Path) -> Library:
    for part in ("target", "draft"):
        folder = tmp_path / "assets" / "demo" / part
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")

    def convert(
        target: Path,
        draft: Path,
        out: Path,
        progress: Progress | None,
        cancel: CancelToken | None,
    ) -> None:
        for part in ("target", "draft"):
            (out / f"{part}-F32.gguf").write_bytes(b"GGUF!")

    cache = tmp_path / "cache"
    bundled = Bundled(tmp_path / "assets", cache, former=root, convert=convert)
    return Library(root, bundled, tmp_path / "state" / "models.json")


def row_of(library: Library, model: str) -> ModelStatus:
    (row,) = (status for status in library.models() if status.id == model)
    return row


def state_of(library: Library, model: str) -> ModelState:
    return row_of(library, model).state


def make_folder(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"GGUF")
    return folder


def test_the_bundled_pair(library: Library, root: Path) -> None:
    assert row_of(library, "demo").state is ModelState.BUNDLED
    pair = library.open("demo")
    assert (pair.id, pair.title, pair.bytes) == ("demo", "Built-in guide", 10)
    row = library.models()[0]
    assert (row.state, row.path, row.bytes) == (ModelState.READY, pair.target.parent, 10)
    assert not root.exists()


def test_assets_that_are_gone(root: Path, tmp_path: Path) -> None:
    row = row_of(Library(root, Bundled(tmp_path / "nowhere", tmp_path / "cache")), "demo")
    assert (row.state, "nowhere" in row.reason) == (ModelState.BROKEN, True)


@pytest.mark.parametrize("name", ["demo-mine", "demo-0123456789abcdef", "demo"])
def test_a_folder_of_the_users_own_survives_the_demo(
    library: Library, root: Path, name: str
) -> None:
    mine = make_folder(root / name, "target.gguf")
    library.open("demo")
    (row,) = (status for status in library.models() if status.path == mine)
    assert row.state is ModelState.READY
    assert library.open(row.id).target == mine / "target.gguf"


def test_a_model_that_can_be_got(library: Library, root: Path) -> None:
    root.mkdir(parents=True)
    assert state_of(library, "qwen3.5-4b") is ModelState.AVAILABLE
    with pytest.raises(NoModelError, match=r"slipstream pull qwen3\.5-4b"):
        library.open("qwen3.5-4b")
    make_folder(root / "qwen3.5-4b", "target-Q8_0.gguf", "draft-Q8_0.gguf")
    assert state_of(library, "qwen3.5-4b") is ModelState.READY
    assert library.open("qwen3.5-4b").draft is not None


def test_own_folders_are_listed_and_opened(library: Library, root: Path, tmp_path: Path) -> None:
    make_folder(root / "mine", "target.gguf")
    elsewhere = make_folder(tmp_path / "模型 😊", "target-BF16.gguf", "draft-BF16.gguf")
    assert state_of(library, "mine") is ModelState.READY
    assert library.open("mine").draft is None
    pair = library.open(str(elsewhere))
    assert (pair.title, pair.draft) == ("模型 😊", elsewhere / "draft-BF16.gguf")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), r"target\*\.gguf"),
        (("draft.gguf",), r"draft\.gguf"),
        (("target-a.gguf", "target-b.gguf"), "target-a.*target-b"),
        (("target.gguf", "draft-a.gguf", "draft-b.gguf"), "draft-a.*draft-b"),
    ],
)
def test_folders_that_are_no_pair(
    library: Library, root: Path, names: tuple[str, ...], told: str
) -> None:
    make_folder(root / "odd", *names)
    assert state_of(library, "odd") is ModelState.BROKEN
    with pytest.raises(ModelFileError, match=told):
        library.open("odd")


class TestOneBrokenRow:
    """Each of these stands beside a whole model, which is listed and opened all the same."""

    @pytest.fixture(autouse=True)
    def _a_whole_one(self, library: Library, root: Path) -> None:
        make_folder(root / "zz", "target.gguf")

    def check(self, library: Library, model: str, *told: str) -> None:
        row = row_of(library, model)
        assert row.state is ModelState.BROKEN
        assert (row.bytes, state_of(library, "zz")) == (0, ModelState.READY)
        for text in (row.id, row.title, row.reason):
            text.encode()
        with pytest.raises((ModelFileError, OptionError)) as caught:
            library.open(model)
        for part in told:
            assert part in row.reason
        str(caught.value).encode()

    def test_a_file_that_is_a_dead_link(self, library: Library, root: Path) -> None:
        make_folder(root / "cat")
        (root / "cat" / "target-q8_0.gguf").symlink_to("/mnt/absent/target-q8_0.gguf")
        self.check(library, "cat", "target-q8_0.gguf", "/mnt/absent")

    def test_a_drafter_that_is_a_dead_link(self, library: Library, root: Path) -> None:
        make_folder(root / "cat", "target.gguf")
        (root / "cat" / "draft.gguf").symlink_to("/mnt/absent")
        self.check(library, "cat", "draft.gguf", "/mnt/absent")

    @pytest.mark.parametrize("name", ["cat", "qwen3.5-4b"])
    def test_a_folder_that_is_a_dead_link(self, library: Library, root: Path, name: str) -> None:
        (root / name).symlink_to("/mnt/absent", target_is_directory=True)
        self.check(library, name, "/mnt/absent")

    def test_a_link_to_itself(self, library: Library, root: Path) -> None:
        (root / "loop").symlink_to(root / "loop")
        self.check(library, "loop", "loop")

    def test_a_folder_where_a_file_should_be(self, library: Library, root: Path) -> None:
        (root / "cat" / "target.gguf").mkdir(parents=True)
        self.check(library, "cat", "target.gguf")

    def test_a_folder_that_cannot_be_read(
        self, library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_folder(root / "cat", "target.gguf")
        iterdir = Path.iterdir

        def refuse(path: Path) -> Iterator[Path]:
            if path.name == "cat":
                raise PermissionError(13, "Permission denied", str(path))
            return iterdir(path)

        monkeypatch.setattr(Path, "iterdir", refuse)
        self.check(library, "cat", "Permission denied", "permissions")

    def test_a_file_that_goes_while_it_is_listed(
        self, library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = make_folder(root / "cat", "target.gguf") / "target.gguf"
        is_file = Path.is_file

        def then_it_goes(path: Path) -> bool:
            there = is_file(path)
            if path == target:
                target.unlink(missing_ok=True)
            return there

        monkeypatch.setattr(Path, "is_file", then_it_goes)
        self.check(library, "cat", "target.gguf")

    @pytest.mark.skipif(os.name != "posix", reason="file names are Unicode here")
    def test_a_name_that_is_no_utf8(self, library: Library, root: Path) -> None:
        make_folder(root / os.fsdecode(b"caf\xe9"), "target.gguf")
        self.check(library, "caf\ufffd", "Rename")
        # The command line can name it all the same.
        assert library.open(str(root / os.fsdecode(b"caf\xe9"))).title == "caf\ufffd"

    @pytest.mark.skipif(os.name != "posix", reason="file names are Unicode here")
    def test_file_names_that_are_no_utf8(self, library: Library, root: Path) -> None:
        make_folder(root / "cat", *(f"target-{os.fsdecode(c)}.gguf" for c in (b"\xe8", b"\xe9")))
        self.check(library, "cat", "target-\ufffd.gguf")


def test_a_root_that_cannot_be_listed(
    library: Library, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root.parent.mkdir()
    root.write_text("a file")
    assert [row.id for row in library.models()] == [model.id for model in catalog.MODELS]
    assert str(root) in caplog.text


@pytest.mark.parametrize(
    "name", ["", ".", "nothing", "x" * 5000, "a\0b", "~nobody-here/x", "\udce9"]
)
def test_no_such_model(
    library: Library, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((OptionError, ModelFileError)) as caught:
        library.open(name)
    str(caught.value).encode()


@pytest.fixture
def got(root: Path) -> Path:
    """A model as the job leaves it."""
    folder = make_folder(root / "got", "target-q8_0.gguf")
    file = folder / "target-q8_0.gguf"
    made = Made(file.name, file.stat().st_size, sha256_of(file), {})
    checks = (Check("answers", True, ""),)
    Passport("got", "A model", "q8_0", "", "2026-01-01", {}, {"target": made}, checks).write(folder)
    return folder


def test_a_passport_is_listed(library: Library, got: Path) -> None:
    row = row_of(library, "got")
    assert (row.state, row.title, row.reason) == (ModelState.READY, "A model", "")
    assert row.passport is not None
    assert row.passport.type == "q8_0"
    assert library.open("got").title == "A model"


def test_a_pair_that_was_never_tried_says_so(library: Library, got: Path) -> None:
    passport = Passport.read(got)
    assert passport is not None
    replace(passport, checks=()).write(got)
    assert "not been tried" in row_of(library, "got").reason


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "sources": 3}', "[" * 100_000])
def test_a_passport_that_cannot_be_read_is_none(library: Library, got: Path, text: str) -> None:
    (got / "passport.json").write_text(text)
    row = row_of(library, "got")
    assert (row.state, row.passport) == (ModelState.READY, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"q8_0"', "7"),
        ('"A model"', '["x"]'),
        ('"A model"', r'"\udcff"'),
        ('"bytes": 4', '"bytes": "4"'),
        ('"about": {}', '"about": {"error": NaN}'),
        ('"about": {}', '"about": {"error": 1e999}'),
        ('"answers"', "null"),
        ('"target-q8_0.gguf"', r'"a\u0000b"'),
    ],
)
def test_a_passport_with_something_else_in_it_is_none(
    library: Library, got: Path, old: str, new: str
) -> None:
    text = (got / "passport.json").read_text()
    (got / "passport.json").write_text(text.replace(old, new))
    assert (got / "passport.json").read_text() != text
    row = row_of(library, "got")
    assert (row.state, row.passport, row.title) == (ModelState.READY, None, "got")


def test_a_drafter_that_is_gone_is_said(library: Library, got: Path) -> None:
    passport = Passport.read(got)
    assert passport is not None
    made = Made("draft-q8_0.gguf", 4, "", {})
    replace(passport, files={**passport.files, "draft": made}).write(got)
    row = row_of(library, "got")
    assert row.usable
    assert "drafter is not there" in row.reason
    (got / made.name).write_bytes(b"GGUF")
    assert row_of(library, "got").reason == ""


def test_verified_again(library: Library, got: Path) -> None:
    shares: list[float] = []
    library.verify("got", shares.append)
    assert shares[-1] == 1.0
    (got / "target-q8_0.gguf").write_bytes(b"GGUX")
    assert row_of(library, "got").usable  # as far as a list can tell
    with pytest.raises(ModelFileError, match="damaged"):
        library.verify("got")
    (got / "target-q8_0.gguf").write_bytes(b"GGU")
    with pytest.raises(ModelFileError, match="3 bytes of 4"):
        library.verify("got")
    row = row_of(library, "got")
    assert (row.state, row.title) == (ModelState.BROKEN, "A model")
    assert "3 bytes of 4" in row.reason
    assert "get it again" in row.reason
    with pytest.raises(ModelFileError, match="no passport"):
        library.verify("demo")
    with pytest.raises(NoModelError, match="no model or folder `gut`"):
        library.verify("gut")


def test_last_used(library: Library, got: Path) -> None:
    assert row_of(library, "got").used is None
    library.open("got")
    used = row_of(library, "got").used
    assert used is not None
    assert abs(time.time() - used) < 60
    assert row_of(library, "demo").used is None


@pytest.mark.parametrize("text", ['{"got": NaN}', '{"got": 1e300}', '{"got": -1.5}', "[" * 100_000])
def test_a_use_at_no_time_is_none(library: Library, got: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "models.json").write_text(text)
    assert row_of(library, "got").used is None


def test_removed_into_the_trash(library: Library, got: Path) -> None:
    trash: list[Path] = []
    assert library.remove("got", trash.append).title == "A model"
    assert trash == [got]


def test_a_link_is_removed_and_not_what_it_leads_to(
    library: Library, root: Path, tmp_path: Path
) -> None:
    mine = make_folder(tmp_path / "elsewhere", "target.gguf")
    root.mkdir(parents=True)
    (root / "link").symlink_to(mine)
    library.remove("link", lambda _: pytest.fail("the trash is for what is ours"))
    assert (mine / "target.gguf").exists()
    assert not (root / "link").is_symlink()


@pytest.mark.parametrize("model", ["demo", "qwen3.5-4b", "nothing", ".."])
def test_what_is_not_removed(library: Library, got: Path, model: str) -> None:
    library.open("demo")
    with pytest.raises(OptionError, match="removed"):
        library.remove(model, lambda _: pytest.fail("nothing is to go"))


def test_a_trash_that_refuses(library: Library, got: Path) -> None:
    def refuse(folder: Path) -> None:
        raise OSError(30, "Read-only file system")

    with pytest.raises(OutputError, match="trash"):
        library.remove("got", refuse)


def test_a_folder_for_models_that_is_not_there(tmp_path: Path) -> None:
    bundled = Bundled(tmp_path / "assets", tmp_path / "cache")
    library = Library(tmp_path / "drive", bundled)
    assert "drive" in library.problem
    assert len(library.models()) == len(catalog.MODELS)
    with pytest.raises(OutputError, match="make the folder"):
        library.place()
    with pytest.raises(NoModelError, match="Connect its drive") as told:
        library.open("qwen3.5-4b")
    assert "pull" not in told.value.remedy
    (tmp_path / "drive").mkdir()
    assert library.problem == ""
    assert library.place() == tmp_path / "drive"
    with pytest.raises(NoModelError, match="pull"):
        library.open("qwen3.5-4b")


def test_models_in_data_on_a_drive_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that it is mounted at stays: what is written there, the drive would hide."""
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    drive, other = tmp_path / "drive", tmp_path / "other"
    for folder in (drive, other, paths.config()):
        folder.mkdir(parents=True)
    (paths.config() / "folders.json").write_text(json.dumps({"data": str(drive)}))
    moving.use_known()
    try:
        for chosen in ("", "more"):
            library = Library.of_user(chosen)
            with pytest.raises(OutputError, match="where chats and models are"):
                library.place()
            for model in ("qwen3.5-4b", "mine"):
                with pytest.raises(NoModelError, match="Connect its drive"):
                    library.open(model)
        assert Library.of_user(str(other)).problem == ""
        (drive / "chats.db").touch()
        assert Library.of_user().place() == drive / "models"
    finally:
        paths.use_data(None)
