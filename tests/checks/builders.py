"""Checks made ready, as a run has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from aeon.checks.interface import CheckContext
from aeon.checks.runner import RunChecks
from aeon.checks.selection import CheckAccess, CheckMaker
from aeon.domain.checks import CheckOutcome, CheckSettings
from aeon.domain.request import CallSite
from aeon.store.session import Session
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool, ToolRegistry
from tests.plan.builders import done, plan_of

SETTINGS: TypeAdapter[dict[str, CheckSettings]] = TypeAdapter(dict[str, CheckSettings])
CONTEXT = CheckContext(task="make tea")


def run_checks(
    settings: Mapping[str, Any],
    *,
    tools: tuple[Tool, ...] = (),
    session: Session | None = None,
    by_step: Mapping[str, Any] | None = None,
    row: Mapping[str, Any] | None = None,
    waits_for_answer: bool = False,
) -> RunChecks:
    """The checks of a run that is configured with these settings."""
    registry = ToolRegistry(list(tools))
    maker = CheckMaker(SETTINGS.validate_python(dict(settings)), registry)
    of = maker.prepare(by_step or {})
    access = CheckAccess(ToolInvoker(registry))
    return RunChecks(of, "make tea", {}, session or Session(), access, row, waits_for_answer)


def check(answer: str, **settings: Any) -> CheckOutcome:
    """What one check finds on an answer."""
    plan = plan_of(done("a"))
    (outcome,) = run_checks({"it": settings}).run(plan, answer, CallSite(pass_number=1))
    return outcome
