"""A run's answers -> a cassette: provenance told, secrets and places taken out. Pure, but for what it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aeon.domain.errors import StoreFailed
from aeon.store.cassette.scrub import Scrubber, without_places
from aeon.store.cassette.source import Cassette, Provenance, UsageOrigin
from aeon.store.models import FOUND_OUT, Entry

SIMULATED = "the simulated provider (no model)"
_OF_ONE_MACHINE = frozenset({"directory", "parent", "ancestors", "provider"})


def recorded(
    entries: Iterable[Entry],
    origin: Mapping[str, Any],
    *,
    scrubber: Scrubber,
    home: Path,
    answered_by: str | None = None,
    note: str = "",
    aeon: str = "",
    replaced: Mapping[str, int] | None = None,
) -> Cassette:
    """The cassette of a run's answers, in their order.

    `origin` is what the run was started with (`run.json`), empty when it is not known; `answered_by` and `note` are a
    person's words, `aeon` the version that writes; `replaced` counts the secrets that had been replaced before. Raises
    StoreFailed when nothing was answered.
    """
    answers = tuple(scrubber.entry(_answer_alone(entry)) for entry in entries)
    started = scrubber.value(portable(origin, home))
    told = provenance(answers, answered_by, str((origin.get("provider") or {}).get("kind") or ""))
    found = scrubber.found + Counter(replaced or {})
    changes = {"note": note, "aeon": aeon, "secrets_replaced": dict(sorted(found.items()))}
    return Cassette(provenance=told.model_copy(update=changes), origin=started, answers=answers)


def _answer_alone(entry: Entry) -> Entry:
    answer = {name: value for name, value in entry.answer.items() if name != FOUND_OUT}
    return entry.model_copy(update={"answer": answer})


def provenance(entries: Iterable[Entry], answered_by: str | None = None, provider: str = "") -> Provenance:
    """Who gave the answers and when, as far as they tell. Raises StoreFailed when there are none."""
    entries = list(entries)
    if not entries:
        raise StoreFailed("there is no answer in it", hint="Name the directory of a run that asked something.")
    asked = [entry.answer for entry in entries if entry.asked.kind == "model"]
    # A failure of the provider is kept for a replay, and is nobody's answer.
    answers = [answer for answer in asked if "text" in answer or answer.get("model")]
    models = tuple(sorted({str(answer["model"]) for answer in answers if answer.get("model")}))
    synthetic = bool(answers) and all(bool(answer.get("synthetic")) for answer in answers)
    times = sorted(entry.time for entry in entries)
    return Provenance(
        answered_by=answered_by or _answered_by(models, provider, synthetic, asked=bool(asked), answered=bool(answers)),
        models=models,
        synthetic=synthetic,
        usage=_usage(answers),
        first=times[0],
        last=times[-1],
    )


def _answered_by(models: tuple[str, ...], provider: str, synthetic: bool, *, asked: bool, answered: bool) -> str:
    if synthetic:
        return SIMULATED
    if not answered:
        return "nobody (every call failed)" if asked else "tools and persons (no model was asked)"
    return f"{', '.join(models) or 'a model that is not named'}{f' (provider {provider})' if provider else ''}"


def _usage(answers: list[dict[str, Any]]) -> UsageOrigin:
    reported = {bool(answer.get("usage_reported", True)) for answer in answers}
    if len(reported) == 2:
        return "mixed"
    return "none" if not reported else "reported" if reported == {True} else "estimated"


def portable(origin: Mapping[str, Any], home: Path) -> dict[str, Any]:
    """An origin without what is of one machine: its parents, the address that answered, absolute paths."""
    if not origin:
        return {}
    kept: dict[str, Any] = {name: value for name, value in origin.items() if name not in _OF_ONE_MACHINE}
    provider = {name: value for name, value in (origin.get("provider") or {}).items() if name != "base_url"}
    moved: dict[str, Any] = without_places({**kept, "provider": provider}, origin.get("working_directory"), home)
    # Texts that the run was given are what was asked, and must stay as they were.
    given = {name: origin[name] for name in ("task", "inputs", "context") if name in origin}
    return {**moved, **given}
