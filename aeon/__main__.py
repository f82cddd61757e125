"""`python -m aeon` and the console script `aeon`: the same program."""

from __future__ import annotations

import sys

from aeon.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
