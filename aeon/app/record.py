"""What a run leaves behind: its origin before the first call (`run.json`), and the result made of its outcome."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from aeon.app.parent import Parent
from aeon.app.process import Process
from aeon.config.compose.literal import key_of
from aeon.config.origin import Composition, FileOrigin, Origin, ParentOrigin, ProviderOrigin, digest_of
from aeon.config.recompose import select_recordable
from aeon.config.settings import Settings, configuration_hash, named_file
from aeon.domain.history import Outcome, RunState
from aeon.domain.outcome import latest_assessed
from aeon.domain.plan import Plan
from aeon.domain.request import Usage
from aeon.domain.result import Hashes, ParentRun, ProviderReport, RunResult, Saved, Timings, TTLReport, versions
from aeon.llm.prices import price_book
from aeon.llm.settings import CustomProvider, EndpointSettings, ProviderSettings
from aeon.llm.stack import build as stack
from aeon.observability.ledger import Ledger
from aeon.store.opening import shared_store, store_in
from aeon.store.session import Session

_DECIDE_WHAT_IS_ASKED = (
    "plan_file",
    "convergence.criteria_file",
    "memory.entries_file",
    "answer.schema",
    "provider.scenario",
)
_NOT_IN_RESULT = {"task", "task_file", "inputs", "input_files", "resume"}


@dataclass(frozen=True, slots=True)
class Work:
    """What a run is to do. `plan` is a person's; `task_in_plan` says that the task stood in it."""

    task: str
    inputs: Mapping[str, str]
    context: dict[str, Any] | None = None
    plan: Plan | None = None
    task_in_plan: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """A run and all it was made of: its id, the process it shares, its work, the composition of its settings, and the
    run that it resumes."""

    run_id: str
    shared: Process
    work: Work
    composition: Composition | None = None
    parent: Parent | None = None


def make_origin(run: Identity, started: str, directory: Path) -> Origin:
    """The content of `run.json` in `directory`, for a run that is about to begin."""
    settings, composition, parent = run.shared.settings, run.composition, run.parent
    return Origin(
        run_id=run.run_id,
        directory=str(directory.absolute()),
        parent=ParentOrigin(path=str(parent.path), run_id=parent.origin.run_id) if parent else None,
        ancestors=(*parent.ancestors, *parent.gone) if parent else (),
        overrides=_overrides(composition, settings) if composition else None,
        config_dir=str(composition.config_dir) if composition and composition.config_dir else None,
        config_name=(composition or Composition()).config_name,
        task=run.work.task,
        task_in_plan=run.work.task_in_plan,
        inputs=dict(run.work.inputs),
        context=run.work.context,
        provider=_provider_origin(settings.provider),
        synthetic=run.shared.synthetic,
        store_mode=settings.store.mode,
        working_directory=str(Path.cwd()),
        paths=_relative_paths(settings),
        files=_named_files(settings),
        hashes={
            "prompts": run.shared.prompts_digest,
            "schemas": run.shared.schemas_digest,
            "configuration": configuration_hash(settings),
        },
        versions=versions(),
        started=started,
    )


def _provider_origin(provider: ProviderSettings) -> ProviderOrigin:
    return ProviderOrigin(
        kind=provider.kind,
        model=provider.model,
        base_url=_address(provider),
        api_key_env=provider.api_key_env if isinstance(provider, EndpointSettings) else None,
        adapter=provider.adapter if isinstance(provider, CustomProvider) else None,
    )


def _address(provider: ProviderSettings) -> str | None:
    return provider.base_url if isinstance(provider, EndpointSettings) else None


def _named_files(settings: Settings) -> dict[str, FileOrigin]:
    """The files that decide what is asked, as they are now."""
    named = ((key, named_file(settings, key)) for key in _DECIDE_WHAT_IS_ASKED)
    files = ((key, path, digest_of(path)) for key, path in named if path is not None)
    return {key: FileOrigin(path=str(path), sha256=digest) for key, path, digest in files if digest}


def _overrides(composition: Composition, settings: Settings) -> tuple[str, ...]:
    """The overrides to record; a task or inputs that a configuration file gives are recorded apart, as texts."""
    given = {key_of(text).partition(".")[0] for text in composition.overrides}
    texts = [f"{name}=null" for name in ("task", "task_file") if getattr(settings, name) and name not in given]
    materials = [f"~{name}" for name in ("inputs", "input_files") if getattr(settings, name) and name not in given]
    return (*select_recordable(composition.overrides), *texts, *materials)


def _relative_paths(settings: Settings) -> dict[str, str]:
    """The relative paths among the settings, absolute, by key; the files of task and inputs are recorded as texts."""
    paths = dict(_paths(settings.model_dump(by_alias=True)))
    return {
        key: str(path.absolute()) for key, path in paths.items() if select_recordable([key]) and not path.is_absolute()
    }


def _paths(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Every path among the settings, by its dotted key."""
    for name, item in value.items():
        if isinstance(item, Path):
            yield f"{prefix}{name}", item
        elif isinstance(item, dict):
            yield from _paths(item, f"{prefix}{name}.")


def make_result(
    run: Identity, outcome: Outcome, ledger: Ledger, session: Session, timings: Timings, of_multirun: Path | None
) -> RunResult:
    """The result of a run that has ended; `of_multirun` is the folder of its multirun."""
    settings, state, shared = run.shared.settings, outcome.state, run.shared
    assessment, assessed = state.assessment, latest_assessed(state.passes)
    scored = assessed.evaluation_results.convergence if assessed else None
    return RunResult(
        run_id=run.run_id,
        parent=_parent_run(run, session, of_multirun),
        synthetic=shared.synthetic,
        task=run.work.task,
        answer=outcome.answer,
        converged=outcome.converged,
        termination_reason=outcome.termination_reason,
        error=outcome.error,
        scores=scored.scores if scored else None,
        assessed_pass=assessed.pass_number if assessed else None,
        reason_codes=assessment.reason_codes if assessment else (),
        explanation=assessment.explanation if assessment else "",
        best_pass=outcome.best_pass,
        passes=outcome.history.overall_statistics.total_passes,
        ttl=_ttl(state),
        ttl_expiration=outcome.ttl_expiration,
        usage=ledger.usage(),
        repairs=ledger.repairs(),
        advisories=state.advisories,
        follow_up_questions=state.plan.questions if state.plan else (),
        refused_actions=state.refused,
        timings=timings,
        versions=versions(),
        provider=_provider_report(shared, ledger),
        hashes=_hashes(run),
        configuration=settings.model_dump(mode="json", exclude=_NOT_IN_RESULT),
        history=outcome.history,
    )


def _ttl(state: RunState) -> TTLReport:
    remaining = max(0, state.ttl_allocated - state.ttl_used)
    return TTLReport(allocated=state.ttl_allocated, used=state.ttl_used, remaining=remaining)


def make_timings(ledger: Ledger, started: datetime, seconds: float) -> Timings:
    """When a run began and ended, and how long its calls and phases took, in seconds of wall time."""
    return Timings(
        start_time=started.isoformat(),
        end_time=(started + timedelta(seconds=seconds)).isoformat(),
        total_seconds=seconds,
        seconds_by_call=ledger.seconds_by_call(),
        seconds_by_phase=dict(ledger.seconds_by_phase),
    )


def _provider_report(shared: Process, ledger: Ledger) -> ProviderReport:
    provider = shared.settings.provider
    return ProviderReport(
        kind=provider.kind,
        base_url=_address(provider),
        models=ledger.models(),
        endpoints=dict(sorted(ledger.endpoints.items())),
        findings=stack.findings(shared.adapter),
    )


def _parent_run(run: Identity, session: Session, of_multirun: Path | None) -> ParentRun | None:
    """What a run was answered from and what that saved; None for a run that had no such answers."""
    store, parent = run.shared.settings.store, run.parent
    if parent is not None:
        path, run_id = parent.path, parent.origin.run_id
    elif store.mode in ("cache", "replay"):
        path, run_id = (store.path.expanduser() if store.path else shared_store(store)).absolute(), None
    elif of_multirun is not None and store.mode == "record" and store.share_in_multirun:
        path, run_id = store_in(of_multirun, store.backend), None
    else:
        return None
    saved = session.saved
    usage = sum(saved.usage.values(), Usage())
    prices = price_book(run.shared.settings.provider)
    costs = [prices.cost(of_model, answered=model) for model, of_model in sorted(saved.usage.items())]
    return ParentRun(
        path=str(path),
        run_id=run_id,
        saved=Saved(
            model_calls=saved.model_calls,
            tool_calls=saved.tool_calls,
            person_answers=saved.person_answers,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            cost=None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
        ),
        differing=session.differing,
    )


def _hashes(run: Identity) -> Hashes:
    return Hashes(
        task=sha256(run.work.task),
        inputs={name: sha256(text) for name, text in sorted(run.work.inputs.items())},
        prompts=run.shared.prompts_digest,
        schemas=run.shared.schemas_digest,
        configuration=configuration_hash(run.shared.settings),
    )


def sha256(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, hex."""
    return hashlib.sha256(text.encode()).hexdigest()
