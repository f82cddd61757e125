"""Settings of the store of paid answers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from aeon.domain.values import StartsCode, Taken, Value

CASSETTE_SUFFIX = ".aeon"
"""How the name of a recording in one file ends."""

SQLITE = "sqlite"
StoreMode = Literal["off", "record", "cache", "replay"]


class StoreSettings(Value):
    """`store`: whether paid answers are stored and used again.

    `off` stores nothing. `record` stores every answer in the run's directory. `cache` answers from the store whatever
    place of a run a request comes from, and calls on a miss. `replay` never calls: a miss is an error.

    `path` is a store, or a cassette for `replay`, or a run's directory; None is the run's own (`record`) or the shared
    one in the working directory (`cache`). `backend` is the kind of the store, `package.module:object` one of your own
    (an `aeon.store.interface.OpenStore`). `match` says how a replay finds an answer: by the whole request, or by call
    and order. `sample` tells apart several answers to equal requests. `retry_unusable` says what a resumed run asks
    again of the answers that came to nothing: where the run before it did not end well (`needed`), or wherever it went
    on without them (`all`). `on_error` says what follows when an answer cannot be stored.
    """

    mode: StoreMode = "record"
    path: Path | None = None
    backend: StartsCode[str] = SQLITE
    match: Literal["request", "order"] = "request"
    share_in_multirun: bool = True
    retry_unusable: Literal["needed", "all"] = "needed"
    on_error: Literal["stop", "go_on"] = "stop"
    sample: Taken[int] = Field(default=0, ge=0)
    pace_seconds: float = Field(default=0.0, ge=0, le=60)
