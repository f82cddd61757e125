"""What a run is given to go on with, and what the making of a plan gives, as values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aeon.domain.events import Subscriber
from aeon.domain.history import Advisory
from aeon.domain.plan import Plan
from aeon.kernel.control import RunControl
from aeon.kernel.orchestrator import Orchestrator
from aeon.refinement.models import Ask
from aeon.tools.approval import Approve

_log = logging.getLogger("aeon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run has around it while it goes on.

    Without a `directory` nothing is written; `of_multirun` is the folder of its multirun, whose jobs share a store.
    `observers` see every event, `control` stops the run, `ask` and `approve` are the person, `on_start` is
    given the kernel, `warn` is called with files that can no longer be written.
    """

    directory: Path | None = None
    of_multirun: Path | None = None
    observers: Sequence[Subscriber] = ()
    control: RunControl = field(default_factory=RunControl)
    ask: Ask | None = None
    approve: Approve | None = None
    on_start: Callable[[Orchestrator], None] | None = None
    warn: Callable[[str], None] = _log.warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan that was made, if there is one, about how many calls carrying it out takes, and what cut its making
    short; `synthetic` says that no model made it."""

    plan: Plan | None
    synthetic: bool
    calls: int = 0
    advisories: tuple[Advisory, ...] = ()
    cut_short: str = ""
    interrupted: bool = False
