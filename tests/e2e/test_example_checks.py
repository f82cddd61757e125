"""The example of checks: a worker that obeys what a check says converges, one that ignores it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.result import RunResult
from tests.support.scripted_model import ScriptedModel, action, clear, planned, refinement

ROOT = Path(__file__).parents[2]
WRONG = "```python\ndef slug(title):\n    return title.lower()\n```"
RIGHT = '''```python
import re


def slug(title):
    """A title as part of a web address."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
```'''
DOCUMENTED = "{type: python, required: false, value: 'examples.checks.own_checks:is_documented'}"
pytestmark = pytest.mark.slow


def write_slug(model: ScriptedModel, *overrides: str) -> RunResult:
    settings = ["convergence=slugs", *overrides]
    conf = ROOT / "examples" / "checks" / "conf"
    with Aeon.from_config(settings, config_dir=conf, adapter=model, environ={}) as aeon:
        return aeon.run("Write slug(title) in Python.")


def mend(step_id: str, after: str) -> dict[str, Any]:
    step = planned(step_id, after)
    return action("ADD", None, step, addresses_issues=["check:unit_tests"])


@pytest.fixture(autouse=True)
def in_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_worker_that_obeys_the_checks_converges_with_what_they_ask_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = refinement(mend("mended", "only"))
    model = ScriptedModel(step=[clear(WRONG), clear(RIGHT)], refinement=changes)
    monkeypatch.chdir(ROOT)  # where the module of `documented` is
    result = write_slug(model, f"convergence.checks.documented={DOCUMENTED}")
    assert result.converged
    assert result.answer == RIGHT
    assert {check.name: check.passed for check in result.checks} == {
        "unit_tests": True,
        "documented": True,
        "no_shell": True,
    }
    first = result.history.passes[1].evaluation_results
    assert first.convergence is not None
    assert first.convergence.reason_codes == ("unit_tests",)
    (prompt,) = model.prompts("refinement")
    assert "hello-world" in prompt


def test_a_worker_that_ignores_the_checks_never_converges_whatever_the_judge_says() -> None:
    changes = [refinement(mend(f"again{n}", f"again{n - 1}" if n else "only")) for n in range(5)]
    model = ScriptedModel(step=clear(WRONG), refinement=changes)
    result = write_slug(model, "limits.max_passes=3")
    assert (result.converged, result.exit_status) == (False, 3)
    assert [check.name for check in result.checks if check.blocks] == ["unit_tests"]
