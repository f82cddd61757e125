"""A step in which the model calls tools by itself: rounds of calls, then the step's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal, Protocol

from aeon.domain.errors import LLMError, ValidationError
from aeon.domain.history import StepResult, ToolUseRecord
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import ToolConversation, ToolTurn, at_site, current_site
from aeon.domain.values import JsonMapping, JsonObject
from aeon.execution.outcome import Remarks, Worked, fail_with, remark_repeated
from aeon.execution.tool_rounds.allowance import RoundAllowance
from aeon.execution.tool_rounds.calls import CallMaker, MadeCall, MakeCalls
from aeon.plan.transitions import finish_step
from aeon.schema.examples import NoExample, make_example
from aeon.tools.invoke import cut_text
from aeon.tools.registry import Tool

EndedBy = Literal["answer", "max_tool_rounds", "budget", "repeated", "error"]

_WHY: Mapping[EndedBy, str] = {
    "max_tool_rounds": "after {} rounds of tool calls (execution.max_tool_rounds)",
    "budget": "after {} rounds of tool calls, since the budget has no cycle for another",
    "repeated": "after {} rounds of tool calls, since a call was asked for a third time",
}


_MOST_SHOWN = 30
_LONGEST_SHOWN = 300


class AskRound(Protocol):
    """Makes the model call of a round."""

    def __call__(
        self, conversation: ToolConversation, *, may_ask_again: bool
    ) -> StepResult | ToolTurn:
        """Return the step's result, or the calls that the model requests. `may_ask_again`: a
        response with neither may be returned, as a round without calls."""


def select_tools(
    step: PlanStep, patterns: Sequence[str], registered: Sequence[Tool]
) -> tuple[Tool, ...]:
    """Return the registered tools that the model may call during a step: those that the step names,
    else those that match `execution.step_tools`."""
    if step.tool is not None or step.agent != "llm":
        return ()
    allowed = patterns if step.tools is None else step.tools
    if not allowed:
        return ()
    return tuple(tool for tool in registered if is_named(tool.name, allowed))


def list_step_tools(patterns: Sequence[str], registered: Sequence[Tool]) -> tuple[str, ...]:
    """Return the names of the tools that steps may call by themselves, for the planner."""
    return tuple(tool.name for tool in registered if is_named(tool.name, patterns))


def is_named(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns matches a tool's name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass
class ToolRounds:
    """The rounds of one step, at most `most_rounds` of them with calls. `ask` makes a round's model
    call, `make` calls tools, `text` renders a result for the model."""

    step: PlanStep
    plan: Plan
    tools: Sequence[Tool]
    most_rounds: int
    allowance: RoundAllowance
    ask: AskRound
    make: MakeCalls
    text: Callable[[str, JsonMapping], str]
    _turns: list[ToolTurn] = field(default_factory=list)
    _made: list[list[MadeCall]] = field(default_factory=list)

    def carry_out(self) -> Worked:
        """Run the rounds and return the step. A failed model call fails the step; raises errors
        that must end the run."""
        described = tuple(map(_describe_offered, self.tools))
        calls = CallMaker(tuple(tool.name for tool in self.tools), self.make)
        ended_by: EndedBy | None = None
        site = current_site()
        while True:
            site = replace(site, round=len(self._turns))
            if self._turns:
                self.allowance.begin_round(site, self.plan)
            conversation = ToolConversation(described, tuple(self._turns), ended_by is not None)
            with at_site(site):
                try:
                    answered = self.ask(conversation, may_ask_again=self.allowance.left > 0)
                except (LLMError, ValidationError) as error:
                    return self._fail(error)
                if isinstance(answered, StepResult):
                    return self._finish(answered, ended_by or "answer")
                made = calls.make_round(answered.calls)
            self._made.append(made)
            ended_by = self._find_end(calls)
            self._turns.append(self._answer_calls(answered, made, is_over=ended_by is not None))

    def _find_end(self, calls: CallMaker) -> EndedBy | None:
        """Return why the next round is the last, in which no tools are called; None if it is
        not."""
        if calls.is_stuck():
            return "repeated"
        if len(self._made) >= self.most_rounds:
            return "max_tool_rounds"
        return "budget" if self.allowance.left <= 1 else None

    def _answer_calls(
        self, asked: ToolTurn, made: Sequence[MadeCall], *, is_over: bool
    ) -> ToolTurn:
        if not made:
            again = self.text("_ask_again.j2", {"closing": is_over})
            return replace(asked, results=(again,))
        results = [
            self.text(
                "_tool_result.j2",
                {
                    "result": one.result,
                    "number": number,
                    "repeated": one.repeated,
                    "closing": is_over and number == len(made),
                },
            )
            for number, one in enumerate(made, start=1)
        ]
        return replace(asked, results=tuple(results))

    def _finish(self, result: StepResult, ended_by: EndedBy) -> Worked:
        used = result.model_copy(update={"tool_use": self._record(ended_by)})
        remarks = (*self._remark_repeated(), *self._remark_end(ended_by))
        step = finish_step(self.step, used)
        return Worked(step.model_copy(update={"tool_calls": self._describe_calls()}), used, remarks)

    def _fail(self, error: LLMError | ValidationError) -> Worked:
        worked = fail_with(self.step, f"{type(error).__name__}: {error.message}", error=error)
        used = worked.result.model_copy(update={"tool_use": self._record("error")})
        return replace(worked, result=used, remarks=self._remark_repeated())

    def _describe_calls(self) -> tuple[str, ...]:
        """List the calls made, for judges: without them, looked-up facts look invented."""
        made = [one for each in self._made for one in each if not one.repeated]
        shown = [f"{one.call.tool} {one.call.arguments}" for one in made[:_MOST_SHOWN]]
        more = len(made) - len(shown)
        cut = tuple(cut_text(each, _LONGEST_SHOWN)[0] for each in shown)
        return (*cut, f"and {more} more") if more else cut

    def _record(self, ended_by: EndedBy) -> ToolUseRecord:
        rounds = tuple(tuple(one.record() for one in made) for made in self._made)
        return ToolUseRecord(rounds=rounds, ended_by=ended_by)

    def _remark_repeated(self) -> Remarks:
        results = [one.result for made in self._made for one in made if not one.repeated]
        return tuple(remark for each in results for remark in remark_repeated(self.step, each))

    def _remark_end(self, ended_by: EndedBy) -> Remarks:
        why = _WHY.get(ended_by)
        if why is None:
            return ()
        count = len(self._turns)
        return (("tools_ended", f"Step {self.step.step_id} was finished {why.format(count)}"),)


def _describe_offered(tool: Tool) -> JsonObject:
    """Describe a tool for a round, without an example that was made from its input schema, which
    adds nothing."""
    described = tool.describe()
    try:
        made = make_example(tool.input_schema)
    except NoExample:
        return described
    if described.get("examples") == [made]:
        del described["examples"]
    return described
