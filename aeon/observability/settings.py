"""What configures the journals of a run."""

from __future__ import annotations

from aeon.domain.values import Value


class ObservabilitySettings(Value):
    """`observability`: which journals are written beside the result.

    `events` is `events.jsonl`, what happened as it happened; `cycles` is `cycles.jsonl`, every LLM cycle with the
    plan, the raw answer and its repairs.
    """

    events: bool = True
    cycles: bool = True
