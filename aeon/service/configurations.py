"""The named configurations of jobs, each an Aeon, with one set of connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.batch.endpoints import SharedEndpoints
from aeon.config.compose.literal import Composition, key_of, quote, quote_override
from aeon.config.environment import environment
from aeon.config.load import compose_settings
from aeon.config.origin import read
from aeon.domain.errors import ConfigError
from aeon.llm.stack.limits import Spent

_NOT_OF_JOBS = {
    "resume": "a job goes on by itself, from its folder",
    "task": "each job brings its own",
    "task_file": "each job brings its own",
    "trust": "the folder of jobs is yours alone",
}
_NOT_OF_MODELS = ("arms", "batch", "hydra", "mcp", "output", "serve", "sweep")
"""What no run of a named configuration reads."""


class Configurations:
    """Named configurations: a common composition, to which each adds its overrides. All are opened
    at once, so that a mistake in one is found before serving begins. Raises ConfigError."""

    def __init__(self, common: Composition, named: Mapping[str, Sequence[str]]) -> None:
        self._common = common
        self._endpoints = SharedEndpoints()
        self._composing = threading.Lock()
        self._overrides: dict[str, tuple[str, ...]] = {}
        self._opened: dict[str, Aeon] = {}
        self._open_all = ExitStack()
        self._open_all.callback(self._endpoints.close)
        _refuse(common.overrides, "")
        try:
            for name, texts in named.items():
                self._overrides[name] = tuple(map(quote_override, texts))
                _refuse(self._overrides[name], f"{name}: ")
                _refuse_keys_of_commands(name, self._overrides[name])
                with _of_configuration(name):
                    aeon = self._open_all.enter_context(self._open(name))
                    aeon.check_interaction()
                self._opened[name] = aeon
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the given order."""
        return tuple(self._opened)

    @property
    def spent(self) -> Spent:
        """Usage that all jobs so far requested of their providers, without stored answers."""
        return self._endpoints.meter.spent

    def find(self, name: str) -> Aeon:
        """Return the Aeon of a name. Raises ConfigError for an unknown name."""
        if name not in self._opened:
            known = ", ".join(self._opened)
            raise ConfigError(f"there is no configuration {name!r}", hint=f"There are: {known}.")
        return self._opened[name]

    @contextmanager
    def open_for(self, name: str, before: Path | None) -> Iterator[Aeon]:
        """Yield the Aeon for a job's next run: if the run `before` can be resumed, it resumes that
        one. Raises ConfigError."""
        aeon = self.find(name)
        stored = aeon.settings.store.mode in ("record", "cache")
        if before is None or not stored or read(before).store_mode in ("off", "replay"):
            yield aeon
            return
        with self._open(name, f"resume={quote(str(before))}", "trust=true") as resumed:
            yield resumed

    def _open(self, name: str, *more: str) -> Aeon:
        overrides = (*self._common.overrides, *self._overrides[name], *more)
        composition = self._common.with_overrides(overrides)
        with self._composing:  # Hydra composes one configuration at a time
            settings = compose_settings(composition)
            return Aeon(
                settings,
                environment(settings),
                composition=composition,
                open_endpoints=self._endpoints.open,
            )

    def close(self) -> None:
        """Close all resources."""
        self._open_all.close()


@contextmanager
def _of_configuration(name: str) -> Iterator[None]:
    """Name the configuration in errors raised by the block."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{name}: {error.message}", hint=error.hint) from None


def _refuse(overrides: Sequence[str], named: str) -> None:
    """Raise ConfigError for settings that a configuration of jobs may not have."""
    for text in overrides:
        if why := _NOT_OF_JOBS.get(key_of(text)):
            raise ConfigError(f"{named}{key_of(text)}: {why}", hint="Leave it out.")
        if text == "interaction=ask":
            raise ConfigError(
                f"{named}{text}: there is no terminal to ask at",
                hint="interaction=defer leaves questions to be answered later.",
            )


def _refuse_keys_of_commands(name: str, overrides: Sequence[str]) -> None:
    """Raise ConfigError for a key that is for the command, not for the runs of a model."""
    for key in map(key_of, overrides):
        if key.partition(".")[0] in _NOT_OF_MODELS:
            problem = f"{name}: {key}: no run reads it: it is for the command"
            raise ConfigError(problem, hint="Leave it out, or give it beside serve.models.")
