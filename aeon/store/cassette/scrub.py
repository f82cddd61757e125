"""What must not leave the machine with a cassette: the values of secret environment variables, and where things lie."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from aeon.store.models import Entry

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
