"""How a person attends runs: progress display, questions, and the switch that stops them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from aeon.domain.events import Subscriber
from aeon.interaction.deferral import Deferral, EarlierAnswers
from aeon.kernel.control import RunControl
from aeon.kernel.orchestrator import Orchestrator
from aeon.llm.watching import Watcher
from aeon.refinement.models import Ask
from aeon.store.session import DoStep
from aeon.tools.registry import Approve

_log = logging.getLogger("aeon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attendance:
    """A person's part in one run, or in all jobs of a sweep or rows of a batch. `control` stops
    them, `observers` get every event, `watcher` sees the text of calls under way, `on_start` gets
    the kernel. Without `ask` follow-up questions stay open; without `approve` tools that need
    approval are refused; without `do_step` steps for a person fail."""

    control: RunControl = field(default_factory=RunControl)
    observers: Sequence[Subscriber] = ()
    watcher: Watcher | None = None
    ask: Ask | None = None
    approve: Approve | None = None
    do_step: DoStep | None = None
    warn: Callable[[str], None] = _log.warning
    on_start: Callable[[Orchestrator], None] | None = None

    def defer_to(self, deferral: Deferral) -> Attendance:
        """Return a copy that defers to `deferral` whatever nobody can be asked during the run."""
        return replace(
            self,
            ask=self.ask or deferral.ask,
            approve=self.approve or deferral.approve,
            do_step=self.do_step or deferral.do_step,
        )

    def take_answers(self, given: EarlierAnswers) -> Attendance:
        """Return a copy that reuses the answers `given` to an earlier run before asking anybody."""
        return replace(
            self,
            ask=self.ask and given.before_asking(self.ask),
            approve=self.approve and given.before_approving(self.approve),
            do_step=self.do_step and given.before_doing(self.do_step),
        )
