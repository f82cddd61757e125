"""Exports a run's answers as a cassette with their provenance, without secrets and local paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aeon.domain.errors import StoreFailed
from aeon.domain.request import InputFile
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.fences import change_fenced
from aeon.files.secret_forms import secret_forms
from aeon.store.cassette import Cassette, Provenance, UsageOrigin
from aeon.store.models import FOUND_OUT, Entry, StoreRequest

_LEAST_LENGTH = 6  # shorter values may be ordinary text and are not searched for
_OF_ONE_MACHINE = frozenset({"directory", "parent", "ancestors", "provider", "seal"})
_GIVEN = ("task", "inputs", "context", "checks", "answer", "settings", "choices")
"""What requests are made of: a replay with other texts would ask for something else."""
_SECRET_ENDINGS = (
    *(
        "_KEY",
        "APIKEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIALS",
        "CREDENTIAL",
    ),
    *("_PASS", "_PWD", "_AUTH"),
)
_USAGE: Mapping[tuple[bool, ...], UsageOrigin] = {
    (): "none",
    (True,): "reported",
    (False,): "estimated",
    (False, True): "mixed",
}


class Scrubber:
    """Replaces the values of variables by `[value of NAME]`: verbatim, in JSON, in JSON within
    JSON, in URLs, and in base64. `found` counts them by name."""

    def __init__(self, names: frozenset[str], environ: Mapping[str, str]) -> None:
        values = {name: environ.get(name, "").strip() for name in sorted(names)}
        self.too_short = tuple(
            name for name, value in values.items() if 0 < len(value) < _LEAST_LENGTH
        )
        forms = {
            form: name
            for name, value in values.items()
            if len(value) >= _LEAST_LENGTH
            for form in secret_forms(value)
        }
        self._forms = sorted(forms.items(), key=lambda pair: -len(pair[0]))
        self.found: Counter[str] = Counter()

    def has_secret(self, text: str) -> bool:
        """Whether a text contains one of the values."""
        return any(form in text for form, _ in self._forms)

    def text(self, text: str) -> str:
        """Replace each secret in a text by the name of its variable."""
        for form, name in self._forms:
            if number := text.count(form):
                self.found[name] += number
                text = text.replace(form, f"[value of {name}]")
        return text

    def prompt(self, text: str) -> str:
        """Replace the secrets in a prompt, and rename its fences as a replay with the replacements
        will name them."""
        return change_fenced(text, self.text) if self.has_secret(text) else text

    def value(self, value: object) -> Any:
        """Replace the secrets in a JSON value, including the keys of objects."""
        return _map_texts(value, self.text)

    def entry(self, entry: Entry) -> Entry:
        """Replace the secrets in an answer and its request; findings about servers are left out."""
        path = entry.request.path
        path = path.model_copy(update={"step_id": path.step_id and self.text(path.step_id)})
        body = _map_texts(entry.request.body, self.prompt)
        request = StoreRequest(kind=entry.request.kind, path=path, body=body)
        answer = {name: value for name, value in entry.answer.items() if name != FOUND_OUT}
        return Entry(request=request, answer=self.value(answer), time=entry.time)


def _map_texts(value: object, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value


def make_cassette(
    entries: Iterable[Entry],
    origin: JsonMapping,
    *,
    scrubber: Scrubber,
    home: Path,
    answered_by: str | None = None,
    note: str = "",
    aeon: str = "",
    replaced: Mapping[str, int] | None = None,
    files: Iterable[InputFile] = (),
) -> Cassette:
    """Make a cassette from a run's answers. `origin` is its `run.json`, empty if unknown;
    `replaced` counts the secrets replaced earlier; `files` are included unchanged. Raises
    StoreFailed if there are no answers."""
    answers = tuple(scrubber.entry(entry) for entry in entries if entry.request.kind != "begun")
    started = scrubber.value(remove_places(origin, home))
    provenance = find_provenance(
        answers, answered_by, str((origin.get("provider") or {}).get("kind") or "")
    )
    found = scrubber.found + Counter(replaced or {})
    changes = {"note": note, "aeon": aeon, "secrets_replaced": dict(sorted(found.items()))}
    return Cassette(
        provenance=provenance.model_copy(update=changes),
        origin=started,
        files={file.sha256: file.base64 for file in files},
        answers=answers,
    )


def find_provenance(
    entries: Iterable[Entry], answered_by: str | None = None, provider: str = ""
) -> Provenance:
    """Return who gave the answers and when, as far as they say. Raises StoreFailed if there are
    none."""
    entries = list(entries)
    if not entries:
        raise StoreFailed(
            "there is no answer in it", hint="Give the directory of a run that has answers."
        )
    of_models = [entry.answer for entry in entries if entry.request.kind == "model"]
    answers = list(filter(_is_answer, of_models))
    models = tuple(sorted({str(answer["model"]) for answer in answers if answer.get("model")}))
    synthetic = bool(answers) and all(answer.get("synthetic") for answer in answers)
    if not answered_by:
        answered_by = _name_models(models, provider) if answers else _name_nobody(of_models)
        answered_by = "the simulated provider (no model)" if synthetic else answered_by
    times = [entry.time for entry in entries]
    return Provenance(
        answered_by=answered_by,
        models=models,
        synthetic=synthetic,
        usage=_find_usage_origin(answers),
        first=min(times),
        last=max(times),
    )


def _find_usage_origin(answers: Iterable[JsonMapping]) -> UsageOrigin:
    reported = {bool(answer.get("usage_reported", True)) for answer in answers}
    return _USAGE[tuple(sorted(reported))]


def _name_nobody(failures: Sequence[JsonMapping]) -> str:
    return "nobody (every call failed)" if failures else "tools and persons (no model was asked)"


def _is_answer(answer: JsonMapping) -> bool:
    """Whether a model gave it; a provider's failure is stored for replays but is no answer."""
    return "text" in answer or bool(answer.get("model"))


def _name_models(models: Sequence[str], provider: str) -> str:
    named = ", ".join(models) or "a model that is not named"
    return f"{named} (provider {provider})" if provider else named


def remove_places(origin: JsonMapping, home: Path) -> JsonObject:
    """Return an origin without its parents and the provider's address, with paths relative to the
    working or home directory; what requests are made of is unchanged. Its settings are those that a
    replay takes, which are no paths."""
    if not origin:
        return {}
    places = [(str(origin.get("working_directory") or ""), "."), (str(home), "~")]
    shorten = partial(_shorten, places=[place for place in places if len(place[0]) > 1])
    portable = {
        name: value if name in _GIVEN else _map_texts(value, shorten)
        for name, value in origin.items()
        if name not in _OF_ONE_MACHINE
    }
    provider = dict(origin.get("provider") or {})
    provider.pop("base_url", None)
    # Requests have the model's name, which may be the path of its file.
    return {**portable, "provider": provider}


def _shorten(text: str, places: Iterable[tuple[str, str]]) -> str:
    for place, short in places:
        # Only whole names: /home/ann is not a prefix of /home/anna.
        text = short if text == place else text.replace(f"{place}/", f"{short}/")
    return text


def secret_names(configuration: object, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the environment variables that hold secrets: those named by keys `env` and `*_env` of
    a configuration, and those with telling names (`..._KEY`, `..._TOKEN`)."""
    named = filter(is_secret_name, environ)
    return frozenset(set(named) | set(_find_names(configuration)))


def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that it holds a secret."""
    return name.upper().endswith(_SECRET_ENDINGS)


def _find_names(value: object, *, in_env: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _find_names(item, in_env=in_env or key == "env" or str(key).endswith("_env"))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _find_names(item, in_env=in_env)
    elif in_env and isinstance(value, str):
        yield value
