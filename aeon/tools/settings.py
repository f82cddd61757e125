"""What configures the tools."""

from __future__ import annotations

from typing import Literal

from aeon.values import Value


class ToolSettings(Value):
    """`tools`: which tools steps may use; `none`: every step is done by the model."""

    kind: Literal["none"] = "none"
