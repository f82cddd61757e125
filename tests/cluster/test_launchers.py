"""Sweeps with the launchers and the sweeper that are extras, each the real one, asked of a real server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from aeon.config.folder_content import read_content
from tests.support.openai_server import OpenAIServer
from tests.support.simulated_server import simulated

pytestmark = pytest.mark.timeout(900)  # processes that a busy machine takes minutes to start

LAUNCHERS = {
    "joblib": ("hydra.launcher.n_jobs=2",),
    "submitit_local": (),
    "ray": (
        "+hydra.launcher.ray.init.address=local",
        "+hydra.launcher.ray.init.include_dashboard=false",
    ),
}


def sweep(root: Path, server: OpenAIServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    fixed = ("task=x", "hydra.sweep.dir=sweep", "progress=none", "output=json", "provider=openai")
    at = (f"provider.base_url={server.url}", "provider.require_key=false")
    command = [sys.executable, "-m", "aeon", "-m", *fixed, *at, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def results(root: Path) -> dict[str, dict[str, Any]]:
    found = sorted(root.glob("sweep/[0-9]*/result.json"))
    return {path.parent.name: json.loads(path.read_bytes()) for path in found}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_of_hydras_runs_the_jobs_in_processes_of_their_own(
    tmp_path: Path, launcher: str
) -> None:
    with OpenAIServer(simulated()) as server:
        ended = sweep(
            tmp_path, server, f"hydra/launcher={launcher}", *LAUNCHERS[launcher], "ttl.base=1,10"
        )
        asked = len(server.requests)
    assert ended.returncode == 3, ended.stderr
    found = results(tmp_path)
    assert {name: job["termination_reason"] for name, job in found.items()} == {
        "0-base=1": "ttl_expired",
        "1-base=10": "converged",
    }
    assert "Exit status 3, the worst of 2 jobs." in ended.stderr
    calls = [job["usage"]["total"]["requests"] for job in found.values()]
    saved = [job["parent"]["saved"]["model_calls"] for job in found.values()]
    assert asked == sum(calls) - sum(saved)


CHANGER = """
from pathlib import Path
from hydra.experimental.callback import Callback

class Change(Callback):
    def on_multirun_start(self, config, **_):
        for path in Path(config.hydra.runtime.cwd).glob("[cp]*/*/*"):
            path.write_text(path.read_text().replace("before", "later").replace("50", "77"))
"""


@pytest.mark.parametrize("launcher", ["basic", *LAUNCHERS])
def test_jobs_in_other_processes_use_a_trusted_project_as_it_was_trusted(
    tmp_path: Path, launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, modules = tmp_path / "project", tmp_path / "modules"
    texts = {
        modules / "changer_of_files.py": CHANGER,
        project / "aeon.yaml": "config_dir: conf\noverrides: {prompts.dir: prompts}\n",
        project / "conf" / "limits" / "mine.yaml": "max_llm_calls: 50\n",
        project / "prompts" / "default" / "plan.system.j2": "Plan as before.\n",
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(modules))
    monkeypatch.setenv("AEON_TRUST", read_content(project).digest)
    change = "+hydra.callbacks.change._target_=changer_of_files.Change"
    with OpenAIServer(simulated()) as server:
        given = (*LAUNCHERS.get(launcher, ()), "limits=mine", change)
        ended = sweep(project, server, f"hydra/launcher={launcher}", *given, "ttl.base=10,11")
        asked = [json.dumps(request.body) for request in server.requests]
    assert ended.returncode == 0, ended.stderr
    assert "later" in (project / "prompts/default/plan.system.j2").read_text(encoding="utf-8")
    assert "77" in (project / "conf/limits/mine.yaml").read_text(encoding="utf-8")
    caps = [job["configuration"]["limits"]["max_llm_calls"] for job in results(project).values()]
    assert caps == [50, 50]
    assert any("Plan as before" in text for text in asked)
    assert not any("Plan as later" in text for text in asked)


@pytest.mark.parametrize("storage", ["null", "sqlite:///study.db"])
def test_optuna_searches_for_the_best_value_with_jobs_in_this_process(
    tmp_path: Path, storage: str
) -> None:
    search = ("hydra/sweeper=optuna", "hydra.sweeper.n_trials=4", "hydra.sweeper.n_jobs=2")
    what = ("convergence.completeness=interval(0.2,0.9)", "hydra.sweeper.direction=maximize")
    with OpenAIServer(simulated()) as server:
        given = (f"hydra.sweeper.storage={storage}", "sweep.objective=scores.completeness_score")
        ended = sweep(tmp_path, server, *search, *what, *given)
        bodies = [json.dumps(request.body, sort_keys=True) for request in server.requests]
    assert ended.returncode == 0, ended.stderr
    assert len(bodies) == len(set(bodies))
    scores = [job["scores"]["completeness_score"] for job in results(tmp_path).values()]
    assert len(scores) == 4
    best = yaml.safe_load(
        (tmp_path / "sweep" / "optimization_results.yaml").read_text(encoding="utf-8")
    )
    assert best["best_value"] == max(scores)
    assert len(ended.stdout.splitlines()) == 4


def test_an_objective_that_no_result_has_is_told(tmp_path: Path) -> None:
    search = (
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=2",
        "convergence.completeness=interval(0.2,0.9)",
    )
    with OpenAIServer(simulated()) as server:
        ended = sweep(tmp_path, server, *search, "sweep.objective=scores.beauty")
    assert ended.returncode == 2
    assert "sweep.objective=scores.beauty: a result has no such key beauty" in ended.stderr


def test_caps_and_going_on_are_of_the_launcher_in_this_process_alone(tmp_path: Path) -> None:
    with OpenAIServer(simulated()) as server:
        ended = sweep(
            tmp_path, server, "hydra/launcher=joblib", "ttl.base=1,10", "sweep.max_llm_calls=3"
        )
        assert not server.requests
    assert ended.returncode == 2
    assert (
        "sweep.max_llm_calls: only the launcher that runs all jobs in one process supports it"
        in ended.stderr
    )
