"""Settings of the store of paid answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, NonNegativeInt, ValidationError, field_validator

from aeon.domain.values import JsonMapping, OwnObject, StartsCode, Taken, Value

CASSETTE_SUFFIX = ".aeon"
"""The file suffix of a recording."""

SQLITE = OwnObject(factory="sqlite")
Url = Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*://")]
StoreMode = Literal["off", "record", "cache", "replay"]


class StoreSettings(Value):
    """`store`: whether paid answers are stored and reused.

    `off` stores nothing. `record` stores every answer in the run's directory. `cache` answers from
    the store wherever in a run a request comes from, and calls on a miss. `replay` never calls: a
    miss is an error.

    `path` is a store, a run's directory or, for `replay`, a cassette; None is the run's own store
    (`record`) or the shared one in the working directory (`cache`). A URL is for your own
    `backend`, the kind of the store: an `aeon.store.interface.OpenStore`, as
    `package.module:object` or by the name that a package registers.

    `match` says how a replay finds an answer: by the whole request, or by call and order. `sample`
    separates several answers to equal requests. `retry_unusable` says which unusable answers a
    resumed run requests again: those of a run that did not end well (`needed`), or all (`all`).
    `on_error` says what happens if an answer cannot be stored.
    """

    mode: StoreMode = "record"
    path: Url | Path | None = None
    backend: StartsCode[OwnObject] = SQLITE
    match: Literal["request", "order"] = "request"
    share_in_multirun: bool = True
    retry_unusable: Literal["needed", "all"] = "needed"
    on_error: Literal["stop", "go_on"] = "stop"
    sample: Taken[NonNegativeInt] = 0
    pace_seconds: float = Field(default=0.0, ge=0, le=60)

    @field_validator("path")
    @classmethod
    def _refuse_password(cls, path: Url | Path | None) -> Url | Path | None:
        if isinstance(path, str) and urlsplit(path).password is not None:
            raise ValueError(
                "holds a password, which would appear in the files of every run: "
                "leave it out, and let your store read it from the environment"
            )
        return path

    @property
    def own_backend(self) -> OwnObject:
        """The kind of the store in a run's own directory: a URL applies only to shared answers."""
        return SQLITE if isinstance(self.path, str) else self.backend


def read_store_settings(configuration: JsonMapping) -> StoreSettings:
    """Return the store's settings in a run's recorded configuration; the defaults if they are
    invalid."""
    try:
        return StoreSettings.model_validate(configuration.get("store") or {})
    except ValidationError:
        return StoreSettings()
