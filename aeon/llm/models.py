"""What a model has said, as a run's state keeps it. A leaf."""

from __future__ import annotations

from aeon.values import Value


class LLMOutput(Value):
    """One answer of the model as it came, a repair's too; `cycle` is 0 for the profile call."""

    call: str
    cycle: int
    step_id: str | None = None
    text: str
