"""`aeon cassette export RUN OUT.aeon` and `aeon cassette show FILE.aeon`: recordings of runs as
portable files; `aeon replay-check FILE.aeon ...`: whether they still decide as recorded."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon.cli.terminal.status import BELOW, DONE
from aeon.cli.terminal.streams import put, say, warn
from aeon.cli.terminal.width import fit_rows
from aeon.config import origin as origins
from aeon.config.compose.literal import CONFIG_NAME, Composition, key_of, quote
from aeon.config.compose.recorded import leaves, remove
from aeon.config.environment import environment
from aeon.config.marks import take_from_others
from aeon.config.origin import is_own_run
from aeon.config.recording import find_changed, parse_of_cassette, read_usual
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.request import InputFile
from aeon.domain.values import JsonMapping, JsonObject, OwnObject
from aeon.files.fast_yaml import read_yaml
from aeon.files.inputs.stored import find_stored, locate_files, store_files
from aeon.files.secret_forms import find_masked_names
from aeon.files.text import load_json, read_linked_file
from aeon.observability.artefacts import replace_file
from aeon.report.words import (
    count_noun,
    escape_controls,
    format_seconds,
    one_line,
    relative_to_here,
)
from aeon.store.cassette import (
    Cassette,
    CassetteSource,
    Provenance,
    RecordedEnd,
    read,
    write,
)
from aeon.store.cassette_export import Scrubber, make_cassette, secret_names
from aeon.store.interface import AnswerSource
from aeon.store.models import Entry
from aeon.store.opening import is_packaged, open_source
from aeon.store.settings import CASSETTE_SUFFIX, SQLITE, read_store_settings

if TYPE_CHECKING:
    from aeon.app.trials.replay import CheckedRecording

_NOTHING_KNOWN = Provenance(answered_by="", first="", last="")
_OF_NO_REPLAY = ("interrupted", "max_seconds")
"""The ends that a person or the clock brings about."""


def export(given: Namespace) -> int:
    """Export a recording. Raises ConfigError for a run that cannot be read, StoreFailed for a file
    that cannot be written."""
    run: Path = given.run
    out: Path = given.out
    # Before the answers are read: that may take long.
    _require_free_name(out, force=given.force)
    with closing(_open_recording(run)) as source:
        earlier = source.cassette if isinstance(source, CassetteSource) else None
        entries = list(source.entries())
    if earlier is None:
        origin, configurations = _read_beside(run)
    else:
        origin = _read_origin(earlier, run)
        configurations = []
    files = _find_files(run, origin, earlier) if given.files else []
    in_force = environment()
    # Even variables of a `.env` that is not in force may be secrets.
    environ = {**in_force.withheld, **in_force}
    masked = find_masked_names(_folder_of(run))
    scrubber = Scrubber(secret_names([origin, *configurations], environ) | masked, environ)
    before = earlier.provenance if earlier else _NOTHING_KNOWN
    made = make_cassette(
        entries,
        _make_portable(origin, scrubber, is_own=earlier is not None or is_own_run(_folder_of(run))),
        scrubber=scrubber,
        home=Path.home(),
        answered_by=given.answered_by or before.answered_by or None,
        note=before.note if given.note is None else given.note,
        aeon=version("aeon-engine"),
        replaced=before.secrets_replaced,
        files=files if given.files == "inside" else (),
    )
    made = made.model_copy(update={"end": _find_end(run, earlier, scrubber)})
    _write_export(made, out, files)
    _report_export(made, out, scrubber)
    _warn_of_files(files, out)
    _warn_of_unset(masked - environ.keys(), out)
    return DONE


def _find_end(run: Path, earlier: Cassette | None, scrubber: Scrubber) -> RecordedEnd | None:
    """Return how the recorded run ended, as far as it is known and a replay can end so."""
    if earlier is not None:
        # With secrets replaced now, a replay has another answer, which is not known here.
        return None if scrubber.found else earlier.end
    result = _read_result(_folder_of(run))
    reason = result.get("termination_reason")
    answer = result.get("answer")
    if not isinstance(reason, str) or not isinstance(answer, str) or reason in _OF_NO_REPLAY:
        return None
    return RecordedEnd.of_answer(reason, scrubber.text(answer))


def _read_result(directory: Path) -> JsonMapping:
    """Read the result of a run; empty where there is none."""
    with suppress(OSError, ValueError):
        result = load_json(read_linked_file(directory / "result.json"))
        return result if isinstance(result, Mapping) else {}
    return {}


def _require_free_name(out: Path, *, force: bool) -> None:
    """Raise ConfigError for a name that is taken, or that does not end as a cassette's."""
    if out.suffix != CASSETTE_SUFFIX:
        raise ConfigError(f"{out}: the name of a cassette must end with {CASSETTE_SUFFIX}")
    if out.exists() and not force:
        raise ConfigError(
            f"{out} exists already", hint="Choose another name, or replace it with --force."
        )


def _find_files(run: Path, origin: JsonMapping, earlier: Cassette | None) -> list[InputFile]:
    """Return the files that the models were given. Raises ConfigError for one that is gone."""
    recorded = (origin.get("input_files") or {}).values()
    packed = earlier.files if earlier else {}
    described = map(origins.RecordedFile.model_validate, recorded)
    return [
        find_stored(run, file.as_input(), packed=packed.get(file.sha256, "")) for file in described
    ]


def _write_export(made: Cassette, out: Path, files: Sequence[InputFile]) -> None:
    """Write a cassette, and next to it the files that it does not contain. Raises StoreFailed."""
    # The files come first: a cassette without them could not be replayed.
    if not made.files:
        try:
            store_files(out, files)
        except OSError as error:
            problem = f"{locate_files(out)} cannot be written: {error.strerror or error}"
            raise StoreFailed(problem) from None
    write(made, out)


def _warn_of_files(files: Sequence[InputFile], out: Path) -> None:
    for file in files:
        warn(
            f"{out}: the file of the input {one_line(file.name)} is included unchanged: "
            "nothing was searched for or replaced in it."
        )


def show(given: Namespace) -> int:
    """Show a recording. Raises ConfigError for one that cannot be read."""
    try:
        put("\n".join(_describe(given.file)))
    except StoreFailed as error:
        raise ConfigError(error.message, hint=error.hint) from error
    return DONE


def check_replays(given: Namespace) -> int:
    """Run recordings again and report for each whether it decides as recorded; 4 where one does
    not. Raises ConfigError for a file that is not a cassette, for a project that is not valid or
    not trusted, and for a results file that exists and is none of JUnit, ArtefactError for one that
    cannot be written."""
    from aeon.app.trials.choices import Today
    from aeon.app.trials.replay import check_recording, write_junit
    from aeon.cli.job.arguments import read_composition

    if given.junit is not None:
        _require_replaceable(given.junit)
    of = read_composition(given)
    overrides = [*_find_own_folders(of, given.overrides), *given.overrides]
    today = Today(of.of_project or (), of.config_dir, of.config_name)
    checked = []
    unreadable = {}
    for path in given.files:
        try:
            one = check_recording(path, overrides, today=today)
        except StoreFailed as error:
            # Reported at the end: the others are checked first.
            unreadable[path] = error.message
            continue
        checked.append(one)
        put(_describe_replay(one))
    if given.junit is not None:
        replace_file(given.junit, write_junit(checked, unreadable), "junit=FILE names the file.")
    apart = sum(not one.holds for one in checked)
    _say_how_many_differ(apart, len(checked), len(unreadable))
    if unreadable:
        hint = "The other recordings were checked." if checked else ""
        raise ConfigError("\n".join(unreadable.values()), hint=hint)
    return BELOW if apart else DONE


def _say_how_many_differ(apart: int, checked: int, unreadable: int) -> None:
    if checked:
        differ = "differs" if apart == 1 else "differ"
        unread = f", {unreadable} cannot be read" if unreadable else ""
        of = count_noun(checked + unreadable, "recording")
        say(f"{of}: {apart or 'none'} {differ}{unread}.")


def _require_replaceable(junit: Path) -> None:
    """Raise ConfigError for a file that is none of JUnit, such as a recording: it would be lost."""
    if not junit.exists():
        return
    with suppress(OSError):
        content = junit.read_bytes() if junit.is_file() else b""
        if content.startswith(b"<") and b"<testsuite" in content:
            return
    raise ConfigError(
        f"junit={junit}: exists already, and is not a JUnit file",
        hint="Name a new file, or one that an earlier check has written.",
    )


def _find_own_folders(of: Composition, typed: Sequence[str]) -> list[str]:
    """Return the folders of prompts and schemas of a run that is started here, as overrides to
    stand before those that were typed: a recording brings none. Raises ConfigError for a
    configuration that is not valid."""
    from aeon.config.load import compose_settings  # slow to load

    settings = compose_settings(of.with_overrides(of.overrides[: -len(typed) or None]))
    folders = {"prompts": settings.prompts.dir, "schemas": settings.schemas.dir}
    chosen = set(map(key_of, typed))
    return [
        f"{group}.dir={quote(str(folder))}"
        for group, folder in folders.items()
        if folder and group not in chosen
    ]


def _describe_replay(one: CheckedRecording) -> str:
    path = relative_to_here(one.path)
    answers = count_noun(one.answers, "answer")
    if one.holds:
        own = ", with its own settings" if one.has_own_settings else ""
        return f"{path}: as recorded{own}, {answers}, {format_seconds(one.seconds)}"
    divergence = escape_controls(one.divergence)
    causes = "".join(f"\n  {one_line(cause)}" for cause in one.causes)
    return f"{path}: {divergence}{causes}"


def _open_recording(run: Path) -> AnswerSource:
    """Open the answers of a run. Raises ConfigError for a run that cannot be read, and for a store
    whose code would be imported."""
    try:
        configurations = (each for each in _read_beside(run)[1] if isinstance(each, Mapping))
        kinds = (read_store_settings(each).own_backend for each in configurations)
        backend = next((kind for kind in kinds if not is_packaged(kind)), SQLITE)
        _require_known_backend(run, backend)
        return open_source(run, backend)
    except StoreFailed as error:
        raise ConfigError(error.message, hint=error.hint) from error


def _require_known_backend(run: Path, backend: OwnObject) -> None:
    """Raise ConfigError for a store whose code would be imported because a stranger's folder names
    it."""
    if not is_packaged(backend) and not is_own_run(_folder_of(run)):
        raise ConfigError(
            f"{run}: its store is a {one_line(backend.factory)}, "
            "which would be imported, and the run is not known as yours",
            hint="Export it on the machine where it was made.",
        )


def _report_export(made: Cassette, out: Path, scrubber: Scrubber) -> None:
    answered_by = one_line(made.provenance.answered_by)
    put(f"{out}: {count_noun(len(made.answers), 'answer')}, answered by {answered_by}")
    for name, number in made.provenance.secrets_replaced.items():
        replacement = f"was replaced by [value of {name}]"
        say(f"The value of {name} occurred {number} times and {replacement}.")
    for name in scrubber.too_short:
        sure = f"make sure that it is not in {out}"
        warn(f"the value of {name} is too short to search for; {sure}.")
    needed = made.origin["missing"] if made.origin else ["task", "settings"]
    if needed:
        where = f"they are not in {out} or not applied from it"
        say(f"A replay must be given these, {where}: {one_line(', '.join(needed))}.")
    if made.origin and made.origin.get("choices") is None:
        say(
            "It does not say what was typed, so `aeon replay-check` takes its own settings "
            "in place of today's."
        )


def _warn_of_unset(names: frozenset[str], out: Path) -> None:
    if names:
        unset = ", ".join(sorted(names))
        warn(f"{unset} is not set: make sure that its value is not in {out}.")


def _read_origin(earlier: Cassette, path: Path) -> JsonMapping:
    """Read how the run in a cassette was started; empty where it does not record that. Raises
    ConfigError."""
    if not earlier.origin:
        return {}
    return parse_of_cassette(earlier.origin, f"{path}: its origin").model_dump(mode="json")


def _make_portable(origin: JsonMapping, scrubber: Scrubber, *, is_own: bool) -> JsonObject:
    """Return the origin of a run for a cassette: the settings that others may apply and that hold
    no secret, the keys of the rest, and what was typed for it, if the run is the person's own."""
    if not origin:
        return {}
    settings, held = take_from_others(origin["settings"], read_usual())
    # Whoever replays it gives these again; a placeholder would be taken for a value.
    secret = [key for key, value in leaves(settings) if scrubber.has_secret(json.dumps(value))]
    for key in secret:
        remove(settings, key)
    missing = dict.fromkeys([*origin["missing"], *held, *map(".".join, secret)])
    choices = _find_choices(origin, settings, tuple(missing), scrubber) if is_own else None
    apart = {
        "overrides": None,
        "choices": choices,
        "config_dir": None,
        "config_name": CONFIG_NAME,
    }
    return {**origin, **apart, "settings": settings, "missing": list(missing)}


def _find_choices(
    origin: JsonMapping, settings: JsonMapping, missing: Sequence[str], scrubber: Scrubber
) -> tuple[str, ...] | None:
    """Return what was typed for a run, without secrets; None where it cannot be composed again."""
    from aeon.app.trials.choices import find_choices  # slow to load
    from aeon.config.compose.compose import parse

    choices = find_choices(origins.parse(origin, "its origin"), settings, missing)
    # Quotes in a value may hide a secret in the text.
    values = (json.dumps(parse(text).value(), default=str) for text in choices or ())
    return None if any(map(scrubber.has_secret, values)) else choices


def _folder_of(run: Path) -> Path:
    return run if run.is_dir() else run.parent


def _read_beside(run: Path) -> tuple[JsonMapping, list[Any]]:
    """Read how a run was started, and its configurations, as far as its folder has them."""
    directory = _folder_of(run)
    configurations: list[Any] = [_read_result(directory).get("configuration")]
    with suppress(OSError, ValueError):
        configurations.append(read_yaml(directory / ".hydra" / "config.yaml"))
    if not (directory / origins.FILE).is_file():
        return {}, configurations
    return origins.read(directory, "RUN").model_dump(mode="json"), configurations


def _describe(path: Path) -> Iterator[str]:
    recorded = read(path)
    yield str(path)
    for name, text in _list_facts(recorded):
        if text:
            yield fit_rows(f"  {name:<12} {one_line(text, 300)}", 15)
    yield ""
    for entry in recorded.answers:
        yield fit_rows(_describe_answer(entry), 8)


def _list_facts(recorded: Cassette) -> Iterator[tuple[str, str]]:
    of = recorded.provenance
    answers = recorded.answers
    replaced = (f"{name} ({number})" for name, number in of.secrets_replaced.items())
    counted = Counter(entry.request.path.call for entry in answers)
    calls = (f"{number} {call}" for call, number in counted.items())
    passes = max((entry.request.path.pass_number for entry in answers), default=0)
    settings = find_changed(recorded.origin.get("settings") or {})
    changed = (f"{key}={json.dumps(value)}" for key, value in settings)
    yield "answered by", of.answered_by
    yield "models", ", ".join(of.models)
    yield "from, to", f"{of.first}, {of.last}"
    yield "usage", of.usage
    yield "note", of.note
    yield "replaced", ", ".join(replaced)
    yield "task", str(recorded.origin.get("task", ""))
    yield "files", ", ".join(_list_files(recorded))
    yield "settings", ", ".join(changed)
    yield "answers", f"{len(answers)}: {', '.join(calls)}"
    yield "passes", str(passes)
    yield "ended by", recorded.end.termination_reason if recorded.end else ""


def _list_files(recorded: Cassette) -> Iterator[str]:
    """Yield the files that the models were given, each with its place."""
    described = recorded.origin.get("input_files")
    for name, values in described.items() if isinstance(described, dict) else ():
        with suppress(ValueError):
            file = origins.RecordedFile.model_validate(values)
            where = "inside" if file.sha256 in recorded.files else "by its hash"
            yield f"{name} ({file.media_type}, {file.size:,} bytes, {where})"


def _describe_answer(entry: Entry) -> str:
    at = entry.request.path
    call = one_line(at.call)
    step = one_line(at.step_id or "")
    row = f"  pass {at.pass_number}  {at.phase:<12} {call:<20} {step:<24} "
    if entry.request.kind != "model":
        return row + entry.request.kind
    usage = entry.answer.get("usage") or {}
    text = entry.answer.get("text")
    size = str(entry.answer.get("error", "no text"))
    if isinstance(text, str):
        size = f"{len(text):,} characters"
    tokens = f"{usage.get('input_tokens', 0):,} + {usage.get('output_tokens', 0):,} tokens"
    return f"{row}{size}, {tokens}"
