"""What configures the store of paid answers."""

from __future__ import annotations

from typing import Literal

from aeon.values import Value


class StoreSettings(Value):
    """`store`: whether paid answers are kept and used again; `off`: every call is made."""

    mode: Literal["off"] = "off"
