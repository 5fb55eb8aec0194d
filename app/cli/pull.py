"""``slipstream pull``: one command from a name to a pair that has been tried."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from app import catalog
from app.catalog import HubSource, KnownModel
from app.cli.command import Context, Job, Result
from app.cli.convert import RECIPES, TYPES
from app.download import Access
from app.download.token import Tokens
from app.errors import OptionError
from app.job import Job as Getting
from app.job import Repair, State, Tools
from app.job.journal import FOLDER, Journal
from app.passport import Passport
from app.selftest import try_pair

HELP: Final = "get a model from the hub: download, convert, verify, try out"


def add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    ids = ", ".join(model.id for model in catalog.MODELS if not model.bundled)
    add("id", nargs="?", metavar="ID", help=f"a known model: {ids}; or one under way")
    add("--target", metavar="REPO[@REV]", help="any other target on the hub")
    add("--draft", metavar="REPO[@REV]", help="its DFlash drafter; without one it decodes plainly")
    add("--type", type=str.lower, choices=TYPES, default="", help="how weights are stored")
    add("--recipe", choices=RECIPES, default="", help="as for `convert`")
    add("--keep-source", action="store_true", help="keep the downloaded originals")
    add("--xet", action="store_true", help="allow the hub's protocol of chunks (cannot resume)")
    add("--no-check", action="store_true", help="do not load it and try it out")
    add("--discard", action="store_true", help="give up what is under way for this model")


def prepare(args: Namespace) -> Job:
    named = _named(args)
    model = _model(args, named)

    def run(context: Context) -> Result:
        tools = Tools(
            check=None if args.no_check else try_pair,
            access=Access(None if os.environ.get("HF_TOKEN") else Tokens().get(), xet=args.xet),
        )
        root = context.library.place()
        if args.discard:
            return _discard(root, model, tools)
        job = Getting.start(
            root,
            model,
            tools,
            weight_type=args.type,
            recipe=args.recipe,
            keep_source=args.keep_source,
            named=named,
        )
        if repair := job.journal.failure.repair:
            job.repair(Repair(repair))
        return _run(job, context)

    return run


def _named(args: Namespace) -> dict[str, HubSource]:
    given = {"target": args.target, "draft": args.draft}
    return {role: HubSource.parse(text) for role, text in given.items() if text is not None}


def _model(args: Namespace, named: dict[str, HubSource]) -> KnownModel:
    if (args.id is None) == (args.target is None):
        raise OptionError("Name a model.", remedy="Either its ID, or `--target` with `--draft`.")
    if args.target is not None:
        return catalog.own(named["target"], named.get("draft"))
    known = catalog.find(args.id)
    if known is None or known.bundled:
        if args.id and Path(args.id).name == args.id:
            return KnownModel(args.id, args.id, "", HubSource("", None))  # perhaps under way
        raise OptionError(
            f"`{args.id}` is not in the catalogue.",
            remedy="Name it as `--target owner/name --draft owner/name`.",
        )
    return replace(known, draft=named.get("draft", known.draft))


def _run(job: Getting, context: Context) -> Result:
    if not job.journal.target.repo:
        raise OptionError(
            f"`{job.journal.id}` is not in the catalogue.",
            remedy="Name it as `--target owner/name --draft owner/name`.",
        )

    def show(state: State) -> None:
        context.console.progress(state.words, state.fraction)

    place = job.run(show)
    passport = Passport.read(place)
    assert passport is not None
    return Result(_fields(job.journal, place, passport), f"{passport.title} is in `{place}`.")


def _fields(journal: Journal, place: Path, passport: Passport) -> dict[str, object]:
    sources: dict[str, Any] = {
        role: {"repo": s.repo, "commit": s.commit, "licence": s.licence}
        for role, s in passport.sources.items()
    }
    return {
        "id": journal.id,
        "path": str(place),
        "type": passport.type,
        "sources": sources,
        "files": {
            role: {"name": made.name, "bytes": made.bytes, "sha256": made.sha256}
            for role, made in passport.files.items()
        },
        "checks": [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in passport.checks],
    }


def _discard(root: Path, model: KnownModel, tools: Tools) -> Result:
    job = Getting.going(root, model.id, tools)
    if job is None:
        raise OptionError(
            f"Nothing is under way for `{model.id}`.",
            remedy=f"`{root / FOLDER}` holds what is.",
        )
    job.discard()
    return Result({"discarded": model.id}, f"Gave up {job.journal.title}.")
