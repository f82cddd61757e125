"""From Python, too, nobody else reads what a run in production leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon
from tests.support.scripted_model import ScriptedModel


@pytest.mark.parametrize(("env", "closed"), [("prod", True), ("dev", False)])
def test_in_production_the_folder_of_a_run_is_its_owners_alone(
    tmp_path: Path, env: str, closed: bool
) -> None:
    directory = tmp_path / "runs" / "mine"
    with Aeon.from_config([f"env={env}", "progress=none"], adapter=ScriptedModel()) as aeon:
        result = aeon.run("x", directory=directory)
    assert result.exit_status == 0
    others = directory.stat().st_mode & 0o077
    assert (others == 0) is closed
