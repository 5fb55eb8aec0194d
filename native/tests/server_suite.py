"""llama.cpp's own tests of llama-server, on our build and on the unpatched one, and what differs.

    python3 dev.py server-tests [--dflash] [PYTEST ARGUMENTS]

The suite's tiny models live on a hub; here the demo's target stands in for the ones that only
have to speak, and tests that need another model or a file from the network are skipped. So a
part of the suite, which looks for certain words in the answers, fails on both sides; what counts
is the difference. With `--dflash` each server of the demo drafts with its drafter.
Each side runs in a process of its own, with this file as a pytest plugin.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import types
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SIDES = ("base", "ours")
# Presets that the demo can stand in for, also as the draft model of itself.
SERVED = ("tinyllama2", "stories15m_moe")
DRAFT_URL = "stories15M-q4_0.gguf"
CLOSED = "http://127.0.0.1:9/"  # nobody listens there: nothing is ever downloaded


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ours", type=Path, required=True, help="folder of the programs")
    parser.add_argument("--base", type=Path, required=True, help="the same, unpatched")
    parser.add_argument("--source", type=Path, required=True, help="folder of llama.cpp's sources")
    parser.add_argument("--target", type=Path, required=True, help="GGUF file of the demo's target")
    parser.add_argument("--draft", type=Path, help="GGUF file of its drafter")
    parser.add_argument("--dflash", action="store_true", help="the demo's servers draft with it")
    options, pytest_arguments = parser.parse_known_args()
    outcomes: dict[str, dict[str, str]] = {}
    for side in SIDES:
        print(f"--- {side} ---", flush=True)
        with tempfile.TemporaryDirectory() as work:
            outcomes[side] = run(getattr(options, side), options, Path(work), pytest_arguments)
    return report(outcomes)


def run(tools: Path, options: argparse.Namespace, work: Path, more: list[str]) -> dict[str, str]:
    """Outcome by test, of the suite in a copy: it writes into its own folder."""
    suite = work / "tools" / "server" / "tests"
    shutil.copytree(options.source / "tools" / "server" / "tests", suite)
    (work / "models").symlink_to(options.source.resolve() / "models")
    result = work / "outcomes.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(suite)]),
        "LLAMA_SERVER_BIN_PATH": str(tools.resolve() / "llama-server"),
        "LLAMA_CACHE": str(work / "cache"),
        "LLAMA_ARG_OFFLINE": "1",
        "MODEL_ENDPOINT": CLOSED,
        "PORT": str(free_port()),
        "OMP_WAIT_POLICY": "passive",  # threads that spin make minutes of seconds on a busy machine
        "SUITE_TARGET": str(options.target.resolve()),
        "SUITE_DRAFT": str(options.draft.resolve()) if options.dflash else "",
        "SUITE_OUTCOMES": str(result),
    }
    command = [sys.executable, "-m", "pytest", "-p", "server_suite", "-p", "no:cacheprovider"]
    command += ["-q", "--tb=no", "--timeout=120", "-m", "not slow", *more]
    subprocess.run(command, cwd=suite, env=environment, check=False)
    loaded: dict[str, str] = json.loads(result.read_text("utf-8"))
    return loaded


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def report(outcomes: dict[str, dict[str, str]]) -> int:
    """Counts and each difference on stdout; 1 if a test is less green with ours."""
    for side in SIDES:
        print(f"{side}: {dict(sorted(Counter(outcomes[side].values()).items()))}")
    worse = 0
    for test in sorted(outcomes["base"].keys() | outcomes["ours"].keys()):
        base, ours = (outcomes[side].get(test, "missing") for side in SIDES)
        if base != ours:
            print(f"{test}: {base} -> {ours}")
            worse += base == "passed"
    print("no test is less green than on the unpatched tree" if not worse else f"{worse} are worse")
    return 1 if worse else 0


# --- the plugin: loaded by pytest inside the suite's folder ------------------------------------


def _stand_in(target: str, draft: str) -> None:
    import pytest
    import requests

    # the suite imports it to download models
    sys.modules["wget"] = types.ModuleType("wget")
    import utils  # type: ignore[import-not-found]  # the suite's

    def skip(what: str) -> Any:
        pytest.skip(f"needs {what}", allow_module_level=True)

    def with_demo(preset: Any) -> Any:
        def made() -> Any:
            server = preset()
            server.model_hf_repo = server.model_hf_file = None
            server.model_file = target
            return server

        return staticmethod(made)

    for name, preset in list(vars(utils.ServerPreset).items()):
        if name in SERVED:
            setattr(utils.ServerPreset, name, with_demo(preset))
        elif name == "load_all":
            utils.ServerPreset.load_all = staticmethod(lambda: None)
        elif isinstance(preset, staticmethod) and name != "router":
            setattr(
                utils.ServerPreset, name, staticmethod(lambda name=name: skip(f"the model {name}"))
            )

    start = utils.ServerProcess.start

    def start_offline(server: Any, *args: Any, **kwargs: Any) -> None:
        for wanted in (server.model_hf_repo, server.model_url, server.mmproj_url):
            if wanted:
                skip(str(wanted))
        if draft and server.model_file == target and not server.model_draft:
            server.model_draft, server.spec_type = draft, "draft-dflash"
        start(server, *args, **kwargs)

    utils.ServerProcess.start = start_offline
    utils.download_file = lambda url, *_: target if url.endswith(DRAFT_URL) else skip(url)

    get = requests.get

    def get_here(url: str, **kwargs: Any) -> Any:
        here = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
        return get(url, **kwargs) if here else skip(url)

    vars(requests)["get"] = get_here


if target := os.environ.get("SUITE_TARGET"):
    _stand_in(target, os.environ.get("SUITE_DRAFT", ""))
_outcomes: dict[str, str] = {}


def pytest_runtest_logreport(report: Any) -> None:
    if report.outcome != "passed" or report.when == "call":
        _outcomes[report.nodeid] = report.outcome


def pytest_collectreport(report: Any) -> None:
    if report.outcome != "passed":
        _outcomes[report.nodeid] = report.outcome


def pytest_sessionfinish() -> None:
    if place := os.environ.get("SUITE_OUTCOMES"):
        Path(place).write_text(json.dumps(_outcomes), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
