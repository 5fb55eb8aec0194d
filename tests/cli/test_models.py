"""``slipstream models``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import Slipstream


def test_models(slipstream: Slipstream) -> None:
    before = slipstream("models", "--json").json["models"]
    assert [(m["id"], m["state"]) for m in before] == [
        ("demo", "bundled"),
        ("qwen3.5-4b", "coming"),
    ]
    assert list(before[0]) == ["id", "title", "state", "reason", "path", "bytes"]
    assert before[0]["path"] is None
    assert before[1]["reason"]

    slipstream("ask", "Hello")
    demo = slipstream("models", "--json").json["models"][0]
    assert (demo["state"], demo["reason"], demo["bytes"]) == ("ready", "", 8)
    assert demo["path"]
    assert slipstream("models").out.startswith("demo  Built-in guide (ready")


def test_a_broken_one_is_a_row(slipstream: Slipstream, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "cat").symlink_to("/mnt/absent")
    run = slipstream("models", "--json")
    assert run.status == 0
    (row,) = (row for row in run.json["models"] if row["id"] == "cat")
    assert (row["state"], row["bytes"]) == ("broken", 0)
    assert "/mnt/absent" in row["reason"]
    assert "cat  cat (broken)" in slipstream("models").out
