from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.checks import ToolResult
from aeon.domain.errors import StopRequested, StoreFailed, StoreMiss
from aeon.domain.plan import FollowUpQuestion
from aeon.domain.request import CallSite, at_site
from aeon.store.models import CallPath, Entry, StoreRequest
from aeon.store.opening import open_session, open_source
from aeon.store.session import Session, store_answers_of
from aeon.store.settings import StoreSettings
from aeon.store.sqlite_store import SqliteStore
from aeon.tools.registry import ApprovalRequest, ToolRegistry
from aeon.tools.settings import ToolSettings
from aeon.tools.stored import StoredInvoker
from tests.tools.builders import a_tool

Opened = Callable[..., Session]


class Counter:
    """A tool's function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, given: Any) -> Any:
        self.calls += 1
        return {"call": self.calls, "given": dict(given)}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made: list[Session] = []

    def session(mode: str = "record", name: str = "a", **more: Any) -> Session:
        settings = StoreSettings(
            mode=mode, path=tmp_path / ("a" if mode == "replay" else "shared.sqlite")
        )
        made.append(open_session(settings, directory=tmp_path / name, **more))
        return made[-1]

    yield session
    for one in made:
        one.close()


def invoked(
    session: Session, *tools: Any, name: str = "probe", given: Any = None, **more: Any
) -> ToolResult:
    approval = more.pop("approval", {})
    invoker = StoredInvoker(
        ToolRegistry(tools), ToolSettings(approval=approval), session=session, **more
    )
    with at_site(CallSite(pass_number=1, phase="EXECUTE", step_id="s1")):
        return invoker.invoke(name, {} if given is None else given)


def test_a_result_is_kept_whole_and_the_tool_not_called_again(opened: Opened) -> None:
    count = Counter()
    first = invoked(opened(), a_tool(count), given={"a": 1})
    again = invoked(opened("replay"), a_tool(count), given={"a": 1})
    assert (first.replayed, again.replayed) == (False, True)
    assert again.model_dump() == first.model_dump()
    assert count.calls == 1
    assert first.output == {"call": 1, "given": {"a": 1}}


def test_a_resumed_run_does_not_call_again_and_counts_it(opened: Opened, tmp_path: Path) -> None:
    count = Counter()
    invoked(opened(), a_tool(count))
    parent = open_source(tmp_path / "a")
    session = opened(name="b", parents=[parent])
    invoked(session, a_tool(count))
    assert (count.calls, session.saved) == (1, {"tool": 1})
    parent.close()


def test_a_cache_calls_tools_again(opened: Opened) -> None:
    count = Counter()
    for name in "ab":
        invoked(opened("cache", name), a_tool(count))
    assert count.calls == 2


def test_a_pure_tool_is_called_whenever_it_is_needed_and_never_kept(
    opened: Opened, tmp_path: Path
) -> None:
    count = Counter()
    invoked(opened(), a_tool(count, pure=True))
    invoked(opened("replay"), a_tool(count, pure=True))
    assert count.calls == 2
    parent = open_source(tmp_path / "a")
    assert list(parent.entries()) == []
    parent.close()


def test_a_replay_never_calls_a_tool_that_was_not_recorded(opened: Opened) -> None:
    count = Counter()
    opened()
    with pytest.raises(StoreMiss, match="the call of tool 'probe' \\(pass 1, EXECUTE, step s1\\)"):
        invoked(opened("replay"), a_tool(count))
    assert count.calls == 0


def test_the_calls_of_a_replay_are_made_in_order(opened: Opened) -> None:
    # Those of store.match=order get the recorded answers in the order in which they ask.
    registry = ToolRegistry([a_tool(Counter())])
    assert not StoredInvoker(registry, session=opened()).must_be_alone("probe")
    assert StoredInvoker(registry, session=opened("replay")).must_be_alone("probe")


def test_equal_calls_of_one_step_keep_their_order(opened: Opened) -> None:
    count = Counter()

    def twice(session: Session) -> list[Any]:
        return [invoked(session, a_tool(count)).output["call"] for _ in range(2)]

    assert twice(opened()) == [1, 2]
    assert twice(opened("replay")) == [1, 2]


def test_errors_and_refusals_are_kept_too(opened: Opened) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("no such place")

    recording = opened()
    failed = invoked(recording, a_tool(broken), given={"a": 1})
    refused = invoked(
        recording, a_tool(), name="probe", approval={"probe": "ask"}, approve=lambda _: False
    )
    unknown = invoked(recording, name="nothing")
    assert (failed.error_kind, refused.error_kind, unknown.error_kind) == (
        "raised",
        "refused",
        "unknown",
    )
    replay = opened("replay")
    assert invoked(replay, a_tool(), given={"a": 1}).model_dump() == failed.model_dump()
    assert invoked(replay, a_tool()).model_dump() == refused.model_dump()
    assert invoked(replay, a_tool(), name="nothing").model_dump() == unknown.model_dump()


def test_approval_is_not_asked_for_again(opened: Opened) -> None:
    asked: list[Any] = []

    def approve(request: Any) -> bool:
        asked.append(request)
        return True

    for mode in ("record", "replay"):
        result = invoked(opened(mode), a_tool(), approval={"*": "ask"}, approve=approve)
        assert result.error is None
    assert len(asked) == 1


def test_a_question_cut_short_by_a_stop_is_no_refusal(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(StopRequested, match="before tool 'probe' was approved"):
        invoked(
            opened(), a_tool(), approval={"*": "ask"}, approve=lambda _: False, stop=lambda: True
        )
    parent = open_source(tmp_path / "a")
    assert list(parent.entries()) == []
    parent.close()


@pytest.mark.parametrize("given", [{"a": object()}, {1: {2}}, "no object", [1]])
def test_arguments_that_json_does_not_have_are_refused_as_ever(opened: Opened, given: Any) -> None:
    assert invoked(opened(), a_tool(), given=given).error_kind == "invalid_arguments"


def test_a_kept_result_that_cannot_be_read_is_told(opened: Opened, tmp_path: Path) -> None:
    path = CallPath(pass_number=1, phase="EXECUTE", call="probe", step_id="s1")
    asked = StoreRequest(kind="tool", path=path, body={"name": "probe", "arguments": {}})
    store = SqliteStore(tmp_path / "a" / "store.sqlite")
    store.put(Entry(request=asked, answer={"nonsense": 1}, time="now"))
    store.close()
    with pytest.raises(StoreFailed, match="a tool's result in the store cannot be read"):
        invoked(opened("replay"), a_tool())


def question(text: str = "How many?") -> FollowUpQuestion:
    return FollowUpQuestion(question=text, assumption="three")


@pytest.mark.parametrize("said", ["four", None])
def test_what_a_person_answered_or_left_open_is_not_asked_again(
    opened: Opened, said: str | None
) -> None:
    asked: list[FollowUpQuestion] = []

    def ask(put: FollowUpQuestion) -> str | None:
        asked.append(put)
        return said

    assert [store_answers_of(ask, opened(mode))(question()) for mode in ("record", "replay")] == [
        said,
        said,
    ]
    assert asked == [question()]
    with pytest.raises(StoreMiss):
        store_answers_of(ask, opened("replay"))(question("How few?"))


def test_a_person_who_is_interrupted_has_not_answered(opened: Opened) -> None:
    assert store_answers_of(lambda _: None, opened(), lambda: True)(question()) is None
    with pytest.raises(StoreMiss):
        store_answers_of(lambda _: "four", opened("replay"))(question())


def test_a_tool_with_effects_that_was_under_way_at_a_kill_is_named_when_it_is_called_again(
    opened: Opened, tmp_path: Path
) -> None:
    session = opened()
    tool = a_tool(Counter(), side_effects=True)
    killed = StoredInvoker(ToolRegistry([tool]), ToolSettings(), session=session)
    with at_site(CallSite(pass_number=1, phase="EXECUTE", step_id="s1")):
        killed._begin(tool, {"a": 1})  # and then the program is gone
    session.close()
    parent = open_source(tmp_path / "a")
    asked: list[bool] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.repeated)
        return True

    count = Counter()
    resumed = opened(name="b", parents=[parent])
    more: dict[str, Any] = {"approve": approve, "approval": {"probe": "ask"}}
    again = invoked(resumed, a_tool(count, side_effects=True), given={"a": 1}, **more)
    other = invoked(resumed, a_tool(count, side_effects=True), given={"a": 2}, **more)
    assert (again.repeated, other.repeated) == (True, False)
    assert asked == [True, False]
    assert "repeated" not in again.model_dump()
    parent.close()


@pytest.mark.parametrize("effects", [True, False])
def test_a_call_that_ended_is_not_taken_for_one_that_was_cut_off(
    opened: Opened, tmp_path: Path, effects: bool
) -> None:
    count = Counter()
    invoked(opened(), a_tool(count, side_effects=effects))
    parent = open_source(tmp_path / "a")
    again = invoked(opened(name="b", parents=[parent]), a_tool(count, side_effects=effects))
    assert (again.replayed, again.repeated, count.calls) == (True, False, 1)
    assert [entry.request.kind for entry in parent.entries()] == ["begun"] * effects + ["tool"]
    parent.close()
