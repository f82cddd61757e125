"""Selects the checks of a run and prepares them before its first call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from inspect import unwrap
from pathlib import Path

import pydantic

from aeon.checks.interface import CheckContext, CheckResult
from aeon.domain.checks import (
    CheckSettings,
    CommandCheck,
    ComparingCheck,
    NamedCheck,
    OuterCheck,
    PythonCheck,
    RubricCheck,
    ToolCheck,
    is_negated,
)
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, Value
from aeon.files.explain import explain
from aeon.files.pinned import read_named
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry

KEY = "convergence.checks"


@dataclass(frozen=True, slots=True)
class CheckAccess:
    """What a check may use of a run: its tools, and whether the run is asked to stop."""

    invoker: ToolInvoker
    stop: Callable[[], bool] = lambda: False


Work = Callable[[str, CheckContext, CheckAccess], CheckResult]
"""Checks whether a condition holds for an answer. Raises CheckBroken."""


@dataclass(frozen=True, slots=True)
class Check:
    """A prepared check. `step_id`: it examines the output of that step instead of the answer.
    `code` is a digest of what it calls, empty in a replay and for a check that calls nothing."""

    name: str
    settings: CheckSettings
    work: Work
    step_id: str | None = None
    code: str = ""


@dataclass(frozen=True, slots=True)
class CheckSet:
    """The checks of a run: those of its answer and steps, and the rubrics for the judge."""

    checks: tuple[Check, ...] = ()
    rubrics: Mapping[str, RubricCheck] = field(default_factory=dict)

    def for_row(self, of_row: CheckSet) -> CheckSet:
        """Return the checks of a run for a row with its own checks, which replace those of the
        answer."""
        of_steps = (check for check in self.checks if check.step_id is not None)
        return CheckSet((*of_row.checks, *of_steps), of_row.rubrics)


@dataclass(frozen=True, slots=True)
class CheckMaker:
    """Prepares checks, the configured ones only once. `registry` has the tools that they may call;
    with `is_replay`, nothing is imported or searched for, because all outcomes are recorded. Files
    are also searched for in the folder that a resumed run was `recorded_in`. Raises ConfigError for
    a check that could not run: an unknown module or tool, an invalid expression, a missing program
    or file."""

    configured: Mapping[str, CheckSettings] = field(default_factory=dict)
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    has_judge: bool = True
    is_replay: bool = False
    recorded_in: Path | None = None

    def prepare(self, by_step: Mapping[str, Mapping[str, OuterCheck]]) -> CheckSet:
        """Return the checks of a run: the configured ones for its answer, except those that a step
        of its plan file names, which examine that step's output."""
        of_steps = [
            self._make(
                f"{step_id}.{name}", one, f"plan file: step {step_id}: checks.{name}", step_id
            )
            for step_id, named in by_step.items()
            for name, one in self._select(named, f"plan file: step {step_id}").items()
        ]
        taken = {name for named in by_step.values() for name in named}
        rest = {name: one for name, one in self.configured.items() if name not in taken}
        chosen = self._make_all(rest, KEY)
        return CheckSet((*chosen.checks, *of_steps), chosen.rubrics)

    def prepare_row(self, named: Mapping[str, OuterCheck]) -> CheckSet:
        """Return the checks of a dataset row: its own, and the configured ones that it names."""
        return self._make_all(self._select(named, "the row"), "checks")

    def _select(self, named: Mapping[str, OuterCheck], place: str) -> dict[str, CheckSettings]:
        selected: dict[str, CheckSettings] = {}
        for name, one in named.items():
            if not isinstance(one, NamedCheck):
                selected[name] = one
            elif name in self.configured:
                selected[name] = self.configured[name]
            else:
                known = ", ".join(self.configured) or "none"
                raise ConfigError(
                    f"{place}: checks.{name}: no check of this name is configured",
                    hint=f"{KEY} has {known}. Give it a type here, or configure it there.",
                )
        return selected

    def _make_all(self, settings: Mapping[str, CheckSettings], key: str) -> CheckSet:
        rubrics = {name: one for name, one in settings.items() if isinstance(one, RubricCheck)}
        for name, one in () if self.has_judge else rubrics.items():
            raise ConfigError(
                f"{key}.{name}: type {one.type} asks the judge, and this mode has none",
                hint="Use another type of check, mode=adaptive, or mode=single answer.judge=true.",
            )
        checks = [
            self._make(name, one, f"{key}.{name}")
            for name, one in settings.items()
            if name not in rubrics
        ]
        return CheckSet(tuple(checks), rubrics)

    def _make(
        self, name: str, settings: CheckSettings, key: str, step_id: str | None = None
    ) -> Check:
        if isinstance(settings, RubricCheck):
            raise ConfigError(
                f"{key}: type {settings.type}: the judge is asked about the answer alone",
                hint=f"Put it under {KEY}, or under `convergence.criteria`.",
            )
        if self.is_replay:
            return Check(name, settings, _refuse, step_id)
        if not isinstance(settings, ComparingCheck) and not settings.value:
            raise ConfigError(f"{key}: type {settings.type}: needs a value")
        if isinstance(settings, CommandCheck):
            files = tuple(map(self._locate, settings.files))
            settings = settings.model_copy(update={"files": files})
        work = self._make_work(key, settings)
        return Check(name, settings, work, step_id, _digest_code(settings, self.registry))

    def _locate(self, path: Path) -> Path:
        path = path.expanduser()
        if self.recorded_in is None or path.exists():
            return path
        return self.recorded_in / path

    def _make_work(
        self, key: str, settings: ComparingCheck | PythonCheck | CommandCheck | ToolCheck
    ) -> Work:
        if isinstance(settings, ComparingCheck):
            return _make_comparison(key, settings)
        if isinstance(settings, CommandCheck):
            return _make_command(key, settings)
        return _make_call(key, settings, self.registry)


def _digest_code(settings: CheckSettings, registry: ToolRegistry) -> str:
    """Return a digest of what a check calls: its name and the files that implement it; empty for a
    check that calls nothing."""
    if isinstance(settings, ComparingCheck | RubricCheck):
        return ""
    parts = [repr(settings.value).encode()]
    if isinstance(settings, CommandCheck):
        parts += [read_named(path.expanduser()) for path in settings.files]
    if isinstance(settings, PythonCheck):
        parts += _read_module(settings.value.partition(":")[0])
    if isinstance(settings, ToolCheck) and (tool := registry.get(settings.value)):
        parts += _read_module(getattr(unwrap(tool.invoke), "__module__", ""))
    return sha256(b"\0".join(parts)).hexdigest()


def _read_module(name: str) -> list[bytes]:
    """Read the file of an imported module. A tool of Aeon's own, or behind a server of MCP, has its
    code in no module of the user."""
    source = getattr(sys.modules.get(name), "__file__", None)
    is_own = source is not None and name.partition(".")[0] != "aeon"
    return [read_named(Path(source))] if source is not None and is_own else []


class _OuterChecks(Value):
    checks: dict[str, OuterCheck]


def read_outer_checks(given: JsonMapping) -> dict[str, OuterCheck]:
    """Read the checks of a dataset row. Raises ValueError with the first mistake."""
    if not given:
        return {}
    document = {"checks": given}
    try:
        return _OuterChecks.model_validate(document).checks
    except pydantic.ValidationError as error:
        mistake = next(explain(error, document, _OuterChecks))
        raise ValueError(mistake.sentence()) from None


# Few runs have checks of each kind, and their imports take time.


def _make_comparison(key: str, settings: ComparingCheck) -> Work:
    from aeon.checks.comparing import compare, make_condition

    try:
        condition = make_condition(settings)
    except ValueError as error:
        raise ConfigError(f"{key}: type {settings.type}: {error}") from None
    return lambda answer, _context, _access: compare(
        condition, answer, negated=is_negated(settings)
    )


def _make_command(key: str, settings: CommandCheck) -> Work:
    from aeon.checks.command import require_command, run_command

    require_command(key, settings)
    return lambda answer, context, access: run_command(settings, answer, context, access.stop)


def _make_call(key: str, settings: PythonCheck | ToolCheck, registry: ToolRegistry) -> Work:
    from aeon.checks.calling import call_function, call_tool, load_function, require_tool

    if isinstance(settings, ToolCheck):
        require_tool(key, settings, registry)
        return lambda answer, _context, access: call_tool(access.invoker, settings, answer)
    function = load_function(key, settings)
    return lambda answer, context, access: call_function(
        function, settings, answer, context, access.stop
    )


def _refuse(_answer: str, _context: CheckContext, _access: CheckAccess) -> CheckResult:
    raise AssertionError("a replay runs no check")
