"""What a person sees of a server that can do less than it should."""

from aeon.llm.dialects.server import forget_servers
from tests.cli.conftest import RunAeon
from tests.integration.wire import overrides, script
from tests.support import able_server as servers
from tests.support.able_server import AbleServer
from tests.support.openai_server import Failure


def test_the_command_line_says_once_what_was_found_out(aeon: RunAeon) -> None:
    answers = script()
    with AbleServer(
        {**answers, "repair": answers["task_profile"]}, shape=servers.ignoring
    ) as server:
        done = aeon(
            "task=do it", *overrides(server.url), "provider.require_key=false", "progress=none"
        )
    assert done.status == 0, done.err
    [warning] = [line for line in done.err.splitlines() if line.startswith("Warning:")]
    assert "the schema goes into the prompt too" in warning
    assert done.out.startswith("Work on: ")


def test_the_command_line_names_a_server_that_answers_nothing_but_errors(aeon: RunAeon) -> None:
    with AbleServer(
        script(), forms=set(), says=Failure(200, body={"error": "the model is not loaded"})
    ) as server:
        done = aeon(
            "task=do it", *overrides(server.url), "provider.require_key=false", "progress=none"
        )
    assert done.status == 1
    assert "the model is not loaded" in done.err
    assert "Traceback" not in done.err


def test_making_a_plan_and_the_doctor_say_what_was_found_out(aeon: RunAeon) -> None:
    with AbleServer(script(), forms={"text"}) as server:
        keys = (*overrides(server.url), "provider.require_key=false", "progress=none")
        planned = aeon("plan", "task=do it", *keys)
        forget_servers()
        examined = aeon("doctor", *keys)
    told = "the schema in the prompt from now on; provider.structured_output=prompt skips the trial"
    assert planned.status == 0, planned.err
    assert f"{told}\n" in planned.err
    assert f"{told}\n" in examined.out
