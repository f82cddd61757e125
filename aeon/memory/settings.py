"""What configures memory."""

from __future__ import annotations

from typing import Literal

from aeon.values import Value


class MemorySettings(Value):
    """`memory`: where what a run remembers is kept; `in_memory` lasts as long as the process."""

    kind: Literal["in_memory"] = "in_memory"
