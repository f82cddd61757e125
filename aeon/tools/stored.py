"""The store as a wrapper around tools: what was called for a run is not called again when it is resumed or replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError as PydanticError

from aeon.domain.errors import StopRequested, StoreFailed
from aeon.domain.request import current_site
from aeon.domain.tool_result import ToolResult
from aeon.store.models import Asked, CallPath
from aeon.store.session import Session
from aeon.store.texts import json_text
from aeon.tools.approval import Approve
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from aeon.tools.settings import ToolSettings


class StoredInvoker(ToolInvoker):
    """A ToolInvoker that keeps in a run's session what came of each call, errors and refusals too.

    Tools that are `pure` are called whenever they are needed. A call that is answered from the store needs no approval:
    it was given. A question that goes unanswered because the run is asked to stop (`stop`) is no refusal, and is not
    kept. `invoke` raises StoreMiss, StoreFailed and, then, StopRequested.
    """

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
        self._tools, self._session, self._stop = registry, session, stop

    def invoke(self, name: str, arguments: Any) -> ToolResult:
        """Call a tool, or give what came of it before."""
        tool = self._tools.get(name)
        if tool is not None and tool.pure:
            return super().invoke(name, arguments)
        call = super().invoke
        try:
            asked = _asked(name, arguments)
            json_text(asked.request)
        except (TypeError, ValueError, RecursionError):  # no JSON: refused below, without a call
            return call(name, arguments)
        made: list[ToolResult] = []

        def called() -> dict[str, Any]:
            made.append(call(name, arguments))
            return self._kept(made[0])

        answer = self._session.answer(asked, called)
        try:
            result = ToolResult.model_validate(answer)
        except PydanticError as error:
            raise StoreFailed(f"a tool's result in the store cannot be read: {error}") from error
        if tool is not None and tool.again and not made and result.error is None:
            tool.again(result.arguments)
        return result if made else result.model_copy(update={"replayed": True})

    def _kept(self, result: ToolResult) -> dict[str, Any]:
        if result.error_kind == "refused" and self._stop():
            raise StopRequested(f"stopped before tool '{result.tool}' was approved")
        return result.model_dump(mode="json")


def _asked(name: str, arguments: Any) -> Asked:
    site = current_site()
    path = CallPath(pass_number=site.pass_number, phase=site.phase, call=name, step_id=site.step_id)
    return Asked(kind="tool", path=path, request={"name": name, "arguments": arguments})
