"""The job as a state machine: each step is done, then written down, then the next begins.

DESIGN. A step may be killed anywhere and is then begun again, so it first clears away what a
former try may have left, and never trusts a file that the journal does not vouch for. What is
made lies in a hidden folder; it is renamed to its place whole, with its passport, and as long
as the journal is there lists call it unfinished. The journal goes last.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from app import download
from app.catalog import HubSource, KnownModel
from app.download import Access, Found, Listing
from app.errors import ModelFileError, NoSpaceError, OptionError, OutputError, SlipstreamError
from app.files import is_full
from app.job.journal import FOLDER, Failure, Journal, Step
from app.job.repair import Repair, repair_of
from app.job.room import Need, check_room, converted_bytes
from app.job.state import State, downloading, state
from app.jobs import CancelToken, JobCancelled
from app.passport import Check, Made, Passport, Source

_log = logging.getLogger(__name__)

OnState = Callable[[State], None]


class CheckPair(Protocol):
    """Loads the pair in `folder` and tries it out. It is the engine's, so it is passed in."""

    def __call__(
        self, folder: Path, progress: Callable[[float, str], None], cancel: CancelToken
    ) -> Sequence[Check]: ...


class ConvertPair(Protocol):
    def __call__(
        self,
        target: Path,
        draft: Path | None,
        out: Path,
        weight_type: str,
        recipe: str,
        progress: Callable[[int, int, str], None],
        cancel: CancelToken,
    ) -> dict[str, Made]: ...


def _convert(
    target: Path,
    draft: Path | None,
    out: Path,
    weight_type: str,
    recipe: str,
    progress: Callable[[int, int, str], None],
    cancel: CancelToken,
) -> dict[str, Made]:
    # Imported here: who only wants a list needs no numpy.
    from app import convert

    kind = convert.WeightType(weight_type)
    chosen = convert.Recipe(recipe) if recipe else None
    pair = convert.convert_pair(
        target, draft, out, kind, recipe=chosen, progress=progress, cancelled=cancel
    )
    made = {"target": _made(pair.target)}
    return made | ({"draft": _made(pair.draft)} if pair.draft else {})


def _made(converted: Any) -> Made:
    about = asdict(converted)
    path = about.pop("path")
    return Made(path.name, about.pop("bytes"), about.pop("sha256"), about)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a job works with. `check` None leaves the pair untried, which lists then say.

    `margin` are bytes that stay free on each disk.
    """

    check: CheckPair | None = None
    access: Access = field(default_factory=Access)
    convert: ConvertPair = _convert
    margin: int = download.MARGIN
    patience: download.Patience = field(default_factory=download.Patience)


class Job:
    """Getting one model into the folder `root`. Not for two threads at a time."""

    def __init__(self, root: Path, journal: Journal, tools: Tools) -> None:
        self._root, self._tools = root, tools
        self._work = root / FOLDER / journal.id
        self._pair = self._work / "pair"
        self._place = root / journal.id
        self._cache_known = False  # in this process, which the environment sets once
        self.journal = journal

    @classmethod
    def start(
        cls,
        root: Path,
        model: KnownModel,
        tools: Tools,
        *,
        weight_type: str = "",
        recipe: str = "",
        keep_source: bool = False,
        named: Mapping[str, HubSource] = MappingProxyType({}),
    ) -> Job:
        """A new job, or the one that is under way for this model. Nothing is done yet.

        An empty `weight_type` is the model's, an empty `recipe` the default of the type, and
        `named` are those of the model's sources that were asked for by name. Raises `OptionError`
        if the model is here already, or under way in another way than is wanted.
        """
        assert model.target is not None
        if (going := cls.going(root, model.id, tools)) is not None:
            going._check_sources(named)
            going._check_wanted(weight_type, recipe, keep_source)
            return going
        _check_free(root / model.id)
        return cls(
            root,
            Journal(
                model.id,
                model.title,
                model.target,
                model.draft,
                weight_type or model.type,
                recipe,
                keep_source,
            ),
            tools,
        )

    @classmethod
    def going(cls, root: Path, model_id: str, tools: Tools) -> Job | None:
        """The job under way for this model, if there is one.

        A journal that cannot be read vouches for nothing: then there is none.
        """
        try:
            journal = Journal.read(root / FOLDER / model_id)
        except OptionError as error:
            _log.warning("%s It is begun anew.", error.message)
            return None
        return None if journal is None else cls(root, journal, tools)

    def run(self, on_state: OnState = lambda _: None, cancel: CancelToken | None = None) -> Path:
        """Do what is left; returns the folder of the pair.

        Raises `SlipstreamError`, after noting it in the journal, and `JobCancelled`.
        """
        cancel = cancel or CancelToken()
        steps: dict[Step, Callable[[OnState, CancelToken], None]] = {
            Step.LIST: self._list,
            Step.DOWNLOAD: self._download,
            Step.CONVERT: self._convert,
            Step.VERIFY: self._verify,
            Step.CHECK: self._check,
        }
        with self._locked():
            self._note(replace(self.journal, failure=Failure()))
            try:
                while self.journal.step in steps:
                    cancel.check()
                    step = self.journal.step
                    on_state(state(step, 0.0))
                    with self._output_errors():
                        steps[step](on_state, cancel)
                on_state(state(Step.CLEAN, 0.0))
                self._clean()
            except JobCancelled:
                raise
            except SlipstreamError as error:
                self._fail(error)
                raise
        shutil.rmtree(self._work, ignore_errors=True)
        return self._place

    def repair(self, how: Repair) -> None:
        """Make ready for another `run`: what is suspect is done again."""
        match how:
            case Repair.FETCH if self.journal.listings:
                self._note(self.journal.at(Step.DOWNLOAD))
            case Repair.CONVERT if self.journal.folders:
                with self._locked():
                    if self._placed and Journal.read(self._work) is not None:
                        shutil.rmtree(self._place, ignore_errors=True)
                self._note(self.journal.at(Step.DOWNLOAD))  # which looks whether all is there

    def move(self, root: Path) -> None:
        """Go on in the folder `root`: what was fetched is kept, what was made of it is made again.

        One whose pair is in its place stays, and so does one for a model that is in `root` already
        or on its way there. Raises `OutputError` if it is being worked at or cannot be noted there.
        """
        there = root / FOLDER / self.journal.id
        if any(place.exists() for place in (self._place, root / self.journal.id, there)):
            return
        step = Step.LIST if self.journal.step is Step.LIST else Step.DOWNLOAD
        with self._locked():
            moved = Job(root, self.journal, self._tools)
            moved._note(replace(self.journal, step=step, failure=Failure()))
        shutil.rmtree(self._work, ignore_errors=True)

    def discard(self) -> None:
        """Give it up: nothing of it stays, but what was there before.

        Raises `OutputError` if it is being worked at.
        """
        with self._locked():
            _log.info("Giving up `%s`.", self.journal.id)
            self._forget()
            if self._placed:
                shutil.rmtree(self._place, ignore_errors=True)
        shutil.rmtree(self._work, ignore_errors=True)

    # --- steps ------------------------------------------------------------------

    def _list(self, on_state: OnState, cancel: CancelToken) -> None:
        sources = self.journal.sources
        away = {role: source for role, source in sources.items() if source.folder is None}
        found = download.look(list(away.values()), self._tools.access, cancel) if away else ()
        by_role = dict(zip(away, found, strict=True))
        self._need_room(by_role)
        self._note(
            self.journal.at(
                Step.DOWNLOAD,
                listings={role: one.listing for role, one in by_role.items()},
                here=_here(by_role),
                cache=str(found[0].cache) if found else "",
            )
        )
        self._cache_known = True

    def _need_room(self, found: dict[str, Found]) -> None:
        needs = [Need(one.cache, one.missing, "to download") for one in found.values()]
        weights = sum(one.listing.bytes for one in found.values())
        weights += sum(_weights_in(source.folder) for source in self._local().values())
        needs.append(Need(self._root, converted_bytes(weights, self.journal.type), "to convert"))
        by_folder: dict[tuple[Path, str], int] = {}
        for need in needs:
            key = need.folder, need.what
            by_folder[key] = by_folder.get(key, 0) + need.bytes
        check_room(
            [Need(*key[:1], count, key[1]) for key, count in by_folder.items()], self._tools.margin
        )

    def _download(self, on_state: OnState, cancel: CancelToken) -> None:
        listings = self.journal.listings
        folders = {role: source.repo for role, source in self._local().items()}
        if listings:
            self._know_cache(list(listings.values()), cancel)
            fetched = download.fetch(
                list(listings.values()),
                self._tools.access,
                lambda pace: on_state(downloading(pace)),
                cancel,
                patience=self._tools.patience,
                margin=self._tools.margin,
            )
            folders |= dict(zip(listings, map(str, fetched.folders), strict=True))
        self._note(self.journal.at(Step.CONVERT, folders=folders))

    def _know_cache(self, listings: list[Listing], cancel: CancelToken) -> None:
        """Note where files are fetched to now, before the first: `HF_HOME` may be another since."""
        if self._cache_known:
            return
        found = download.look_here(listings, self._tools.access, cancel)
        was, now = self.journal.cache, str(found[0].cache)
        if now != was:
            here = _here(dict(zip(self.journal.listings, found, strict=True)))
            left = {**self.journal.left, was: self.journal.here}
            self._note(replace(self.journal, cache=now, here=left.pop(now, here), left=left))
        self._cache_known = True

    def _convert(self, on_state: OnState, cancel: CancelToken) -> None:
        folders = {role: Path(folder) for role, folder in self.journal.folders.items()}
        for role, listing in self.journal.listings.items():
            if not _complete(folders[role], listing):  # someone cleared the hub's cache
                self._note(self.journal.at(Step.DOWNLOAD))
                return
        shutil.rmtree(self._pair, ignore_errors=True)
        self._pair.mkdir(parents=True)

        def on_bytes(done: int, total: int, tensor: str) -> None:
            on_state(state(Step.CONVERT, done / total, f"{done / total:.0%}"))

        files = self._tools.convert(
            folders["target"],
            folders.get("draft"),
            self._pair,
            self.journal.type,
            self.journal.recipe,
            on_bytes,
            cancel,
        )
        self._note(self.journal.at(Step.VERIFY, files=files))

    def _verify(self, on_state: OnState, cancel: CancelToken) -> None:
        passport = self._passport()
        moved = not self._pair.exists() and Passport.read(self._place) is not None
        place = self._place if moved else self._pair  # killed after the renaming
        passport.verify(
            place, lambda part: on_state(state(Step.VERIFY, part, f"{part:.0%}")), cancel
        )
        if not moved:
            _check_free(self._place)
            passport.write(self._pair)
            self._pair.rename(self._place)
        self._note(self.journal.at(Step.CHECK))

    def _check(self, on_state: OnState, cancel: CancelToken) -> None:
        passport = Passport.read(self._place)
        if passport is None:  # someone removed what was made
            self._note(self.journal.at(Step.CONVERT))
            return
        if self._tools.check is not None:
            checks = tuple(
                self._tools.check(
                    self._place,
                    lambda part, words: on_state(state(Step.CHECK, part, words)),
                    cancel,
                )
            )
            replace(passport, checks=checks, checked=_now()).write(self._place)
            bad = next((check for check in checks if not check.ok), None)
            if bad is not None:
                raise ModelFileError(
                    f"{self.journal.title} does not work here: `{bad.name}` failed. {bad.detail}",
                    remedy="Convert it again; if that does not help, choose another type or model.",
                )
        self._note(self.journal.at(Step.CLEAN))

    def _clean(self) -> None:
        if not self.journal.keep_source:
            self._forget()

    # --- parts ------------------------------------------------------------------

    def _check_sources(self, named: Mapping[str, HubSource]) -> None:
        """Raise `OptionError` where what is under way comes from elsewhere.

        A source that is named without a revision is that of whichever is under way.
        """
        for role, wanted in named.items():
            has = self.journal.sources.get(role)
            same = has and wanted in (has, HubSource(has.repo))
            if not same:
                what = f"from {has}" if role == "target" else f"with the drafter {has}"
                raise OptionError(
                    f"{self.journal.title} is under way {what if has else 'without a drafter'}, "
                    f"not {wanted}.",
                    remedy=f"Go on with that (`pull {self.journal.id}`), or give it up "
                    f"(`pull {self.journal.id} --discard`) and begin anew.",
                )

    def _check_wanted(self, weight_type: str, recipe: str, keep_source: bool) -> None:
        """Raise `OptionError` where what is under way is not what is wanted now."""
        has = self.journal
        other = (weight_type or has.type, recipe or has.recipe) != (has.type, has.recipe)
        unkept = keep_source and not has.keep_source
        if other or unkept:
            way = " by ".join(filter(None, [has.type, has.recipe]))
            raise OptionError(
                f"{has.title} is under way as {way}{', without keeping its originals' * unkept}.",
                remedy="Go on without these options, or give it up (`--discard`) and begin anew.",
            )

    @property
    def _placed(self) -> bool:
        """Whether what this job made is in its place already; else what is there is not its own."""
        return self.journal.step is Step.CHECK or (
            self.journal.step is Step.VERIFY and not self._pair.exists()
        )

    def _local(self) -> dict[str, HubSource]:
        """The sources that are on this machine already."""
        return {r: source for r, source in self.journal.sources.items() if source.folder}

    def _passport(self) -> Passport:
        local = {role: Source(source.repo, "", None, ()) for role, source in self._local().items()}
        sources = local | {
            role: Source(
                listing.repo,
                listing.commit,
                listing.licence or self.journal.sources[role].licence,
                tuple(asdict(file) for file in listing.files),
            )
            for role, listing in self.journal.listings.items()
        }
        return Passport(
            self.journal.id,
            self.journal.title,
            self.journal.type,
            _converter(),
            _now(),
            sources,
            self.journal.files,
        )

    def _forget(self) -> None:
        """Free the room of what this job fetched."""
        caches = {**self.journal.left, self.journal.cache: self.journal.here}
        found = [
            Found(listing, Path(cache), frozenset(here[role]), 0)
            for cache, here in caches.items()
            for role, listing in self.journal.listings.items()
        ]
        if freed := download.forget(found):
            _log.info("Freed %d MB of downloaded originals.", freed / 1e6)

    def _note(self, journal: Journal) -> None:
        with self._output_errors():
            journal.write(self._work)
        self.journal = journal

    def _fail(self, error: SlipstreamError) -> None:
        _log.info("Getting `%s` stopped: %s", self.journal.id, error)
        how = repair_of(error, self.journal.step)
        failure = Failure(error.message, error.remedy, how.value, self.journal.step.value)
        with contextlib.suppress(SlipstreamError):  # then the disk is full, which is being said
            self._note(replace(self.journal, failure=failure))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock, Timeout  # the window opens before any job is done

        with self._output_errors():
            self._work.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._work / "lock", timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise OutputError(
                    f"{self.journal.title} is being worked at by another Slipstream.",
                    remedy="Wait until it has ended, or end it.",
                ) from None
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def _output_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if is_full(error):
                raise NoSpaceError(
                    f"The disk of `{self._root}` is full.",
                    remedy="Free some space, then continue; what is here stays.",
                ) from error
            raise OutputError(
                f"`{error.filename or self._root}` cannot be written: {error.strerror or error}.",
                remedy="Check its permissions, or choose another folder for models.",
            ) from error


def _check_free(place: Path) -> None:
    """Raise `OptionError` where a model is in `place`."""
    if place.exists():
        raise OptionError(
            f"`{place}` is there already.",
            remedy="Remove that model first, if you want to get it again.",
        )


def _here(found: dict[str, Found]) -> dict[str, tuple[str, ...]]:
    return {role: tuple(sorted(one.here)) for role, one in found.items()}


def _weights_in(folder: Path | None) -> int:
    files = folder.glob("*.safetensors") if folder else ()
    return sum(file.stat().st_size for file in files)


def _complete(folder: Path, listing: Listing) -> bool:
    with contextlib.suppress(OSError):
        return all((folder / f.name).stat().st_size == f.bytes for f in listing.files)
    return False


def _converter() -> str:
    from importlib import metadata

    versions = [f"{name} {metadata.version(name)}" for name in ("slipstream", "gguf", "numpy")]
    return ", ".join(versions)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
