"""`python -m slipstream_build`: prints, as its last line, the path of what was asked for."""

from __future__ import annotations

import argparse
import sys

from . import cuda, rebase, tools, vulkan, wheel
from .errors import UNAVAILABLE, BuildError, UnavailableError


def main() -> int:
    parser = argparse.ArgumentParser(prog="slipstream_build", description=__doc__)
    parser.add_argument("--tools", action="store_true", help="llama.cpp's own programs")
    parser.add_argument("--base", action="store_true", help="with --tools: from the plain tree")
    parser.add_argument("--portable", action="store_true", help="a wheel for any processor")
    parser.add_argument("--vulkan", action="store_true", help="the Vulkan backend, to be loaded")
    parser.add_argument(
        "--cuda", metavar="ARCHITECTURES", help="the CUDA backend for these, to be loaded"
    )
    parser.add_argument("--source", action="store_true", help="only the patched source tree")
    parser.add_argument("--rebase", metavar="VERSION-or-FILE", help="try the patches on it")
    args = parser.parse_args()
    if args.base and not args.tools:
        parser.error("--base goes with --tools")
    try:
        if args.rebase:
            made = rebase.rebase(args.rebase)
        elif args.source:
            made = wheel.source()
        elif args.cuda:
            made = cuda.build(args.cuda)
        elif args.vulkan:
            made = vulkan.build()
        elif args.tools:
            made = tools.build(args.base)
        else:
            made = wheel.build(args.portable)
    except BuildError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return UNAVAILABLE if isinstance(exc, UnavailableError) else 1
    print(made, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
