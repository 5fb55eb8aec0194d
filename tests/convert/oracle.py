"""Runs the tree's own ``convert_hf_to_gguf.py`` over a list of jobs, in a process of its own.

usage: oracle.py TREE JOBS.json, where JOBS is a list of argument lists. One process for all jobs,
because loading torch and transformers takes longer than every tiny conversion together.

The tree names a pre-tokenizer by the hash of one text's token ids, so it knows only the
vocabularies it has seen. The tiny test vocabularies are not among them: the name is given here.
"""

from __future__ import annotations

import json
import logging
import runpy
import sys
from pathlib import Path


def main() -> None:
    tree, jobs = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8"))
    script = str(tree / "convert_hf_to_gguf.py")
    sys.path[:0] = [str(tree), str(tree / "gguf-py")]
    from conversion import base  # type: ignore[import-not-found]

    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen35"
    for arguments in jobs:
        # Set on the class by the script, and never taken back.
        for kind in list(base.ModelBase._model_classes[base.ModelType.TEXT].values()):
            kind.no_mtp = False
        logging.getLogger().handlers.clear()
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
