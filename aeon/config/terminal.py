"""What configures what a person sees and is asked on the command line."""

from __future__ import annotations

from typing import Literal

from aeon.domain.values import Value


class ProgressSettings(Value):
    """`progress`: what is shown on standard error while a run goes on.

    `auto` is `live` on a terminal, `plain` elsewhere; `plain` is a line for each thing that happens.
    """

    kind: Literal["auto", "live", "plain", "none"] = "auto"


class InteractionSettings(Value):
    """`interaction`: what becomes of follow-up questions.

    `none` goes on with the assumption made, `ask` puts them to the person at the terminal.
    """

    kind: Literal["none", "ask"] = "none"
