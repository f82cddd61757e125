"""Exporting a run's answers as a cassette: with their provenance, without secrets and paths of this machine."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from aeon.domain.errors import StoreFailed
from aeon.store.cassette import Cassette, Provenance, UsageOrigin
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


LEAST_LENGTH = 6
"""A shorter value cannot be told from ordinary text, and is not looked for."""

_ENDINGS = (
    *("_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "CREDENTIAL"),
    *("_PASS", "_PWD", "_AUTH"),
)
_SHORTEST_BASE64 = 8
"""Characters: a shorter piece of base64 may be anything."""


def secret_names(configuration: Any, environ: Mapping[str, str]) -> frozenset[str]:
    """The environment variables that hold secrets: those that a configuration names for it, in keys that are `env` or
    end with `_env`, and those whose own name says so (`..._KEY`, `..._TOKEN`)."""
    named = {name for name in environ if name.upper().endswith(_ENDINGS)}
    return frozenset(named | set(_named(configuration)))


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "env" or str(key).endswith("_env"):
                yield from _texts(item)
            else:
                yield from _named(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named(item)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (item for item in value.values() if isinstance(item, str))
    elif isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, str))


class Scrubber:
    """Replaces the values of variables in texts by `[value of NAME]`; `found` counts them by name.

    The same value becomes the same words everywhere, so that a replay meets in its requests what it was given.
    """

    def __init__(self, names: frozenset[str], environ: Mapping[str, str]) -> None:
        values = {name: environ.get(name, "").strip() for name in sorted(names)}
        self.too_short = tuple(name for name, value in values.items() if 0 < len(value) < LEAST_LENGTH)
        forms = {form: name for name, value in values.items() if len(value) >= LEAST_LENGTH for form in _forms(value)}
        self._forms = sorted(forms.items(), key=lambda pair: -len(pair[0]))
        self.found: Counter[str] = Counter()

    def holds(self, text: str) -> bool:
        """Whether a text has one of the values in it."""
        return any(form in text for form, _ in self._forms)

    def text(self, text: str) -> str:
        """A text without the values."""
        for form, name in self._forms:
            number = text.count(form)
            if number:
                self.found[name] += number
                text = text.replace(form, f"[value of {name}]")
        return text

    def value(self, value: Any) -> Any:
        """A JSON value without them, keys of objects included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def entry(self, entry: Entry) -> Entry:
        """An answer without them, and its request."""
        asked = entry.asked.model_copy(update={"request": self.value(entry.asked.request)})
        path = asked.path
        if path.step_id is not None:
            path = path.model_copy(update={"step_id": self.text(path.step_id)})
        # Made anew: a digest that was computed before would be of the old request.
        asked = type(asked)(kind=asked.kind, path=path, request=asked.request)
        return entry.model_copy(update={"asked": asked, "answer": self.value(entry.answer)})


def _forms(value: str) -> set[str]:
    """A value as it may stand in texts: as it is, inside JSON and JSON inside that, inside a URL, in base64."""
    forms = {value}
    for _ in range(3):
        forms |= {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (True, False)}
    forms |= {quoting(value, safe) for quoting in (quote, quote_plus) for safe in ("", "/")}
    return forms | set(_base64(value.encode("utf-8", "surrogatepass")))


def _base64(value: bytes) -> Iterator[str]:
    """The value alone; and what is the same of it wherever it begins within a longer text: 6 bits are a character."""
    for encoded in (b64encode, urlsafe_b64encode):
        yield encoded(value).decode()
        for before in range(3):
            whole = encoded(b"\0" * before + value).decode().rstrip("=")
            piece = whole[-(-before * 8 // 6) : (before + len(value)) * 8 // 6]
            if len(piece) >= _SHORTEST_BASE64:
                yield piece


def without_places(value: Any, working: str | None, home: Path) -> Any:
    """A JSON value whose paths are seen from the working directory, or from the home directory as `~`."""
    places = [(str(working), ".")] if working and len(working) > 1 else []
    places += [(str(home), "~")] if len(str(home)) > 1 else []
    return _moved(value, places)


def _moved(value: Any, places: Sequence[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for place, short in places:
            # Only whole names: /home/ann is not the beginning of /home/anna.
            value = short if value == place else value.replace(f"{place}/", f"{short}/")
            value = value[: -len(place)] + short if value.endswith(f"={place}") else value
        return value
    if isinstance(value, Mapping):
        return {key: _moved(item, places) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_moved(item, places) for item in value]
    return value
