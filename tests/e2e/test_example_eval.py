"""The forty tasks of examples/eval/, measured with the configuration that lies beside them."""

import json
import shutil
from pathlib import Path

import pytest

from aeon.cli.main import main
from tests.evaluation.example_tasks import PATH, rows
from tests.evaluation.test_example_tasks import SOLUTIONS
from tests.support.openai_server import Completion, OpenAIServer, Received

ANSWERS = {
    row["task"]: json.dumps(row["target"]) if "target" in row else row["id"] for row in rows()
}


def answer_rightly(received: Received) -> Completion:
    """What a model that can do all of them answers, JSON and programs in code blocks."""
    answer = next(answer for task, answer in ANSWERS.items() if task in received.user)
    if answer.startswith("program-"):
        answer = f"```python\n{SOLUTIONS[answer.removeprefix('program-')]}```"
    elif answer.startswith('"'):
        answer = json.loads(answer)
    return Completion({"working": None, "answer": answer})


@pytest.mark.slow
def test_a_model_that_answers_rightly_passes_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(PATH.parent, tmp_path / "eval")
    monkeypatch.chdir(tmp_path)
    with OpenAIServer({"direct": answer_rightly}) as server:
        words = ["dataset=eval/tasks.jsonl", "out=out"]
        words += ["--config-dir", "eval/conf", "convergence=tested"]
        words += server.overrides
        assert main(["eval", *words, 'arms.one=["mode=single"]', "threshold=1"]) == 0
    (arm,) = json.loads((tmp_path / "out" / "eval.json").read_text())["arms"]
    assert (arm["passed"], arm["answers"], arm["mean_score"]) == (40, 40, 1.0)
