"""A provider that goes down, whichever call meets it: the run ends failed with its words, and the run that resumes it
asks for nothing that was answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon, RunResult
from aeon.llm.dialects.server import forget_servers
from tests.integration.faults import CALLS, Recorder, healthy
from tests.integration.wire import TASK, overrides
from tests.support.openai_server import Answer, Failure, OpenAIServer, Received

DOWN = {"busy": Failure(429), "overloaded": Failure(503), "wrong key": Failure(401)}
AT_ONCE = ("tools=builtin", "provider.retry.attempts=1", "provider.patience_seconds=0")
# The plan is reviewed first, then pass 1, then the change that pass 1 led to.
REVIEWS = {"review of pass 1": 2, "review of a change": 3}
PLACES = [*((call, 1) for call in CALLS), ("refinement", 2)]
PLACES += [("semantic_validation", number) for number in REVIEWS.values()]


def run(server: OpenAIServer, directory: Path, *more: str) -> RunResult:
    forget_servers()
    is_resumed = any(text.startswith("resume=") for text in more)
    given = overrides(server.url, *AT_ONCE, *more)
    with Aeon.from_config(given, environ={"OPENAI_API_KEY": "sk-test"}) as aeon:
        return aeon.run(None if is_resumed else TASK, directory=directory)


def go_down_at(call: str, number: int, how: Answer) -> Recorder:
    """A server that answers well up to a call, and nothing from then on."""
    seen = 0

    def fail(request: Received) -> Answer | None:
        nonlocal seen
        seen += request.name == call
        return how if seen >= number else None

    return Recorder(healthy(), fail)


@pytest.mark.slow
@pytest.mark.parametrize("how", DOWN)
@pytest.mark.parametrize(("call", "number"), PLACES)
def test_a_run_whose_provider_goes_down_says_so_and_is_resumed(
    start_server, tmp_path: Path, call: str, number: int, how: str
) -> None:
    down = go_down_at(call, number, DOWN[how])
    server = start_server(down.script)
    first = run(server, tmp_path / "first")
    assert (first.exit_status, first.termination_reason) == (1, "failed")
    assert first.error is not None
    assert first.error.message
    up = Recorder(healthy(), lambda _: None)
    server.start_over(up.script)
    resumed = run(server, tmp_path / "resumed", f"resume={tmp_path / 'first'}")
    assert resumed.exit_status == 0
    assert not up.answered & down.answered
