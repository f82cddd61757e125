"""`aeon eval` on the nodes of a cluster: arms and repeats are rows there, too."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands.test_eval import CORE, SINGLE, answer_even_numbers, dataset, number_of
from tests.support.openai_server import Completion, OpenAIServer
from tests.support.scripted_model import clear, plan
from tests.support.simulated_server import simulated

pytest.importorskip("ray")
pytestmark = pytest.mark.timeout(900)


def test_arms_are_measured_on_a_cluster_and_no_answer_is_paid_twice(tmp_path: Path) -> None:
    dataset(tmp_path, 4)
    script = {
        **simulated(),
        "plan": plan("say"),
        "step": lambda received: Completion(clear(str(number_of(received)))),
        "direct": answer_even_numbers,
    }
    with OpenAIServer(script) as server:
        words = ["dataset=tasks.jsonl", "out=out", "provider=openai", "provider.model=m"]
        words += [f"provider.base_url={server.url}", SINGLE, CORE, "equal=tokens"]
        command = [sys.executable, "-m", "aeon", "eval", *words, "batch.backend=ray"]
        ended = subprocess.run(
            [*command, "batch.parallel=4"], cwd=tmp_path, check=False, timeout=600
        )
        requests = len(server.requests)
    assert ended.returncode == 0
    one, core = json.loads((tmp_path / "out" / "eval.json").read_text())["arms"]
    assert (one["passed"], core["passed"]) == (2, 4)
    assert one["tokens"] == core["tokens"]
    assert requests == one["calls"] + core["calls"]
    assert not list((tmp_path / "out").glob("rows.jsonl.*"))
