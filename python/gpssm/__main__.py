"""The program `gpssm`, which the package installs: `gpssm ...` or `python -m gpssm ...`."""

from __future__ import annotations

import sys
from typing import NoReturn

from . import _core


def main() -> NoReturn:
    """Run the program with the words of the command line, and leave with its exit code."""
    sys.exit(_core.run_program(["gpssm", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
