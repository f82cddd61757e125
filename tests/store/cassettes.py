"""Kept answers for tests of cassettes."""

from __future__ import annotations

from typing import Any

from aeon.store.models import CallPath, Entry, Kind, StoreRequest

SYSTEM = "You judge.\n\n" + "A rule that is said in every request.\n" * 5


def entry(
    text: str = "an answer",
    *,
    kind: Kind = "model",
    call: str = "step",
    number: int = 1,
    step: str | None = None,
    user: str = "do it",
    request: dict[str, Any] | None = None,
    **answer: Any,
) -> Entry:
    """An answer of a model, or of a tool."""
    asked = {
        "model": "m-1",
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}],
        "schema": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(9)}},
    }
    given: dict[str, Any] = {"text": text} if kind == "model" else {"output": text}
    if kind == "model":
        given |= {
            "model": "m-1",
            "usage": {"input_tokens": 10, "output_tokens": 2},
            "response_id": f"id-{number}",
        }
    return Entry(
        request=StoreRequest(
            kind=kind,
            path=CallPath(pass_number=number, phase="EXECUTE", call=call, step_id=step),
            body=asked if request is None else request,
        ),
        answer=given | answer,
        time=f"2026-11-21T10:00:{number:02}.000+00:00",
    )
