"""Settings of the store of paid answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator

from aeon.domain.values import JsonMapping, OwnObject, StartsCode, Taken, Value

CASSETTE_SUFFIX = ".aeon"
"""How the name of a recording in one file ends."""

SQLITE = OwnObject(factory="sqlite")
Url = Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*://")]
StoreMode = Literal["off", "record", "cache", "replay"]


class StoreSettings(Value):
    """`store`: whether paid answers are stored and used again.

    `off` stores nothing. `record` stores every answer in the run's directory. `cache` answers from
    the store whatever place of a run a request comes from, and calls on a miss. `replay` never
    calls: a miss is an error.

    `path` is a store, or a cassette for `replay`, or a run's directory; None is the run's own
    (`record`) or the shared one in the working directory (`cache`). A URL is for a `backend` of
    one's own, the kind of the store: an `aeon.store.interface.OpenStore`, as
    `package.module:object` or by the name that a package registers.

    `match` says how a replay finds an answer: by the whole request, or by call and order. `sample`
    tells apart several answers to equal requests. `retry_unusable` says what a resumed run asks
    again of the answers that came to nothing: where the run before it did not end well (`needed`),
    or wherever it went on without them (`all`). `on_error` says what follows when an answer cannot
    be stored.
    """

    mode: StoreMode = "record"
    path: Url | Path | None = None
    backend: StartsCode[OwnObject] = SQLITE
    match: Literal["request", "order"] = "request"
    share_in_multirun: bool = True
    retry_unusable: Literal["needed", "all"] = "needed"
    on_error: Literal["stop", "go_on"] = "stop"
    sample: Taken[int] = Field(default=0, ge=0)
    pace_seconds: float = Field(default=0.0, ge=0, le=60)

    @field_validator("path")
    @classmethod
    def _refuse_password(cls, path: Url | Path | None) -> Url | Path | None:
        if isinstance(path, str) and urlsplit(path).password is not None:
            raise ValueError(
                "holds a password, which would stand in the files of every run: "
                "leave it out, and let your store read it from the environment"
            )
        return path

    @property
    def own_backend(self) -> OwnObject:
        """The kind of the store in a run's own directory: a URL says only where shared answers
        are."""
        return SQLITE if isinstance(self.path, str) else self.backend


def read_store_settings(configuration: JsonMapping) -> StoreSettings:
    """The store's settings in the recorded configuration of a run; the defaults for what is
    none."""
    try:
        return StoreSettings.model_validate(configuration.get("store") or {})
    except ValidationError:
        return StoreSettings()
