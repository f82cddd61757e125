"""`aeon.yaml`: found, shown, weaker than the command line; of one that is not trusted see `test_trust.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from aeon.config.compose.problems import list_known_paths
from aeon.config.folder_content import read_content
from aeon.config.project_file import path_names
from aeon.config.settings import Settings
from aeon.config.trusted_folders import remember
from aeon.domain.errors import ConfigError
from tests.cli.conftest import RunAeon

SHOW = ("--cfg", "job")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def project(folder: Path, overrides: str = "", config_dir: str = "") -> None:
    """A project that the person trusts as it is then."""
    write(
        folder / "aeon.yaml",
        (f"config_dir: {config_dir}\n" if config_dir else "") + f"overrides: {{{overrides}}}\n",
    )
    trust(folder)


def trust(folder: Path) -> None:
    remember(read_content(folder))


def composed(aeon: RunAeon, *arguments: str) -> dict[str, Any]:
    ended = aeon(*SHOW, *arguments)
    assert ended.status == 0, ended.err
    values = yaml.safe_load(ended.out)
    assert isinstance(values, dict)
    return values


@pytest.mark.slow
def test_a_project_file_is_used_shown_and_can_be_left_out(aeon: RunAeon, tmp_path: Path) -> None:
    project(
        tmp_path,
        "convergence: strict, ttl.base: 7, convergence.criteria.cited: 'Sources, always: ${x}'".replace(
            "${x}", "yes"
        ),
    )
    ended = aeon(*SHOW)
    values = yaml.safe_load(ended.out)
    assert (values["ttl"]["base"], values["convergence"]["completeness"]) == (7, 0.98)
    assert values["convergence"]["criteria"] == {"cited": "Sources, always: yes"}
    assert f"Project {tmp_path / 'aeon.yaml'}: " in ended.err
    assert "ttl.base=7" in ended.err
    without = aeon(*SHOW, "--no-project")
    assert yaml.safe_load(without.out)["ttl"]["base"] == 10
    assert without.err == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["tools"],
        ["ask", "x", "provider=simulated"],
        ["render", "plan", "task=x"],
        ["runs"],
        ["docs", "ttl"],
    ],
    ids=" ".join,
)
def test_no_project_may_stand_before_a_command(
    aeon: RunAeon, tmp_path: Path, words: list[str]
) -> None:
    project(tmp_path, "ttl.base: nothing")
    ended = aeon("--no-project", *words)
    assert ended.status == 0, ended.err
    assert "ttl.base=nothing" not in ended.err


def test_the_command_line_wins_over_the_project(aeon: RunAeon, tmp_path: Path) -> None:
    project(tmp_path, "ttl.base: 7, provider: ollama, provider.model: mine, limits.max_passes: 4")
    values = composed(aeon, "ttl=small", "provider=simulated", "limits.max_passes=2")
    assert values["ttl"]["base"] == 5
    assert values["provider"]["model"] == "simulated"
    assert values["limits"]["max_passes"] == 2


def test_a_project_file_is_found_up_to_the_root_of_the_repository(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, "ttl.base: 7")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert composed(aeon)["ttl"]["base"] == 10
    (tmp_path / ".git").mkdir()
    assert composed(aeon)["ttl"]["base"] == 7
    (tmp_path / "a" / ".git").mkdir()
    assert composed(aeon)["ttl"]["base"] == 10


@pytest.mark.slow
def test_what_init_leaves_needs_no_flags(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert aeon("init", "mine").status == 0
    write(tmp_path / "mine" / "conf" / "limits" / "default.yaml", "max_passes: 1\n")
    template = tmp_path / "mine" / "prompts" / "default" / "plan.system.j2"
    template.write_text(
        template.read_text(encoding="utf-8") + "\nMind the gap.\n", encoding="utf-8"
    )
    (tmp_path / "mine" / "inner").mkdir()
    (tmp_path / "mine" / ".git").mkdir()
    trust(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine" / "inner")
    assert composed(aeon)["limits"]["max_passes"] == 1
    assert "Mind the gap." in aeon("render", "plan", "task=x").out


@pytest.mark.parametrize("command", ["doctor", "tools", "plan", "verify", "render", "check"])
def test_every_command_that_is_configured_takes_the_project(
    aeon: RunAeon, tmp_path: Path, command: str
) -> None:
    project(tmp_path, "ttl.base: nothing")
    write(tmp_path / "plan.yaml", "goal: g\nsteps: []\n")
    words = {"render": ["plan"], "check": ["plan.yaml"], "plan": ["task=x"]}
    ended = aeon(command, *words.get(command, []))
    assert ended.status == 2
    assert "ttl.base=nothing" in ended.err


def test_a_trusted_project_may_set_what_the_command_line_may(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEON_TEST_PLACE", "there")
    project(
        tmp_path,
        "provider: openai, provider.base_url: 'http://models.example/v1', provider.api_key_env: MINE, "
        "hydra.run.dir: mine, input_files.x: ../notes.md, store.path: '${oc.env:AEON_TEST_PLACE}/s'",
    )
    values = composed(aeon)
    assert values["provider"]["base_url"] == "http://models.example/v1"
    assert values["provider"]["api_key_env"] == "MINE"
    assert values["input_files"] == {"x": str(tmp_path / "../notes.md")}
    assert values["store"]["path"] == "${oc.env:AEON_TEST_PLACE}/s"
    assert composed(aeon, "--resolve")["store"]["path"] == "there/s"


def test_a_folder_that_a_person_names_themselves_is_theirs(aeon: RunAeon, tmp_path: Path) -> None:
    write(tmp_path / "conf" / "provider" / "mine.yaml", "defaults: [openai]\napi_key_env: MINE\n")
    assert aeon(*SHOW, "--config-dir", "conf", "provider=mine").status == 0


def test_names_that_a_person_gives_may_be_of_several_words(aeon: RunAeon, tmp_path: Path) -> None:
    project(
        tmp_path, "convergence.criteria: {'well cited': every claim}, tools.approval.kind_*: never"
    )
    values = composed(aeon)
    assert values["convergence"]["criteria"] == {"well cited": "every claim"}


def test_paths_of_a_project_are_relative_to_its_file(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    project(
        tmp_path,
        "answer.schema: report.json, input_files.notes: notes.md, memory: sqlite, memory.path: m.sqlite",
    )
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    values = composed(aeon)
    assert values["answer"]["schema"] == str(tmp_path / "report.json")
    assert values["input_files"] == {"notes": str(tmp_path / "notes.md")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "aeon.yaml:1: expected the node content"),
        ("- a\n", "must be a mapping"),
        ("override: {}\n", "must be a mapping of config_dir and overrides"),
        ("overrides: [ttl=small]\n", "ttl.base: 20"),
        ("config_dir: nowhere\n", "no such folder"),
        ("config_dir: ..\n", "within the project"),
        ("overrides: {ttl.bass: 1}\n", "did you mean `base`?"),
    ],
)
def test_a_project_file_that_cannot_be_used_is_named(
    aeon: RunAeon, tmp_path: Path, text: str, said: str
) -> None:
    write(tmp_path / "aeon.yaml", text)
    with suppress(ConfigError):
        trust(tmp_path)
    ended = aeon(*SHOW)
    assert ended.status == 2
    assert said in ended.err
    assert aeon("--version").status == aeon("--help").status == 0


def test_an_empty_project_file_sets_nothing(aeon: RunAeon, tmp_path: Path) -> None:
    write(tmp_path / "aeon.yaml", "")
    trust(tmp_path)
    assert composed(aeon)["ttl"]["base"] == 10


@pytest.mark.slow
def test_a_run_that_is_resumed_brings_its_own_overrides(aeon: RunAeon, tmp_path: Path) -> None:
    assert aeon(
        "task=x", "provider=simulated", "progress=none", "ttl.base=9", "hydra.run.dir=first"
    ).status in (0, 3)
    project(tmp_path, "ttl.base: 7")
    ended = aeon(*SHOW, "resume=first")
    assert yaml.safe_load(ended.out)["ttl"]["base"] == 9
    assert "ignored" in ended.err


def test_a_run_records_what_the_project_said(aeon: RunAeon, tmp_path: Path) -> None:
    project(tmp_path, "ttl.base: 9, provider: simulated")
    assert aeon("task=x", "progress=none", "hydra.run.dir=first").status in (0, 3)
    recorded = json.loads((tmp_path / "first" / "run.json").read_text(encoding="utf-8"))
    assert "ttl.base=9" in recorded["overrides"]


def test_completion_and_help_know_the_projects_own_groups(aeon: RunAeon, tmp_path: Path) -> None:
    write(tmp_path / "conf" / "customer" / "acme.yaml", "{}\n")
    project(tmp_path, config_dir="conf")
    assert aeon("completion", "--", "+customer=").out == "+customer=acme\n"
    assert "customer:       acme" in aeon("--help").out
    assert "acme" not in aeon("--help", "--no-project").out


def path_fields(model: type[BaseModel]) -> Iterator[str]:
    """The keys of the settings that hold a path, found in their JSON schema."""

    def walk(node: object, name: str) -> Iterator[str]:
        if isinstance(node, dict):
            if node.get("format") == "path":
                yield name
            for key, value in node.items():
                inner = (
                    value.items()
                    if key in ("properties", "$defs") and isinstance(value, dict)
                    else [(name, value)]
                )
                for child, part in inner:
                    yield from walk(part, str(child))
        elif isinstance(node, list):
            for part in node:
                yield from walk(part, name)

    yield from walk(model.model_json_schema(by_alias=True), "")


def test_every_key_that_holds_a_path_is_known_to_the_check() -> None:
    assert list(list_known_paths(Settings))
    found = set(path_fields(Settings))
    assert {"task_file", "dir", "root"} <= found <= path_names()
