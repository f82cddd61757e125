"""The typed overrides of a recorded run, to be composed again with today's configuration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra.core.override_parser.types import Override

from aeon.config import load
from aeon.config.compose.compose import parse
from aeon.config.compose.literal import CONFIG_NAME, Composition, key_of
from aeon.config.compose.recorded import FILLED_FROM, leaves, record
from aeon.config.compose.take_over import list_keys
from aeon.config.marks import mark_at, take_from_others
from aeon.config.origin import Origin
from aeon.config.recording import read_usual
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject

_PROVIDER = "provider"
_FILES = {".".join(key) for key in FILLED_FROM}


@dataclass(frozen=True, slots=True)
class Today:
    """Today's configuration: the overrides of a project file, and a folder of configuration with
    its primary file. It composes equal choices once."""

    project: tuple[str, ...] = ()
    config_dir: Path | None = None
    config_name: str = CONFIG_NAME
    _composed: dict[tuple[str, ...], JsonObject] = field(default_factory=dict)

    def compose(self, choices: tuple[str, ...]) -> JsonObject:
        """Return the settings that a run with these overrides has today, those that a recording may
        bring, without its provider. Raises ConfigError."""
        if choices not in self._composed:
            groups = set(map(key_of, choices))
            # As on the command line: a group that is chosen there is not the project's.
            project = (
                text for text in self.project if key_of(text).partition(".")[0] not in groups
            )
            composition = Composition(
                overrides=(*project, *choices),
                config_dir=self.config_dir,
                config_name=self.config_name,
            )
            try:
                values, _ = record(load.compose_settings(composition))
            except OSError as error:  # a name that no file can have
                raise ConfigError(f"the recorded choices: {error.strerror or error}") from None
            taken, _ = take_from_others(values, read_usual())
            taken.pop(_PROVIDER, None)
            self._composed[choices] = taken
        return self._composed[choices]


def find_choices(
    origin: Origin, settings: JsonMapping, missing: Collection[str]
) -> tuple[str, ...] | None:
    """Return the typed overrides of a run that compose its recorded `settings` again; None where
    there are no such: they are not known, set a key that is `missing`, or the files that they were
    composed with have changed."""
    choices = select_choices(origin.choices, missing)
    if choices is None or origin.overrides is None:
        return choices  # those of a cassette were tried when it was exported
    if origin.config_name != CONFIG_NAME:
        return None
    try:
        composed = _day_of_run(origin).compose(choices)
    except ConfigError:
        return None
    recorded = {name: value for name, value in settings.items() if name != _PROVIDER}
    return choices if dict(leaves(composed)) == dict(leaves(recorded)) else None


def _day_of_run(origin: Origin) -> Today:
    """Return the configuration that a run was composed with, as far as its files are as they
    were."""
    project = list(origin.overrides or ())
    for text in origin.choices or ():
        if text in project:
            project.remove(text)
    return Today(tuple(project), Path(origin.config_dir) if origin.config_dir else None)


def select_choices(
    overrides: Sequence[str] | None, missing: Collection[str] = ()
) -> tuple[str, ...] | None:
    """Select the overrides that may come from others, without those of the provider; None where
    they cannot be composed by themselves: one reads another value, chooses what may not come from
    others, or sets a key that is `missing`."""
    if overrides is None:
        return None
    try:
        parsed = [_TypedOverride(text, parse(text)) for text in overrides]
    except ConfigError:
        return None
    choices = [one for one in parsed if not one.is_apart]
    if not all(one.is_plain and one.keys.isdisjoint(missing) for one in choices):
        return None
    # Of several values of a key the last one counts.
    last = {key_of(one.text): one.text for one in choices}
    return tuple(last.values())


@dataclass(frozen=True, slots=True)
class _TypedOverride:
    """An override of a recorded run."""

    text: str
    parsed: Override

    @property
    def keys(self) -> set[str]:
        return {".".join(key) for key in list_keys(self.parsed)}

    @property
    def rules(self) -> set[str]:
        return {mark_at(key).rule for key in self.keys}

    @property
    def is_apart(self) -> bool:
        """Whether no setting that may come from others depends on it."""
        is_of_provider = key_of(self.text).partition(".")[0] == _PROVIDER
        is_value = all("." in key and key not in _FILES for key in self.keys)
        is_held = is_value and self.rules <= {"held", "unneeded"}
        return is_of_provider or is_held or self.rules == {"unneeded"}

    @property
    def is_plain(self) -> bool:
        """Whether it sets only what may come from others, and reads nothing."""
        # An option's name may lead out of the folders of configuration.
        reads_another = "${" in self.text or ".." in self.text
        is_elsewhere = self.parsed.package is not None
        is_mixed = self.rules != {"taken"}
        return not (reads_another or is_elsewhere or is_mixed or self.parsed.is_sweep_override())
