"""Stores tool results: a call made for a run is not repeated when the run is resumed or
replayed."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError as PydanticError

from aeon.domain.checks import ToolResult
from aeon.domain.errors import StopRequested, StoreFailed
from aeon.domain.request import current_site
from aeon.domain.values import JsonMapping, JsonObject
from aeon.store.models import CallPath, Kind, StoreRequest
from aeon.store.session import Session
from aeon.tools.invoke import ToolInvoker, read_arguments
from aeon.tools.registry import Approve, Tool, ToolRegistry
from aeon.tools.settings import ToolSettings


class StoredInvoker(ToolInvoker):
    """A ToolInvoker that stores each result in a run's session, unless the tool is `pure`. `stop`:
    True if nobody approved because the run is to stop. `invoke` raises StoreMiss, StoreFailed and
    StopRequested."""

    def __init__(
        self,
        registry: ToolRegistry,
        settings: ToolSettings | None = None,
        *,
        session: Session,
        approve: Approve | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(registry, settings, approve=approve)
        self._session = session
        self._stop = stop

    def invoke(self, name: str, arguments: object) -> ToolResult:
        """Call a tool, or return the result of an earlier call. Arguments that are not JSON are
        refused and not stored."""
        tool = self._registry.get(name)
        given, problems = read_arguments(None, arguments)
        if problems or (tool is not None and tool.pure):
            return super().invoke(name, arguments)
        made: list[ToolResult] = []

        def call() -> JsonObject:
            repeated = tool is not None and self._was_begun(tool, given)
            result = super(StoredInvoker, self).invoke(name, given)
            made.append(result.model_copy(update={"repeated": repeated}) if repeated else result)
            if made[0].error_kind == "refused" and self._stop():
                raise StopRequested(f"stopped before tool '{name}' was approved")
            return made[0].model_dump(mode="json")

        request = _request_of("tool", name, given)
        answer = self._session.answer(request, call)
        if made:
            return made[0]
        try:
            result = ToolResult.model_validate(answer)
        except PydanticError as error:
            raise StoreFailed(f"a tool's result in the store cannot be read: {error}") from error
        if tool is not None and tool.again and result.error is None:
            tool.again(result.arguments)
        return result.model_copy(update={"replayed": True})

    def must_be_alone(self, name: str) -> bool:
        """Whether a call of a tool must not be made concurrently with others. In a replay none is,
        so that `store.match=order` matches answers in a fixed order."""
        return self._session.replays or super().must_be_alone(name)

    def _begin(self, tool: Tool, given: JsonMapping) -> None:
        if self.may_have_effects(tool.name):
            self._session.begin(_request_of("begun", tool.name, given))

    def _was_begun(self, tool: Tool, given: JsonMapping) -> bool:
        begun = _request_of("begun", tool.name, given)
        return self.may_have_effects(tool.name) and self._session.find_begun(begun) is not None


def _request_of(kind: Kind, name: str, given: JsonMapping) -> StoreRequest:
    site = current_site()
    path = CallPath(pass_number=site.pass_number, phase=site.phase, call=name, step_id=site.step_id)
    return StoreRequest(kind=kind, path=path, body={"name": name, "arguments": dict(given)})
