"""What the pages say, held to the program."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from aeon import config_compose
from aeon.cli.main import COMMANDS, main
from aeon.observability.jsonl import read_lines

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CONFIGURATION = ROOT / "docs" / "configuration.md"
PAGES = sorted([README, *(ROOT / "docs").rglob("*.md")])
# These have pages of their own.
ELSEWHERE = ("tools",)
HEADING = re.compile(r"^#+ .*?`(?P<override>[a-z_]+=\w+)`\s*$")
ROW = re.compile(r"^\| `(?P<key>[a-z_.*]+)` \| `(?P<default>[^`]*)` \|")
FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)#\s]+)(?:#[^)]*)?\)")


def composed(*overrides: str) -> dict[str, Any]:
    values = OmegaConf.to_container(config_compose.compose(list(overrides)), resolve=True)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


def leaves(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(values, dict) and values:
        for name, value in values.items():
            yield from leaves(value, f"{path}.{name}" if path else str(name))
    else:
        yield path, values


def rows() -> list[tuple[str, str, str]]:
    """Each documented key: the override that the section is about, the key, its default as written."""
    found, override = [], ""
    for line in CONFIGURATION.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = HEADING.match(line)
            override = heading["override"] if heading else ""
        elif row := ROW.match(line):
            found.append((override, row["key"], row["default"]))
    return found


def at(values: dict[str, Any], key: str) -> list[Any]:
    """The values of a key; `*` stands for every name."""
    here: list[Any] = [values]
    for part in key.split("."):
        here = [inner for value in here for name, inner in value.items() if part in ("*", name)]
    return here


def examples(page: Path, language: str) -> list[str]:
    return [block["code"] for block in FENCED.finditer(page.read_text(encoding="utf-8")) if block["language"] == language]


@pytest.mark.parametrize(("override", "key", "default"), rows())
def test_a_documented_key_exists_with_the_documented_default(override: str, key: str, default: str) -> None:
    found = at(composed(*([override] if override else [])), key)
    assert found
    assert all(value == yaml.safe_load(default) for value in found)


def test_every_key_of_every_option_is_documented() -> None:
    documented = [re.escape(key).replace(r"\*", "[^.]+") for _, key, _ in rows()]
    known = re.compile(rf"(?:{'|'.join(documented)})(?:\..*)?")
    options = [
        f"{folder.name}={option.stem}"
        for folder in sorted(config_compose.packaged_config_dir().iterdir())
        if folder.is_dir() and folder.name not in ("hydra", "sweep", *ELSEWHERE)
        for option in sorted(folder.glob("*.yaml"))
    ]
    missing = {
        key
        for option in options
        for key, _ in leaves(composed(option))
        if not known.fullmatch(key) and key.partition(".")[0] not in ELSEWHERE
    }
    assert not missing


def test_every_group_and_option_is_named_in_the_configuration_page() -> None:
    text = CONFIGURATION.read_text(encoding="utf-8")
    for folder in config_compose.packaged_config_dir().iterdir():
        if not folder.is_dir() or folder.name in ("hydra", *ELSEWHERE):
            continue
        names = [folder.name, *(option.stem for option in folder.glob("*.yaml"))]
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("env", ["dev", "prod", "ci"])
def test_the_table_of_environments_is_what_they_choose(env: str) -> None:
    text = CONFIGURATION.read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \| `(\w+)` \|$", text, re.MULTILINE)
    said = {group: dict(zip(("dev", "prod", "ci"), options, strict=True))[env] for group, *options in table}
    cfg = config_compose.compose([f"env={env}"], with_hydra=True)
    assert set(said) == {"provider", "limits", "ttl", "progress"}
    assert {group: cfg.hydra.runtime.choices[group] for group in said} == said


def test_readme_names_the_ten_overrides_of_the_help() -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(["--help"]) == 0
    section = shown.getvalue().partition("The ten overrides that matter\n")[2].partition("\n\n")[0]
    of_help = [line.split()[0] for line in section.splitlines()]
    section = README.read_text(encoding="utf-8").partition("## The overrides that matter\n")[2].partition("\n## ")[0]
    of_readme = [found[0] for found in re.findall(r"^\| `([a-z_.A-Z]+=[^`]*)` \|", section, re.MULTILINE) for found in [[found]]]
    assert len(of_help) == 10
    assert of_readme == of_help


def test_every_command_in_the_readme_is_a_command_or_composes() -> None:
    import shlex

    checked = 0
    for block in examples(README, "console"):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            words = words[words.index("aeon") + 1 :] if "aeon" in words else []
            if not words or words[0] in COMMANDS or words == ["--help"]:
                continue
            words = words[: words.index(">")] if ">" in words else words
            given = [word for word in words if "=" in word and not word.startswith(("task=", "inputs", "input_files", "--"))]
            composed(*config_compose.without_sweeps([word for word in given if not word.startswith("convergence.criteria.")]))
            checked += 1
    assert checked >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_files_named_in_the_architecture_page_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text))
    assert len(named) > 50
    assert sorted(name for name in named if not (ROOT / "aeon" / name).is_file()) == []


def test_every_room_is_named_in_the_architecture_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [path.name for path in (ROOT / "aeon").iterdir() if (path / "__init__.py").is_file()]
    assert [room for room in rooms if f"{room}/" not in text] == []


@pytest.mark.parametrize(
    ("page", "number"),
    [
        pytest.param(page, number, id=f"{page.name}-{number}")
        for page in PAGES
        for number in range(len(examples(page, "python")))
    ],
)
def test_python_examples_run_with_the_simulated_provider(
    page: Path, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    code = compile(examples(page, "python")[number], f"{page.name} example {number}", "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {"__name__": "__example__"})
    assert printed.getvalue().strip()


def test_the_files_of_a_run_are_those_that_the_readme_lists(tmp_path: Path) -> None:
    from aeon import Aeon

    with Aeon.from_config(["provider=simulated"], environ={}) as aeon:
        aeon.run("name three rivers", directory=tmp_path)
    section = README.read_text(encoding="utf-8").partition("## What a run leaves behind\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `([\w./]+)` \|", section, re.MULTILINE))
    assert {path.name for path in tmp_path.iterdir()} == listed - {".hydra/"}
    assert list(read_lines(tmp_path / "events.jsonl"))


def test_the_artefacts_page_names_every_field_of_a_result_and_every_event() -> None:
    from aeon.kernel.state import ExecutionHistory, ExecutionPass
    from aeon.observability.cycle_log import CycleRecord
    from aeon.observability.serialize import event_name, event_types
    from aeon.result import RunResult

    text = (ROOT / "docs" / "artefacts.md").read_text(encoding="utf-8")
    models = (RunResult, ExecutionHistory, ExecutionPass, CycleRecord)
    names = {name for model in models for name in model.model_fields} | {event_name(kind) for kind in event_types()}
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_the_errors_page_names_every_error_that_a_run_may_tell_of() -> None:
    from aeon import errors

    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.AeonError)]
    assert sorted(name for name in kinds if f"`{name}`" not in text) == []


def test_the_convergence_page_names_every_end_and_every_reason() -> None:
    from typing import get_args

    from aeon.convergence.engine import CODES
    from aeon.kernel.state import TerminationReason
    from aeon.plan.triggers import TriggerKind

    text = (ROOT / "docs" / "convergence.md").read_text(encoding="utf-8")
    names = [*get_args(TerminationReason), *get_args(TriggerKind), *(code for codes in CODES.values() for code in codes)]
    assert [name for name in names if f"`{name}`" not in text] == []
