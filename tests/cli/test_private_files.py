"""In production, what a run leaves is its owner's alone; elsewhere, its store is."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon
from tests.cli.conftest import RunAeon
from tests.support.openai_server import OpenAIServer


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.rglob("*")}


def test_in_production_all_files_of_a_run_are_the_owners_alone(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")
    chosen = ("env=prod", f"provider.base_url={openai_server.url}", "mode=core", "progress=none")
    aeon("task=x", *chosen, "hydra.run.dir=run")
    found = modes(tmp_path / "run")
    assert {"result.json", "answer.md", "store.sqlite", "events.jsonl", ".hydra"} <= set(found)
    assert {mode for name, mode in found.items() if name != ".hydra"} == {0o600}
    assert {found[".hydra"], (tmp_path / "run").stat().st_mode & 0o777} == {0o700}


def test_elsewhere_the_store_is(aeon: RunAeon, tmp_path: Path) -> None:
    aeon("task=x", "provider=simulated", "progress=none", "hydra.run.dir=run")
    found = modes(tmp_path / "run")
    assert found["store.sqlite"] == 0o600
    assert found["result.json"] == 0o644


@pytest.mark.parametrize(("env", "of_files"), [("prod", 0o600), ("dev", 0o644)])
def test_a_run_of_a_program_is_as_private(
    tmp_path: Path, openai_server: OpenAIServer, env: str, of_files: int
) -> None:
    overrides = [f"env={env}", "provider=openai", f"provider.base_url={openai_server.url}"]
    with Aeon.from_config([*overrides, "mode=core"], environ={"OPENAI_API_KEY": "sk-x"}) as aeon:
        aeon.run("x", directory=tmp_path / "run")
    found = modes(tmp_path / "run")
    assert {"run.json", "result.json", "answer.md", "events.jsonl", "store.sqlite"} <= set(found)
    others = {mode for name, mode in found.items() if not name.startswith("store")}
    assert others == {of_files}
    assert found["store.sqlite"] == 0o600
