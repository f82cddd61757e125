"""Gives each answer of the recordings in examples/cassettes today's request: `python -m tests.contract.rekey`.

For prompts that were worded anew where the answers still fit them: read the difference first. The day of the requests
stands in each recording's note.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from re import sub

from aeon import Aeon
from aeon.store import lookup
from aeon.store.cassette import Cassette, RecordedEnd, read, write
from aeon.store.models import Entry, StoreRequest

RECORDINGS = Path(__file__).parents[2] / "examples" / "cassettes"


def overrides_of(recording: Path, cassette: Cassette) -> list[str]:
    """The overrides that replay a recording; its tools are loaded where it called some."""
    used_tools = any(entry.request.kind == "tool" for entry in cassette.answers)
    replay = ["store.mode=replay", f"store.path={recording}"]
    return [*replay, "tools=builtin"] if used_tools else replay


def find_requests(
    recording: Path, cassette: Cassette
) -> tuple[dict[str, StoreRequest], Mapping[str, str], RecordedEnd]:
    """Today's requests by the keys of the recorded ones, the hashes of prompts, schemas and configuration, and the
    end of the run."""
    requests: dict[str, StoreRequest] = {}
    find = lookup.InOrder.find

    def find_and_note(
        self: lookup.InOrder, request: StoreRequest, policy: lookup.ReusePolicy
    ) -> Entry | None:
        entry = find(self, request, policy)
        if entry is not None:
            requests[entry.request.key] = request
        return entry

    lookup.InOrder.find = find_and_note  # type: ignore[method-assign]
    try:
        overrides = [*overrides_of(recording, cassette), "store.match=order"]
        with Aeon.from_config(overrides, environ={}) as aeon:
            result = aeon.run(cassette.origin["task"])
            end = RecordedEnd.of_answer(result.termination_reason, result.answer)
            return requests, aeon.hashes, end
    finally:
        lookup.InOrder.find = find  # type: ignore[method-assign]


def rekey(recording: Path) -> None:
    """Write a recording with today's requests. Raises ValueError when an answer is not asked for any more."""
    cassette = read(recording)
    requests, hashes, end = find_requests(recording, cassette)
    unasked = [entry for entry in cassette.answers if entry.request.key not in requests]
    if unasked:
        raise ValueError(f"{recording.name}: {len(unasked)} of its answers are not asked for")
    answers = tuple(
        entry.model_copy(update={"request": requests[entry.request.key]})
        for entry in cassette.answers
    )
    today = datetime.now(UTC).date().isoformat()
    note = sub(r"those of \d{4}-\d\d-\d\d", f"those of {today}", cassette.provenance.note)
    provenance = cassette.provenance.model_copy(update={"note": note})
    origin = {**cassette.origin, "hashes": {**cassette.origin["hashes"], **hashes}}
    changes = {"answers": answers, "provenance": provenance, "origin": origin, "end": end}
    write(cassette.model_copy(update=changes), recording)


if __name__ == "__main__":
    for path in sorted(RECORDINGS.glob("*.aeon")):
        rekey(path)
