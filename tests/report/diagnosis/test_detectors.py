"""Each detector: when it speaks, with what words, and when it is silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from aeon.checks.decision import block
from aeon.domain.assessment import AnswerComparison
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import Advisory, RunError
from aeon.domain.plan import PlanStep
from aeon.domain.refinement import RepairRecord
from aeon.domain.result import (
    Degradation,
    ParentRun,
    Saved,
    TokenUsage,
    TTLReport,
    UsageReport,
)
from aeon.domain.values import JsonObject
from aeon.report.diagnosis.finding import Evidence
from aeon.report.diagnosis.ranking import DETECTORS
from aeon.report.items import Item
from aeon.report.record import Call
from aeon.report.spending import RepairRate, RetryWait, Spending
from tests.interaction.desks import question, step
from tests.report.diagnosis.builders import (
    UNAVAILABLE,
    a_call,
    a_pass,
    a_result,
    a_run,
    a_step,
    an_issue,
    assessed,
    blocked,
)

OMISSION = {"kind": "omission", "description": "No prices.", "blocking": True}
CONTRADICTION = {
    "kind": "contradiction",
    "description": "`facts` and 'write' differ.",
    "blocking": True,
}
UNNAMED = {**CONTRADICTION, "description": "The sums differ, as a matter of facts."}
FAILED_CHECK = CheckOutcome(name="tests", type="command", passed=False, feedback="1 failed")
UNMEASURED = CheckOutcome(name="kind", type="llm-rubric", passed=False, measured=False)
PASSED_CHECK = CheckOutcome(name="tests", type="command", passed=True)
UNCITED = {"cited": False}
CITED = {"cited": True}
REACHED = assessed()
LOW = assessed(0.7)
DISAGREE = {"steps_answer": "inconsistent", "memory_answer": "inconsistent"}
NONE_LEFT = a_step("write", status="pending")
CUT_OFF = a_step("facts", status="pending", incomplete=True)
FAILED = a_step("facts", status="failed", errors=("Refused.",))
DOWN = RunError(type="ConnectionFailed", message="No answer.", hint="Is it up?")
BROKEN = RunError(type="PlanError", message="A loop.")
CHAIN = (
    a_step("facts", status="pending"),
    a_step("sort", status="pending", dependencies=("facts",)),
    a_step("write", status="pending", dependencies=("sort",)),
)
TOOL = a_step("facts", tool="search_web")


def advisory(kind: str, message: str = "", step_id: str | None = None) -> Advisory:
    return Advisory.model_validate(
        {"kind": kind, "message": message, "pass_number": 1, "step_id": step_id}
    )


def allowing_passes(most: int) -> JsonObject:
    """The configuration of a run with a cap on its passes."""
    given = a_result().configuration
    return {**given, "limits": {**given["limits"], "max_passes": most}}


def a_failure(kind: str, step_id: str | None = None, error: str = "ConnectionFailed") -> Item:
    """A request that failed."""
    item = a_call(kind, 1, step_id=step_id)
    assert isinstance(item.source, Call)
    return replace(item, failed=True, source=replace(item.source, error=error))


def without(kind: str) -> Degradation:
    """Something that a run did without."""
    values = {"kind": kind, "step": "facts", "message": "It is gone", "remedy": "Start it."}
    return Degradation.model_validate(values)


def used(tokens: int, seconds: float = 0.0, cost: float | None = None) -> Spending:
    return Spending(requests=1, input_tokens=tokens, seconds=seconds, cost=cost)


def usage(tokens: int, repairs: int = 0, cost: float | None = None) -> UsageReport:
    total = TokenUsage(requests=10, total_tokens=tokens, cost=cost)
    by_call = {"repair": TokenUsage(requests=repairs)} if repairs else {}
    return UsageReport(total=total, by_call=by_call)


def six_calls() -> tuple[Item, ...]:
    kinds = ("plan", "step", "step", "step", "semantic_validation", "convergence")
    return tuple(
        a_call(
            kind, 1, begins=number, number=number, step_id=f"s{number}" if kind == "step" else None
        )
        for number, kind in enumerate(kinds, 1)
    )


FALLBACK = {
    "event": "fallback_used",
    "failed": "main",
    "endpoint": "spare",
    "error": "503",
    "site": {"pass_number": 1, "phase": "EXECUTE", "step_id": None, "cycle": 1, "attempt": 0},
}
Case = tuple[str, Callable[[], Evidence], list[str]]
CASES: dict[str, list[Case]] = {
    "open question": [
        (
            "what a person has to say",
            lambda: a_run(reason="waiting", waits_for=(question(), step())),
            ["It waits for 2 answers of a person"],
        ),
        ("nothing is open", lambda: a_run(reason="interrupted"), []),
    ],
    "failure": [
        (
            "a provider",
            lambda: a_run(reason="failed", error=DOWN),
            ["The provider failed"],
        ),
        ("another error", lambda: a_run(reason="failed", error=BROKEN), ["It failed"]),
        (
            "the call that met it",
            lambda: a_run(reason="failed", error=DOWN, items=(a_failure("step", "facts"),)),
            ["The provider failed at the call `step facts` in pass 1"],
        ),
        (
            "an answer that could not be used",
            lambda: a_run(
                reason="failed",
                error=RunError(type="Filtered", message="Withheld."),
                items=(a_failure("convergence", error="Filtered"),),
            ),
            ["No usable answer to the call `judge` in pass 1"],
        ),
        ("a stop", lambda: a_run(reason="interrupted"), ["It was interrupted before it was done"]),
        ("no error", lambda: a_run(reason="stalled"), []),
    ],
    "blank input": [
        (
            "one",
            lambda: a_run(inputs={"brief": " \n", "team": "Two"}),
            ["The input `brief` is blank"],
        ),
        ("two", lambda: a_run(inputs={"a": "", "b": " "}), ["The inputs `a` and `b` are blank"]),
        ("text", lambda: a_run(inputs={"brief": "."}), []),
        ("none", lambda: a_run(), []),
    ],
    "blocked step": [
        (
            "at the end",
            lambda: a_run(a_pass(1, LOW, steps=(blocked("facts"),))),
            ["The step `facts` was BLOCKED in pass 1, and still is"],
        ),
        (
            "taken up again",
            lambda: a_run(a_pass(1, LOW, steps=(blocked("facts"),)), a_pass(2, REACHED)),
            ["The step `facts` was BLOCKED in pass 1, and was taken up again"],
        ),
        ("never", lambda: a_run(a_pass(1, LOW)), []),
    ],
    "failed step": [
        (
            "at the end",
            lambda: a_run(a_pass(1, LOW, steps=(FAILED,))),
            ["The step `facts` failed: Refused."],
        ),
        (
            "replaced",
            lambda: a_run(
                a_pass(1, LOW, steps=(a_step("facts", status="invalid", replaced_by="b"),))
            ),
            [],
        ),
    ],
    "missing tool": [
        (
            "one",
            lambda: a_run(a_pass(1, REACHED, steps=(TOOL,)), degraded=(without("tool_missing"),)),
            ["`search_web` is not among the tools: `facts` had to do without"],
        ),
        (
            "one that refinement took from its step",
            lambda: a_run(a_pass(1, REACHED), degraded=(without("tool_missing"),)),
            ["`facts` had to do without its tool"],
        ),
        ("another thing is missing", lambda: a_run(degraded=(without("server_down"),)), []),
        ("none", lambda: a_run(a_pass(1, REACHED, steps=(TOOL,))), []),
    ],
    "server down": [
        (
            "one",
            lambda: a_run(degraded=(without("server_down"),)),
            ["A server of tools did not start"],
        ),
        ("none", lambda: a_run(), []),
    ],
    "lost review": [
        (
            "one",
            lambda: a_run(degraded=(without("review_lost"),)),
            ["1 review or assessment could not be had"],
        ),
        (
            "two",
            lambda: a_run(degraded=(without("review_lost"),) * 2),
            ["2 reviews or assessments could not be had"],
        ),
        ("none", lambda: a_run(), []),
    ],
    "missing assessment": [
        (
            "at the end",
            lambda: a_run(a_pass(1, LOW), a_pass(2, UNAVAILABLE)),
            ["The judge gave no usable assessment in pass 2"],
        ),
        ("earlier", lambda: a_run(a_pass(1, UNAVAILABLE), a_pass(2, LOW)), []),
        (
            "also in the pass that ended the run",
            lambda: a_run(
                a_pass(1, UNAVAILABLE),
                advisories=(
                    Advisory(
                        kind="evaluation_unavailable", message="convergence: cut off", pass_number=2
                    ),
                ),
            ),
            ["The judge gave no usable assessment in passes 1 and 2"],
        ),
    ],
    "noise": [
        (
            "a score",
            lambda: a_run(a_pass(1, REACHED, answer="A"), a_pass(2), a_pass(3, LOW, answer="A")),
            [
                "The judge contradicts itself: completeness went from 0.97 to 0.70 from pass 1 to pass 3, for the same answer"
            ],
        ),
        (
            "a criterion",
            lambda: a_run(
                a_pass(1, assessed(criteria=CITED), answer="A"),
                a_pass(2, assessed(criteria=UNCITED), answer="A"),
            ),
            [
                "The judge contradicts itself: the criterion `cited` was met in pass 1 and not met in pass 2, for the same answer"
            ],
        ),
        (
            "less than 0.02",
            lambda: a_run(
                a_pass(1, assessed(0.7), answer="A"), a_pass(2, assessed(0.719), answer="A")
            ),
            [],
        ),
        ("another answer", lambda: a_run(a_pass(1, REACHED), a_pass(2, LOW)), []),
        (
            "no answer",
            lambda: a_run(a_pass(1, REACHED, answer=" "), a_pass(2, LOW, answer=" ")),
            [],
        ),
    ],
    "undone work": [
        (
            "the answer",
            lambda: a_run(a_pass(1, answer="A"), a_pass(2, answer="B"), a_pass(3, answer="A")),
            ["The answer went back: in pass 3 it is the text of pass 1 again"],
        ),
        (
            "an output",
            lambda: a_run(
                *(
                    a_pass(number, steps=(a_step("facts", step_output=text),))
                    for number, text in enumerate("ABA", 1)
                )
            ),
            ["The output of `facts` went back: in pass 3 it is the text of pass 1 again"],
        ),
        ("the same all along", lambda: a_run(a_pass(1, answer="A"), a_pass(2, answer="A")), []),
        ("always another", lambda: a_run(a_pass(1), a_pass(2), a_pass(3)), []),
        (
            "none between",
            lambda: a_run(a_pass(1, answer="A"), a_pass(2, answer=" "), a_pass(3, answer="A")),
            [],
        ),
    ],
    "contradiction": [
        (
            "steps in quotes",
            lambda: a_run(a_pass(1, assessed(issues=(CONTRADICTION,)))),
            ["Outputs contradict each other in pass 1: it concerns `facts` and `write`"],
        ),
        (
            "a word that is also an id",
            lambda: a_run(a_pass(1, assessed(issues=(UNNAMED,)))),
            ["The judge found a contradiction in pass 1"],
        ),
        (
            "where the review found it",
            lambda: a_run(
                a_pass(
                    1, assessed(issues=(UNNAMED,)), issues=(an_issue("write", type="consistency"),)
                )
            ),
            ["An output contradicts the others in pass 1: it concerns `write`"],
        ),
        (
            "pairs under a low score",
            lambda: a_run(a_pass(1, assessed(consistency=0.5, pairs=DISAGREE))),
            ["The judge found disagreement in pass 1: steps and answer"],
        ),
        (
            "pairs under a score that is reached",
            lambda: a_run(a_pass(1, assessed(0.5, pairs=DISAGREE))),
            [],
        ),
        ("another issue", lambda: a_run(a_pass(1, assessed(issues=(OMISSION,)))), []),
        (
            "settled later",
            lambda: a_run(a_pass(1, assessed(issues=(CONTRADICTION,))), a_pass(2, LOW)),
            [],
        ),
    ],
    "repeated issue": [
        (
            "one step",
            lambda: a_run(*(a_pass(n, LOW, issues=(an_issue(),)) for n in (1, 2, 3))),
            ["3 reviews found the same issue at `facts`: specificity, in passes 1 to 3"],
        ),
        (
            "one text",
            lambda: a_run(
                *(a_pass(n, LOW, issues=(an_issue(None),) if n != 3 else ()) for n in range(1, 5))
            ),
            ["3 reviews found the same issue: specificity, in passes 1, 2 and 4"],
        ),
        ("twice", lambda: a_run(*(a_pass(n, LOW, issues=(an_issue(),)) for n in (1, 2))), []),
        (
            "of low severity",
            lambda: a_run(*(a_pass(n, LOW, issues=(an_issue(severity="LOW"),)) for n in (1, 2, 3))),
            [],
        ),
        (
            "one text at steps that replace each other",
            lambda: a_run(*(a_pass(n, LOW, issues=(an_issue(f"s{n}"),)) for n in (1, 2, 3))),
            ["3 reviews found the same issue: specificity, in passes 1 to 3"],
        ),
        (
            "other texts at other steps",
            lambda: a_run(
                *(
                    a_pass(n, LOW, issues=(an_issue(f"s{n}", description=f"No {n}."),))
                    for n in (1, 2, 3)
                )
            ),
            [],
        ),
    ],
    "eaten budget": [
        (
            "planning",
            lambda: a_run(
                a_pass(0, ttl_used=7), a_pass(1, LOW), reason="ttl_expired", ttl=_ttl(10), items=()
            ),
            ["Planning (pass 0) took 70 % of the TTL, which then ended the run"],
        ),
        (
            "a step",
            lambda: a_run(
                a_pass(1, LOW),
                reason="max_tokens",
                usage=usage(100),
                patterns={"by_step": {"a": used(80), "b": used(5), "c": used(5)}},
            ),
            ["The step `a` took 80 % of the tokens, which then ended the run"],
        ),
        (
            "waiting, and the step that was waited in",
            lambda: a_run(
                a_pass(1, LOW),
                reason="max_seconds",
                items=tuple(
                    a_call("step", seconds, step_id=name)
                    for name, seconds in (("a", 8), ("b", 1), ("c", 1))
                ),
                patterns={"waits": {"ServerFailed": RetryWait(times=4, seconds=6)}},
            ),
            ["Waiting before retries took 60 % of the time, which then ended the run"],
        ),
        (
            "half and no more",
            lambda: a_run(
                a_pass(0, ttl_used=5), a_pass(1, LOW), reason="ttl_expired", ttl=_ttl(10)
            ),
            [],
        ),
        (
            "another end",
            lambda: a_run(a_pass(0, ttl_used=9), a_pass(1, LOW), reason="stalled", ttl=_ttl(10)),
            [],
        ),
    ],
    "failed check": [
        (
            "at the end",
            lambda: a_run(a_pass(1, block(assessed(), (FAILED_CHECK,)), checks=(FAILED_CHECK,))),
            ["The check `tests` failed in pass 1"],
        ),
        (
            "not measured",
            lambda: a_run(a_pass(1, block(UNAVAILABLE, (UNMEASURED,)), checks=(UNMEASURED,))),
            ["The check `kind` could not be measured in pass 1"],
        ),
        ("passed", lambda: a_run(a_pass(1, assessed(0.7), checks=(PASSED_CHECK,))), []),
    ],
    "unmet criterion": [
        (
            "at the end",
            lambda: a_run(a_pass(1, assessed(criteria=UNCITED))),
            ["The criterion `cited` was not met in pass 1"],
        ),
        ("met", lambda: a_run(a_pass(1, assessed(0.7, criteria=CITED))), []),
    ],
    "blocking issue": [
        (
            "an omission",
            lambda: a_run(a_pass(1, assessed(issues=(OMISSION,)))),
            ["The judge found a blocking issue (omission) in pass 1"],
        ),
        (
            "a contradiction, which has a detector of its own",
            lambda: a_run(a_pass(1, assessed(issues=(CONTRADICTION,)))),
            [],
        ),
        (
            "one that does not block",
            lambda: a_run(a_pass(1, assessed(0.7, issues=({**OMISSION, "blocking": False},)))),
            [],
        ),
    ],
    "refused change": [
        (
            "all of the last",
            lambda: a_run(a_pass(1, LOW, refused=("facts",))),
            ["1 change of the plan was refused: REMOVE `facts`"],
        ),
        (
            "twice",
            lambda: a_run(a_pass(1, LOW, refused=("facts",)), a_pass(2, LOW, refused=("facts",))),
            ["2 changes of the plan were refused: REMOVE `facts` (2 times)"],
        ),
        ("none", lambda: a_run(a_pass(1, LOW, accepted=("facts",))), []),
    ],
    "limit": [
        (
            "the TTL",
            lambda: a_run(a_pass(1, LOW), reason="ttl_expired"),
            ["The TTL ended the run before it was done"],
        ),
        (
            "less than the plan takes, and nothing was judged",
            lambda: a_run(a_pass(1), reason="ttl_expired", ttl=_ttl(4)),
            ["The TTL of 4 was too small for the plan, which was expected to take 8 cycles"],
        ),
        (
            "another",
            lambda: a_run(a_pass(1, LOW), reason="max_cost"),
            ["The limit `limits.max_cost` ended the run before it was done"],
        ),
        (
            "fewer passes than the plan takes, and a step is left",
            lambda: a_run(
                a_pass(0, steps=CHAIN),
                a_pass(1, LOW, steps=(a_step("facts"), *CHAIN[1:])),
                configuration=allowing_passes(2),
                steps_left={"write": "pending"},
            ),
            ["The plan takes 3 passes, and `limits.max_passes` allowed 2"],
        ),
        (
            "fewer passes than the plan took, and no step is left",
            lambda: a_run(a_pass(0, steps=CHAIN), a_pass(1, LOW), configuration=allowing_passes(2)),
            ["The limit `limits.max_passes` ended the run before it was done"],
        ),
        ("none", lambda: a_run(a_pass(1, LOW), reason="stalled"), []),
    ],
    "left to a person": [
        (
            "a step",
            lambda: a_run(
                a_pass(1, LOW), advisories=(advisory("manual_intervention", "Settle it."),)
            ),
            ["Something is left to a person"],
        ),
        ("nothing", lambda: a_run(a_pass(1, LOW)), []),
    ],
    "low score": [
        (
            "once",
            lambda: a_run(a_pass(1, LOW)),
            ["Completeness ended at 0.70; its threshold is 0.95"],
        ),
        (
            "it was better",
            lambda: a_run(a_pass(1, assessed(0.9)), a_pass(2, LOW)),
            ["Completeness ended at 0.70; its threshold is 0.95 (best: 0.90)"],
        ),
        (
            "it stays",
            lambda: a_run(a_pass(1, LOW), a_pass(2, assessed(0.71)), a_pass(3, LOW)),
            ["Completeness stays at 0.70 in passes 1 to 3; its threshold is 0.95"],
        ),
        (
            "never rounded up to its threshold",
            lambda: a_run(a_pass(1, assessed(0.949))),
            ["Completeness ended at 0.94; its threshold is 0.95"],
        ),
        ("reached", lambda: a_run(a_pass(1, REACHED), reason="converged"), []),
        (
            "not at the end",
            lambda: a_run(a_pass(1, LOW), a_pass(2, assessed(criteria=UNCITED))),
            [],
        ),
    ],
    "stall": [
        (
            "stalled",
            lambda: a_run(reason="stalled"),
            ["No step was ready and nothing changed: the run stalled"],
        ),
        ("another end", lambda: a_run(reason="ttl_expired"), []),
    ],
    "unreached step": [
        ("pending", lambda: a_run(a_pass(1, LOW, steps=(NONE_LEFT,))), ["Not reached: `write`"]),
        (
            "cut off",
            lambda: a_run(a_pass(1, LOW, steps=(CUT_OFF, NONE_LEFT))),
            ["Not finished: `facts`; not reached: `write`"],
        ),
        (
            "converged",
            lambda: a_run(a_pass(1, REACHED, steps=(NONE_LEFT,)), reason="converged"),
            [],
        ),
        ("all complete", lambda: a_run(a_pass(1, LOW)), []),
    ],
    "denied score": [
        (
            "every score is reached",
            lambda: a_run(a_pass(1, assessed(pairs=DISAGREE)), reason="converged"),
            [
                "The judge contradicts itself in pass 1: every score is reached, and yet these are said to disagree: steps and answer"
            ],
        ),
        ("a low score", lambda: a_run(a_pass(1, assessed(0.7, pairs=DISAGREE))), []),
        (
            "memory alone",
            lambda: a_run(a_pass(1, assessed(pairs={"memory_answer": "inconsistent"}))),
            [],
        ),
    ],
    "fallback endpoint": [
        (
            "used",
            lambda: a_run(a_pass(1, LOW), events=(FALLBACK,)),
            ["The endpoint `spare` answered 0 requests in place of `main`, which failed"],
        ),
        ("not used", lambda: a_run(a_pass(1, LOW)), []),
    ],
    "waits": [
        (
            "a share of the time",
            lambda: a_run(patterns={"waits": {"RateLimited": RetryWait(times=2, seconds=6)}}),
            ["2 retries after `RateLimited`: 6.0 s were spent waiting, 60 % of the time"],
        ),
        (
            "often",
            lambda: a_run(patterns={"waits": {"ServerFailed": RetryWait(times=3, seconds=0.5)}}),
            ["3 retries after `ServerFailed`: 500 ms were spent waiting, 5 % of the time"],
        ),
        (
            "short and rare",
            lambda: a_run(patterns={"waits": {"RateLimited": RetryWait(times=2, seconds=0.5)}}),
            [],
        ),
        ("none", lambda: a_run(), []),
    ],
    "broken schema": [
        (
            "always, and not repaired each time",
            lambda: a_run(patterns={"repairs_by_call": {"refinement": _rate(3, 2, lost=1)}}),
            ["All 3 answers to `refinement` broke their schema, 1 of them past repair"],
        ),
        (
            "repaired each time",
            lambda: a_run(patterns={"repairs_by_call": {"refinement": _rate(3, 3)}}),
            [],
        ),
        (
            "not always",
            lambda: a_run(patterns={"repairs_by_call": {"refinement": _rate(4, 2, lost=1)}}),
            [],
        ),
        (
            "a run that ended well",
            lambda: a_run(
                reason="converged",
                patterns={"repairs_by_call": {"refinement": _rate(3, 2, lost=1)}},
            ),
            [],
        ),
    ],
    "repairs": [
        (
            "always, which is a cause",
            lambda: a_run(patterns={"repairs_by_call": {"refinement": _rate(3, 2, lost=1)}}),
            [],
        ),
        (
            "often",
            lambda: a_run(
                usage=usage(100, repairs=3), patterns={"repairs_by_call": {"step": _rate(6, 3)}}
            ),
            ["3 of 6 answers to `step` broke their schema; 30 % of all requests were repairs"],
        ),
        ("once", lambda: a_run(patterns={"repairs_by_call": {"step": _rate(2, 1)}}), []),
        ("rarely", lambda: a_run(patterns={"repairs_by_call": {"step": _rate(40, 2)}}), []),
    ],
    "slow request": [
        (
            "much slower than the others",
            lambda: a_run(
                items=(a_call("plan", 1), a_call("plan", 1), a_call("step", 8, step_id="facts"))
            ),
            ["Everything waited 8.0 s of 10.0 s for step `facts` in pass 1"],
        ),
        ("as slow as the others", lambda: a_run(items=(a_call("plan", 5), a_call("step", 5))), []),
        (
            "short",
            lambda: a_run(items=(a_call("plan", 0.01), a_call("step", 0.4)), seconds=0.5),
            [],
        ),
        (
            "slower than replayed answers alone",
            lambda: a_run(
                parent=ParentRun(path="/runs/zero", saved=Saved(model_calls=3)),
                items=(*(a_call("plan", 0.001) for _ in range(3)), a_call("step", 5)),
            ),
            [],
        ),
        ("no journal", lambda: a_run(), []),
    ],
    "pass without gain": [
        (
            "the same scores",
            lambda: a_run(a_pass(1, LOW), a_pass(2, LOW)),
            [
                "Pass 2 gained nothing: no score rose by 0.02 or more, and no further criterion was met"
            ],
        ),
        (
            "each rose by less than 0.02",
            lambda: a_run(a_pass(1, assessed(0.7)), a_pass(2, assessed(0.719))),
            [
                "Pass 2 gained nothing: no score rose by 0.02 or more, and no further criterion was met"
            ],
        ),
        ("a score rose", lambda: a_run(a_pass(1, assessed(0.7)), a_pass(2, assessed(0.72))), []),
        (
            "a criterion came",
            lambda: a_run(
                a_pass(1, assessed(criteria=UNCITED)), a_pass(2, assessed(criteria=CITED))
            ),
            [],
        ),
    ],
    "fall": [
        (
            "a score",
            lambda: a_run(a_pass(1, assessed(0.9)), a_pass(2, LOW)),
            ["In pass 2 scores fell: completeness from 0.90 to 0.70"],
        ),
        (
            "two scores",
            lambda: a_run(a_pass(1, assessed(0.9)), a_pass(2, assessed(0.7, coherence=0.5))),
            ["In pass 2 scores fell: completeness from 0.90 to 0.70, coherence from 0.95 to 0.50"],
        ),
        (
            "of the same answer",
            lambda: a_run(a_pass(1, assessed(0.9), answer="A"), a_pass(2, LOW, answer="A")),
            [],
        ),
        ("by less than 0.02", lambda: a_run(a_pass(1, assessed(0.719)), a_pass(2, LOW)), []),
    ],
    "large share": [
        (
            "a kind of call",
            lambda: a_run(
                items=six_calls(),
                usage=usage(100),
                patterns={"by_call": {"step": used(10), "convergence": used(60)}},
                ttl=_ttl(60),
                seconds=60,
            ),
            ["The judge took 60 % of the tokens"],
        ),
        (
            "a step, of two things",
            lambda: a_run(
                items=six_calls(),
                usage=usage(100, cost=1.0),
                patterns={
                    "by_step": {
                        "a": used(60, cost=0.9),
                        "b": used(1, cost=0.0),
                        "c": used(1, cost=0.0),
                    },
                    "by_call": {},
                },
                ttl=_ttl(60),
                seconds=60,
            ),
            ["The step `a` took 60 % of the tokens and 90 % of the money"],
        ),
        (
            "the steps together are the work itself",
            lambda: a_run(
                items=six_calls(),
                usage=usage(100),
                patterns={"by_call": {"step": used(90)}},
                ttl=_ttl(60),
                seconds=60,
            ),
            [],
        ),
        (
            "of a few calls",
            lambda: a_run(usage=usage(100), patterns={"by_call": {"convergence": used(60)}}),
            [],
        ),
    ],
    "set back": [
        (
            "twice, and once for want of a comparison",
            lambda: a_run(
                a_pass(1, LOW),
                a_pass(2, compared=AnswerComparison(outcome="worse")),
                a_pass(3, compared=AnswerComparison(outcome="unknown")),
                a_pass(4, compared=AnswerComparison(outcome="worse")),
            ),
            [
                "In passes 2 and 4 the changed answer was found worse, and set back",
                "In pass 3 the changed answer could not be compared, and was set back",
            ],
        ),
        (
            "accepted",
            lambda: a_run(a_pass(1, LOW), a_pass(2, compared=AnswerComparison(outcome="as_good"))),
            [],
        ),
    ],
    "default profile": [
        (
            "used",
            lambda: a_run(
                advisories=(advisory("profile_fallback", "The default profile is used: x"),)
            ),
            ["The task has no profile of its own from the model"],
        ),
        ("not used", lambda: a_run(), []),
    ],
}


def _ttl(used: int) -> TTLReport:
    return TTLReport(allocated=used, used=used, remaining=0)


def _rate(answers: int, repaired: int, lost: int = 0) -> RepairRate:
    rate = (repaired + lost) / answers
    return RepairRate(answers=answers, repaired=repaired, unrecoverable=lost, rate=rate)


@pytest.mark.parametrize(
    ("detector", "case"),
    [
        pytest.param(name, case, id=f"{name}: {case[0]}")
        for name, cases in CASES.items()
        for case in cases
    ],
)
def test_it_speaks_when_it_has_to_and_else_is_silent(detector: str, case: Case) -> None:
    _, run, titles = case
    find = next(each.find for each in DETECTORS if each.name == detector)
    assert [finding.title for finding in find(run())] == titles


def test_every_detector_has_a_case_in_which_it_speaks_and_one_in_which_it_is_silent() -> None:
    assert CASES.keys() == {each.name for each in DETECTORS}
    for cases in CASES.values():
        assert any(titles for *_, titles in cases)
        assert any(not titles for *_, titles in cases)


def test_what_changed_in_the_plan_stands_beside_two_judgements_of_one_answer() -> None:
    find = next(each.find for each in DETECTORS if each.name == "noise")
    passes = (
        a_pass(1, REACHED, answer="A"),
        a_pass(
            2,
            LOW,
            answer="A",
            steps=(a_step("facts", handoff_to_next="All."), NONE_LEFT, a_step("more")),
        ),
    )
    (changed,) = find(a_run(*passes))
    assert changed.evidence.startswith("Changed between: the hand-off of `facts`, the step `more`.")
    (same,) = find(a_run(a_pass(1, REACHED, answer="A"), a_pass(2, LOW, answer="A")))
    assert same.evidence == "No step of the plan changed between.\nIn both passes: As it stands."


@pytest.mark.parametrize(
    ("issues", "explanation", "words"),
    [
        (("No price.",), "No price. Else it is whole.", "No price. Else it is whole."),
        (("No price.", "No price."), "It is thin.", "No price. It is thin."),
        ((), "It is thin.", "It is thin."),
        ((), " ", "no reason."),
    ],
)
def test_no_sentence_of_a_judge_is_quoted_twice(
    issues: tuple[str, ...], explanation: str, words: str
) -> None:
    find = next(each.find for each in DETECTORS if each.name == "noise")
    said = LOW.model_copy(update={"detected_issues": issues, "explanation": explanation})
    (found,) = find(a_run(a_pass(1, REACHED, answer="A"), a_pass(2, said, answer="A")))
    assert found.evidence.splitlines()[1:] == ["Pass 1: As it stands.", f"Pass 2: {words}"]


@pytest.mark.parametrize(
    ("score", "steps", "rank"),
    [
        (0.68, (a_step("facts"),), "cause"),
        (0.5, (a_step("facts"),), "cause"),
        (0.49, (a_step("facts"),), "doubt"),
        (0.96, (a_step("facts"),), "cause"),
        (0.68, (NONE_LEFT, a_step("more", status="pending")), "doubt"),
    ],
)
def test_a_judge_whose_scores_of_one_text_lie_far_apart_is_a_cause_where_all_is_done(
    score: float, steps: tuple[PlanStep, ...], rank: str
) -> None:
    find = next(each.find for each in DETECTORS if each.name == "noise")
    passes = (
        a_pass(1, assessed(0.4), answer="A", steps=steps),
        a_pass(2, assessed(score), answer="A", steps=steps),
    )
    assert [found.rank for found in find(a_run(*passes))] == [rank]


def test_a_repair_quotes_what_was_wrong() -> None:
    repair = RepairRecord(
        call="step", cycle=1, pass_number=1, errors=("no output",), attempts=1, outcome="repaired"
    )
    evidence = a_run(repairs=(repair,), patterns={"repairs_by_call": {"step": _rate(2, 2)}})
    find = next(each.find for each in DETECTORS if each.name == "repairs")
    assert [finding.evidence for finding in find(evidence)] == ["no output"]


@pytest.mark.parametrize(
    ("scores", "limit"),
    [
        ((0.5, 0.7, 0.7, 0.71), ["limits.max_passes=2"]),
        ((0.7, 0.7, 0.7), ["limits.max_passes=1"]),
        ((0.5, 0.7, 0.7), []),
        ((0.7, 0.715, 0.73), []),
    ],
)
def test_two_passes_or_more_at_the_end_that_gained_nothing_can_be_done_without(
    scores: tuple[float, ...], limit: list[str]
) -> None:
    passes = [a_pass(number, assessed(score)) for number, score in enumerate(scores, 1)]
    find = next(each.find for each in DETECTORS if each.name == "pass without gain")
    remedies = [remedy for finding in find(a_run(*passes)) for remedy in finding.remedies]
    assert [text for remedy in remedies for text in remedy.overrides] == limit


@pytest.mark.parametrize(
    ("scores", "offered"),
    [((0.5, 0.7), True), ((0.7, 0.7), False), ((0.5,), True), ((0.94, 0.5, 0.6), False)],
)
def test_a_higher_limit_is_offered_only_while_scores_rise(
    scores: tuple[float, ...], offered: bool
) -> None:
    passes = [a_pass(number, assessed(score)) for number, score in enumerate(scores, 1)]
    find = next(each.find for each in DETECTORS if each.name == "limit")
    (finding,) = find(a_run(*passes, reason="ttl_expired"))
    assert bool(finding.remedies) is offered


def test_a_pass_with_a_part_of_the_answer_is_no_end_to_be_content_with() -> None:
    passes = [a_pass(number, assessed(0.7)) for number in (1, 2, 3)]
    passes[0] = passes[0].model_copy(update={"answer_complete": False})
    find = next(each.find for each in DETECTORS if each.name == "pass without gain")
    (finding,) = find(a_run(*passes))
    assert finding.remedies == ()
