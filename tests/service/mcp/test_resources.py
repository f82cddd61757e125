"""What runs have left, as resources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from aeon.service.mcp.tools import RUN_TASK
from tests.service.gates import GatedModel, OpenJobs
from tests.service.mcp.clients import KnowsTasks, begin_task, open_server, run_client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_run_leaves_its_answer_its_page_and_its_history(open_jobs: OpenJobs, mode: str):
    server, _ = open_server(open_jobs, None, "provider=simulated", "provider.seed=1")

    async def talk(client: Client) -> None:
        result = await client.call_tool(RUN_TASK, {"task": "make tea"})
        known = result.structured_content
        read = {}
        for name, uri in known["resources"].items():
            (content,) = (await client.read_resource(uri)).contents
            assert content.uri == uri
            read[name] = content
        assert read["answer"].text.strip() == known["answer"].strip()  # type: ignore[union-attr]
        assert read["report"].mime_type == "text/html"
        assert json.loads(read["history"].text)["passes"]  # type: ignore[union-attr]

        listed = (await client.list_resources()).resources
        assert [(each.uri, each.title) for each in listed] == [
            (known["resources"]["answer"], "make tea")
        ]
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            f"aeon://runs/{{id}}/{name}" for name in ("answer", "report", "history")
        ]

    run_client(server, talk, mode)


def test_nothing_but_what_runs_have_left_is_read(
    open_jobs: OpenJobs, model: GatedModel, tmp_path: Path
):
    server, _ = open_server(open_jobs, None, *model.overrides)
    (tmp_path / "jobs" / "answer.md").write_text("secret")

    async def talk(client: Client) -> None:
        run = (await begin_task(client, RUN_TASK, task="abc"))["taskId"]
        for uri in (
            f"aeon://runs/{run}/answer",  # it has not ended
            f"aeon://runs/{run}/job.json",
            f"aeon://runs/{run}/../job.json",
            f"aeon://runs/{run}/",
            f"aeon://runs/{run}",
            f"file://runs/{run}/answer",
            f"aeon://runs/{'0' * 32}/answer",
            "aeon://runs/../answer",
            "aeon://runs/%2e%2e/answer",
            "aeon://runs//answer",
            "file:///etc/passwd",
            "",
        ):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.code == INVALID_PARAMS

    run_client(server, talk, extensions=[KnowsTasks()])
