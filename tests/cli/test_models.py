"""``slipstream models``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import Slipstream


def test_models(slipstream: Slipstream) -> None:
    before = slipstream("models", "--json").json["models"]
    assert [(m["id"], m["state"]) for m in before][:2] == [
        ("demo", "bundled"),
        ("qwen3.5-4b", "available"),
    ]
    fields = ["id", "title", "state", "reason", "path", "bytes", "type", "used", "passport"]
    assert list(before[0]) == fields
    assert before[0]["path"] is None
    assert "`slipstream pull qwen3.5-4b`" in slipstream("models").out

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


def test_no_name_is_no_model_to_verify(slipstream: Slipstream) -> None:
    run = slipstream("models", "--verify", "", "--json")
    assert (run.status, run.json["ok"]) == (1, False)
    assert "no model or folder ``" in run.json["detail"]
