"""Requests and answers for tests of the store."""

from __future__ import annotations

from typing import Any

from aeon.store.models import CallPath, Entry, Kind, StoreRequest

SYSTEM = "You carry out one step.\n" * 40


def asked(
    user: str = "do it",
    *,
    kind: Kind = "model",
    call: str = "step",
    pass_number: int = 1,
    phase: str = "EXECUTE",
    step: str | None = "s1",
    attempt: int = 0,
    occurrence: int = 0,
    **request: Any,
) -> StoreRequest:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]
    whole = {
        "model": "m",
        "messages": messages,
        "schema": {"type": "object", "title": "a schema " * 40},
        "sample": 0,
    }
    path = CallPath(
        pass_number=pass_number,
        phase=phase,
        call=call,
        step_id=step,
        attempt=attempt,
        occurrence=occurrence,
    )
    return StoreRequest(kind=kind, path=path, body={**whole, **request})


def entry(user: str = "do it", text: str = "done", **more: Any) -> Entry:
    answer = {
        "text": text,
        "model": "m",
        "usage": {"input_tokens": 10, "output_tokens": 2, "requests": 1},
    }
    return Entry(
        request=asked(user, **more),
        answer={**answer, "finish_reason": "stop"},
        time="2026-11-22T10:00:00.000+00:00",
    )
