"""A pipe or a device in a folder of runs, which somebody else may have made, holds nobody up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon


@pytest.mark.parametrize("is_link", [False, True])
def test_no_command_waits_for_a_pipe_in_the_place_of_a_result(
    aeon: RunAeon, tmp_path: Path, is_link: bool
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    if is_link:
        os.mkfifo("pipe")
        (run / "result.json").symlink_to(tmp_path / "pipe")
    else:
        os.mkfifo(run / "result.json")
    assert aeon("runs").status == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text("{}")
    assert "it is no regular file" in aeon("compare", "run", "other").out
    assert "it is no regular file" in aeon("inspect", "run").err
