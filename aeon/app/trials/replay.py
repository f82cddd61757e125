"""Runs recordings with today's prompts, schemas, code and configuration, and checks that each
decides as it did."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from xml.etree import ElementTree

from aeon.app.aeon import Aeon
from aeon.app.trials.choices import Today, select_choices
from aeon.config import load, recording
from aeon.config.compose.literal import Composition, key_of, quote, quote_override
from aeon.config.compose.recorded import Key, leaves, record
from aeon.config.marks import take_from_others
from aeon.config.recording import parse_of_cassette, read_usual
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.history import RunError
from aeon.domain.result import RunResult
from aeon.domain.values import JsonObject
from aeon.llm.prompts import show_path
from aeon.report.words import encode_for_xml, one_line
from aeon.store.cassette import Cassette, RecordedEnd, read

_OF_FILES = {"system message": "system", "user message": "user", "schema": "schema"}
"""The parts of a request that come from a file, by the name of that file."""
_OF_MODELS = frozenset({"model", "parameters", "provider"})
"""The parts of a request that say which model is asked, and how."""
_MODEL_GROUPS = ("provider", "roles", "reasoning")
"""The groups of settings that make them."""
_MOST_KEYS = 5


@dataclass(frozen=True, slots=True)
class CheckedRecording:
    """A recording that was run again. `divergence` says where it first departed, empty where it did
    not, and `causes` what has changed that may explain it. `has_own_settings`: the recorded
    settings were taken, since it is not known what was typed for the run."""

    path: Path
    seconds: float
    answers: int
    divergence: str = ""
    causes: tuple[str, ...] = ()
    has_own_settings: bool = False

    @property
    def holds(self) -> bool:
        """Whether exactly the recorded answers were requested, and the run ended as recorded."""
        return not self.divergence


def check_recording(
    path: Path,
    overrides: Sequence[str],
    environ: Mapping[str, str] | None = None,
    *,
    today: Today | None = None,
) -> CheckedRecording:
    """Run a recording with what was chosen for it in the configuration of `today`, then with these
    overrides, without a network. A recording that does not say what was chosen has its own
    settings. Raises StoreFailed for a file that is not a cassette."""
    today = today or Today()
    began = perf_counter()
    cassette = read(path)
    recorded = sum(entry.request.kind == "model" and entry.usable for entry in cassette.answers)
    divergence = ""
    causes: tuple[str, ...] = ()
    replayed = None
    try:
        replayed = _compose_choices(cassette, path, today)
        composition = recording.composition(
            Composition(
                overrides=tuple(map(quote_override, (*_list_replay(path), *overrides))),
                # Only overrides choose options of a folder, and composing with one takes longer.
                config_dir=today.config_dir if overrides else None,
                replayed=replayed,
            )
        )
        settings = load.compose_settings(composition)
        with Aeon(settings, environ, composition=composition) as aeon:
            result = aeon.run(warn=lambda _: None)
            divergence = _find_divergence(result, recorded, cassette.end)
            causes = tuple(_find_causes(aeon, cassette, path, result)) if divergence else ()
    except ConfigError as error:
        # A recording may be anybody's, and name what it wants.
        divergence = f"it cannot be started: {one_line(error.message)}"
        causes = (error.hint,) if error.hint else ()
    seconds = perf_counter() - began
    return CheckedRecording(path, seconds, recorded, divergence, causes, replayed is None)


def _compose_choices(cassette: Cassette, path: Path, today: Today) -> JsonObject | None:
    """Return the settings of a recorded run as they are composed today; None where it is not known
    what was chosen for it. Raises ConfigError."""
    if not cassette.origin:
        return None
    origin = parse_of_cassette(cassette.origin, f"{path}: its origin")
    choices = select_choices(origin.choices)
    if choices is None:
        return None
    try:
        return today.compose(choices)
    except ConfigError as error:
        hints = [error.hint] if error.hint else []
        if today.config_dir is None and any("." not in key_of(text) for text in choices):
            hints.append(
                f"It was recorded with {' '.join(choices)}; --config-dir names a folder of options."
            )
        raise ConfigError(error.message, hint=" ".join(hints)) from None


def _list_replay(path: Path) -> tuple[str, ...]:
    # Values: an option would have the whole configuration composed twice.
    silent = ("observability.sinks={}", "observability.otel=false", "observability.report=false")
    return ("store.mode=replay", f"store.path={quote(str(path))}", *silent)


def _find_divergence(result: RunResult, recorded: int, end: RecordedEnd | None) -> str:
    reason = result.termination_reason
    error = result.error
    # A run that failed when it was recorded fails again; a missing answer is no such failure.
    if error is not None and (error.call or end is None or end.termination_reason != reason):
        return error.message
    used = result.parent.saved.model_calls if result.parent else 0
    if used < recorded:
        left = recorded - used
        return f"it ended earlier ({reason}): {left} of {recorded} answers were not asked for"
    if end is None or end == RecordedEnd.of_answer(reason, result.answer):
        return ""
    if end.termination_reason != reason:
        return f"it ended by {reason}, and the recorded run by {end.termination_reason}"
    return "its answer is not the recorded one"


def _find_causes(aeon: Aeon, cassette: Cassette, path: Path, result: RunResult) -> Iterator[str]:
    """Yield the files, keys and versions that the differing parts are made of."""
    error = result.error
    parts = error.differs if error is not None else ()
    if error is not None:
        yield from _find_files(aeon, error, cassette.origin.get("hashes") or {})
    changed = list(_find_changed_keys(aeon, path))
    # The keys of the model come first where it is asked otherwise, and last where it is not.
    is_of_model = not _OF_MODELS.isdisjoint(parts)
    changed.sort(key=lambda one: (one[0][0] in _MODEL_GROUPS) != is_of_model)
    for key, change in islice(changed, _MOST_KEYS):
        named = next((part for part in parts if part in key), "key")
        yield f"{named}: {'.'.join(key)} {change}"
    if len(changed) > _MOST_KEYS:
        yield f"key: and {len(changed) - _MOST_KEYS} more"
    yield from _compare_versions(cassette, result)


def _find_changed_keys(aeon: Aeon, path: Path) -> Iterator[tuple[Key, str]]:
    """Yield the keys of settings that differ from the recorded ones, each with its change."""
    before, _ = _select_settings(load.compose(_list_replay(path)))
    now, held = _select_settings(aeon.job.chosen)
    for key in {**before, **now}:
        if (key in before, before.get(key)) != (key in now, now.get(key)):
            yield key, f"is {_show_value(now, key)}, recorded: {_show_value(before, key)}"
    missing = aeon.job.origin.missing if aeon.job.origin else ()
    for name in sorted({*held} ^ {*missing}):
        # Prompts and schemas are compared by their content; the results of checks are recorded.
        if not name.startswith(("prompts.", "schemas.", "convergence.checks.")):
            change = "is set, recorded: not set" if name in held else "is not set, recorded: set"
            yield tuple(name.split(".")), change


def _show_value(values: Mapping[Key, object], key: Key) -> str:
    return one_line(json.dumps(values[key], ensure_ascii=False), 60) if key in values else "not set"


def _select_settings(settings: Settings) -> tuple[dict[Key, object], tuple[str, ...]]:
    """Return the settings that a cassette may bring, and the keys of those that it may not."""
    values, _ = record(settings)
    taken, held = take_from_others(values, read_usual())
    return dict(leaves(taken)), held


def _find_files(aeon: Aeon, error: RunError, hashes: Mapping[str, str]) -> Iterator[str]:
    """Yield the prompt and schema files of the request that matches no recorded one."""
    parts = [part for part in error.differs if part in _OF_FILES]
    files = aeon.render(error.call, "the task").files if parts else {}
    for part in parts:
        kind = "schemas" if part == "schema" else "prompts"
        changed = hashes.get(kind) != aeon.hashes[kind]
        since = "changed since" if changed else "as recorded: what fills them changed"
        yield f"{part}: {show_path(files[_OF_FILES[part]])} ({kind} {since})"


def _compare_versions(cassette: Cassette, result: RunResult) -> Iterator[str]:
    before = (cassette.origin.get("versions") or {}).get("aeon-engine")
    now = result.versions.get("aeon-engine")
    if before and before != now:
        yield f"version: recorded by aeon-engine {before}, checked by {now}"


def write_junit(checked: Sequence[CheckedRecording], unreadable: Mapping[Path, str]) -> bytes:
    """Return the outcome as JUnit XML: a case for each recording. One that decides otherwise is a
    failure, an `unreadable` one, with the reason, an error."""
    suite = ElementTree.Element(
        "testsuite",
        name="recordings",
        tests=str(len(checked) + len(unreadable)),
        failures=str(sum(not one.holds for one in checked)),
        errors=str(len(unreadable)),
    )
    for one in checked:
        name = encode_for_xml(str(one.path))
        case = ElementTree.SubElement(suite, "testcase", name=name, time=f"{one.seconds:.3f}")
        if one.has_own_settings:
            said = ElementTree.SubElement(case, "system-out")
            said.text = "checked with its own settings, not with today's"
        if not one.holds:
            failure = ElementTree.SubElement(
                case, "failure", message=encode_for_xml(one.divergence.partition("\n")[0])
            )
            failure.text = encode_for_xml("\n".join((one.divergence, *one.causes)))
    for path, problem in unreadable.items():
        case = ElementTree.SubElement(suite, "testcase", name=encode_for_xml(str(path)))
        ElementTree.SubElement(case, "error", message=encode_for_xml(problem))
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
