"""What the pages say, held to the program."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from omegaconf import OmegaConf

from aeon import Aeon
from aeon.app.job import resolve_job
from aeon.app.process import build_process
from aeon.app.rehearsal import try_templates
from aeon.cli.main import main
from aeon.cli.syntax.commands import find_command, make_parser, quote_task
from aeon.config.compose import compose as config_compose
from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.compose.literal import Composition, quote_override
from aeon.config.compose.reference import entries_of, top_entries
from aeon.config.load import compose as compose_job
from aeon.config.load import compose_settings
from aeon.domain import errors
from aeon.domain.assessment import SCORE_CODES
from aeon.domain.history import ExecutionHistory, ExecutionPass, TerminationReason
from aeon.domain.request import CallName, Role
from aeon.domain.result import RunResult
from aeon.llm.prompts import PromptLibrary
from aeon.observability.cycle_log import CycleRecord
from aeon.observability.event_log import event_name, event_types
from aeon.plan.triggers import TriggerKind
from aeon.report.patterns import Patterns
from tests.cli.conftest import logging_restored

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide.md"
CONFIGURATION = ROOT / "docs" / "configuration.md"
PAGES = sorted([README, *(ROOT / "docs").rglob("*.md")])
PROMPTS = ROOT / "docs" / "prompts.md"
RUN_BY_THE_TESTS = (GUIDE, ROOT / "docs" / "artefacts.md", ROOT / "docs" / "python.md")
HEADING = re.compile(r"^#+ .*?`(?P<override>[a-z_]+=\w+)`\s*$")
ROW = re.compile(r"^\| `(?P<key>[a-z_.*]+)` \| `(?P<default>[^`]*)` \|")
FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)#\s]*)(?:#(?P<heading>[^)]*))?\)")
GIVEN = "What each call is given, and what is asked back"
TAUGHT = "What runs answered by hand have taught"
KEY_TABLE = "| key | default | meaning |"


def section(page: Path, heading: str) -> str:
    return page.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]


def quoted(overrides: Iterable[str]) -> Composition:
    return Composition(overrides=tuple(map(quote_override, overrides)))


@cache
def composed(*overrides: str) -> dict[str, Any]:
    values = OmegaConf.to_container(config_compose.compose(quoted(overrides)).values, resolve=True)
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
    found, override, of_keys = [], "", False
    for line in CONFIGURATION.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = HEADING.match(line)
            override = heading["override"] if heading else ""
        of_keys = line.startswith("|") and (of_keys or line == KEY_TABLE)
        row = ROW.match(line) if of_keys else None
        if row:
            found.append((override, row["key"], row["default"]))
    return found


def at(values: dict[str, Any], key: str) -> list[Any]:
    """The values of a key; `*` stands for every name."""
    here: list[Any] = [values]
    for part in key.split("."):
        here = [inner for value in here for name, inner in value.items() if part in ("*", name)]
    return here


def examples(page: Path, language: str) -> list[str]:
    blocks = FENCED.finditer(page.read_text(encoding="utf-8"))
    return [block["code"] for block in blocks if block["language"] == language]


@pytest.mark.parametrize(("override", "key", "default"), rows())
def test_a_documented_key_exists_with_the_documented_default(
    override: str, key: str, default: str
) -> None:
    found = at(composed(*([override] if override else [])), key)
    assert found
    assert all(value == yaml.safe_load(default) for value in found)


def marked_keys() -> set[str]:
    """The keys that the packaged files mark `(basic)`."""
    groups = [folder.name for folder in packaged_config_dir().iterdir() if folder.is_dir()]
    entries = [*top_entries(), *(entry for group in groups for entry in entries_of(group))]
    return {entry.path for entry in entries if entry.is_basic}


def test_the_keys_that_are_marked_basic_stand_first() -> None:
    text = section(CONFIGURATION, "The basic keys")
    table = [row for line in text.splitlines() if (row := ROW.match(line))]
    listed = [row["key"] for row in table]
    assert [key for _, key, _ in rows()][: len(listed)] == listed
    assert set(listed) == marked_keys()
    assert 20 <= len(listed) <= 30


def test_a_basic_key_reads_as_it_does_among_the_others() -> None:
    basic = [
        line for line in section(CONFIGURATION, "The basic keys").splitlines() if ROW.match(line)
    ]
    everything = CONFIGURATION.read_text(encoding="utf-8").splitlines()
    once = [line for line in basic if everything.count(line) == 1]
    assert [ROW.match(line)["key"] for line in once] == ["roles.grader.model"]


def compositions() -> Iterator[list[str]]:
    """Every option of every group at least once: as many groups at a time as do not choose for each other."""
    groups = {
        folder.name: [f"{folder.name}={option.stem}" for option in sorted(folder.glob("*.yaml"))]
        for folder in sorted(packaged_config_dir().iterdir())
        if folder.is_dir() and folder.name not in ("hydra", "sweep")
    }
    for name in ("env", "experiment", "mode"):
        yield from ([option] for option in groups.pop(name))
    for options in zip_longest(*groups.values()):
        yield [option for option in options if option is not None]


@pytest.mark.slow
def test_every_key_of_every_option_is_documented() -> None:
    documented = [re.escape(key).replace(r"\*", "[^.]+") for _, key, _ in rows()]
    known = re.compile(rf"(?:{'|'.join(documented)})(?:\..*)?")
    keys = {key for options in compositions() for key, _ in leaves(composed(*options))}
    assert keys
    assert not {key for key in keys if not known.fullmatch(key)}


def is_preset(option: Path) -> bool:
    """Whether it is a provider's preset, which explains itself: one file is all that it takes."""
    return option.parent.name == "provider" and "openai" in yaml.safe_load(option.read_text()).get(
        "defaults", ()
    )


def test_every_group_and_option_is_named_in_the_configuration_page() -> None:
    text = CONFIGURATION.read_text(encoding="utf-8")
    for folder in packaged_config_dir().iterdir():
        if not folder.is_dir() or folder.name == "hydra":
            continue
        names = [
            folder.name,
            *(option.stem for option in folder.glob("*.yaml") if not is_preset(option)),
        ]
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("env", ["dev", "prod", "ci"])
def test_the_table_of_environments_is_what_they_choose(env: str) -> None:
    text = CONFIGURATION.read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \| `(\w+)` \|$", text, re.MULTILINE)
    said = {
        group: dict(zip(("dev", "prod", "ci"), options, strict=True))[env]
        for group, *options in table
    }
    cfg = config_compose.compose(quoted([f"env={env}"]), with_hydra=True).values
    assert set(said) == {"provider", "limits", "ttl", "progress"}
    assert {group: cfg.hydra.runtime.choices[group] for group in said} == said


def test_the_guide_names_the_ten_overrides_of_the_help() -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(["--help"]) == 0
    of_help = shown.getvalue().partition("The ten overrides that matter\n")[2].partition("\n\n")[0]
    named = [line.split()[0] for line in of_help.splitlines() if line[2:3].strip()]
    assert len(named) == 10
    assert (
        re.findall(
            r"^\| `([\w.]+=[^`]*)` \|", section(GUIDE, "The overrides that matter"), re.MULTILINE
        )
        == named
    )


def commands(page: Path) -> list[list[str]]:
    """The arguments of every `aeon` in a page's examples, without what the shell takes away."""
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    lines = re.findall(r"^(?:\$ | {4}|(?=(?:python -m )?aeon ))(.*\baeon\b.*)$", text, re.MULTILINE)
    words = [shlex.split(re.split(r" [>|] ", line)[0], comments=True) for line in lines]
    return [line[line.index("aeon") + 1 :] for line in words if "aeon" in line and "=" not in line]


@pytest.mark.parametrize(
    "words", [words for page in PAGES for words in commands(page)], ids=" ".join
)
def test_a_command_of_the_pages_is_one_that_the_program_takes(words: list[str]) -> None:
    command = find_command(words)
    rest = words[len(command.split()) :]
    if command == "ask":
        rest = quote_task(rest)
    flags = [word for word in rest if word.startswith("--")]
    if {"--help", "--version"} & {*flags}:
        return
    given = make_parser(command).parse(rest)
    overrides = [text for text in getattr(given, "overrides", []) if not is_own(text, words)]
    assert command or flags or overrides
    assert not getattr(given, "bare", [])
    for each in jobs(overrides):
        compose_settings(Composition(overrides=each))


def jobs(overrides: list[str]) -> Iterator[tuple[str, ...]]:
    """The overrides with the first value of each that is swept over, then with the second, and so on."""
    read = [config_compose.parse(text) for text in quoted(overrides).overrides]
    values = {
        sweep.get_key_element(): [
            f"{sweep.get_key_element()}={value}" for value in sweep.sweep_string_iterator()
        ]
        for sweep in read
        if sweep.is_choice_sweep()
    }
    single = [one.input_line or "" for one in read if not one.is_sweep_override()]
    for number in range(max(map(len, values.values()), default=1)):
        yield (*single, *(texts[number % len(texts)] for texts in values.values()))


def is_own(word: str, words: list[str]) -> bool:
    """Whether a word is none of the configuration that is here: a file of the reader, what an option of Hydra that is an
    extra takes, or an option of a group that may be the reader's."""
    name = word.partition("=")[0]
    if name in ("answer.schema", "convergence.criteria_file"):
        return not Path(word.partition("=")[2]).exists()
    if name.startswith("hydra"):
        return any(other.startswith("hydra/") for other in words)
    return "--config-dir" in words and (
        name.startswith("+") or (packaged_config_dir() / name).is_dir()
    )


def test_files_of_examples_that_the_pages_name_are_there() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"\bexamples/[\w./-]+\w", text))
    assert "examples/kubernetes/shards.yaml" in named
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


@pytest.mark.slow
def test_the_commands_of_the_batch_page_do_what_it_says(tmp_path: Path) -> None:
    script = "\n".join(["set -e", *examples(ROOT / "docs" / "batch.md", "bash")])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    with (tmp_path / "results.csv").open(newline="", encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["rivers", "lakes"]
    assert len((tmp_path / "all.jsonl").read_bytes().splitlines()) == 2
    assert (tmp_path / "results.jsonl.html").is_file()


@pytest.mark.slow
def test_the_sweep_of_the_sweeps_page_is_what_its_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (tmp_path / "my" / "sweep").mkdir(parents=True)
    shutil.copytree(ROOT / "prompts" / "default", tmp_path / "my" / "prompts" / "default")
    shutil.copytree(ROOT / "prompts" / "default", tmp_path / "my" / "prompts" / "terse")
    written = re.search(r"`my/sweep/prompts\.yaml`:\n\n((?: {4}.*\n)+)", text)
    assert written
    (tmp_path / "my" / "sweep" / "prompts.yaml").write_text(
        textwrap.dedent(written[1]), encoding="utf-8"
    )
    (command,) = [
        words for words in commands(ROOT / "docs" / "sweeps.md") if "sweep=prompts" in words
    ]
    monkeypatch.chdir(tmp_path)
    here = ("prompts.dir=my/prompts", "provider=simulated", "progress=none", "hydra.sweep.dir=done")
    with logging_restored():
        assert main([*command, *here]) == 0
    with (tmp_path / "done" / "summary.csv").open(newline="", encoding="utf-8") as file:
        told = [
            (row["prompts.set"], row["convergence.completeness"]) for row in csv.DictReader(file)
        ]
    assert told == [("default", "0.8"), ("default", "0.9"), ("terse", "0.8"), ("terse", "0.9")]


def test_the_prompts_page_names_every_call_with_its_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: dict[str, set[str]] = {}

    def noted(_: PromptLibrary, contexts: dict[str, dict[str, Any]]) -> None:
        for call, variables in contexts.items():
            used.setdefault(call, set()).update(variables)

    monkeypatch.setattr(PromptLibrary, "check", noted)
    try_templates(build_process(resolve_job(compose_job(["provider=simulated"]), {}), {}))
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section(PROMPTS, "Variables"), re.MULTILINE)
    told = {call: set(re.findall(r"`(\w+)`", variables)) for call, variables in rows}
    assert set(told) == set(used) == set(get_args(CallName))
    assert told == {
        call: names - {"inputs", "step_tools", "lists_tools"} for call, names in used.items()
    }


def test_the_prompts_page_says_what_each_call_is_made_as_and_names_every_partial_and_filter() -> (
    None
):
    text = PROMPTS.read_text(encoding="utf-8")
    given = re.findall(r"^\| `(\w+)` \| (\w+) \|", section(PROMPTS, GIVEN), re.MULTILINE)
    assert {call for call, _ in given} == set(get_args(CallName))
    assert {role for _, role in given} == set(get_args(Role))
    partials = {path.name for path in (ROOT / "prompts" / "default").glob("_*.j2")}
    rows = re.findall(r"^\| (`_\w+\.j2`.*?) \|", text, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+\.j2)`", row)} == partials
    assert set(re.findall(r"^\| `(\w+)` \|", section(PROMPTS, "Filters"), re.MULTILINE)) == {
        "fence",
        "json",
        "json_lines",
    }


def test_the_totals_of_the_prompts_page_are_the_sums_of_their_columns() -> None:
    tables = re.findall(
        r"((?:^\| [a-z_]+ (?:\| \d+ )+\|\n)+)", section(PROMPTS, TAUGHT), re.MULTILINE
    )
    assert len(tables) == 3
    for table in tables:
        *calls, total = [
            [int(number) for number in re.findall(r"\b\d+\b", line)] for line in table.splitlines()
        ]
        assert [sum(column) for column in zip(*calls, strict=True)] == total


def test_the_runs_of_the_prompts_page_are_the_sums_of_their_calls() -> None:
    lines = section(PROMPTS, TAUGHT).partition("### Second round\n")[2].splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("| ")
    ]
    told = {
        row[0][0]: [int(number) for number in row[2:]]
        for row in cells
        if re.match(r"[A-D]: ", row[0])
    }
    calls = [row for row in cells if any("→" in cell for cell in row)]
    for run, name in enumerate("ABCD", start=3):
        sent = [
            (row, pair.partition("→")) for row in calls for pair in row[run].split(", ") if pair
        ]
        sizes = [
            (1, int(row[1]), int(user), int(row[2]), int(answer)) for row, (user, _, answer) in sent
        ]
        assert [sum(column) for column in zip(*sizes, strict=True)] == told[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        if "://" in link["target"]:
            continue
        target = page.parent / link["target"] if link["target"] else page
        assert target.exists(), link["target"]
        assert not link["heading"] or link["heading"] in anchors(target), link[0]


def anchors(page: Path) -> set[str]:
    """What the headings of a page are linked to as."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_decisions_are_numbered_one_after_another() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = [int(page.name.partition("-")[0]) for page in pages]
    assert numbers == sorted(set(numbers))
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in pages]
    assert [title.partition(".")[0] for title in titles] == [f"# {number}" for number in numbers]


def test_files_named_in_the_architecture_page_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text))
    assert len(named) > 50
    # A bare name may stand for the file of that name in every room.
    assert (
        sorted(
            name
            for name in named
            if not any((ROOT / "aeon").glob(name if "/" in name else f"**/{name}"))
        )
        == []
    )


def test_every_room_is_named_in_the_architecture_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [path.name for path in (ROOT / "aeon").iterdir() if (path / "__init__.py").is_file()]
    assert [room for room in rooms if f"{room}/" not in text] == []


def python_examples(*pages: Path) -> list[Any]:
    return [
        pytest.param(f"{page.name} example {number}", code, id=f"{page.stem}-{number}")
        for page in pages
        for number, code in enumerate(examples(page, "python"), start=1)
    ]


@pytest.mark.parametrize(("name", "code"), python_examples(*PAGES))
def test_a_python_example_compiles(name: str, code: str) -> None:
    assert compile(code, name, "exec")


@pytest.mark.parametrize(("name", "code"), python_examples(*RUN_BY_THE_TESTS))
def test_a_python_example_runs(
    name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), {"__name__": "example"})
    assert printed.getvalue().strip()


def test_the_adapter_of_the_python_page_is_taken_by_the_command_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = next(
        text for text in examples(ROOT / "docs" / "python.md", "python") if "class MyModel" in text
    )
    (tmp_path / "my_models.py").write_text(code.partition("with Aeon")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    chosen = [
        "provider=custom",
        "provider.adapter=my_models:MyModel",
        "provider.options.seed=2",
        "provider.model=mine",
    ]
    with Aeon.from_config(["mode=core", *chosen], environ={}) as aeon:
        assert set(aeon.run("plan a move").usage.by_model) == {"mine"}
    del sys.modules["my_models"]


def test_the_files_of_a_run_are_those_that_the_guide_lists(tmp_path: Path) -> None:
    with Aeon.from_config(["provider=simulated"], environ={}) as aeon:
        aeon.run("name three rivers", directory=tmp_path)
    listed = set(
        re.findall(r"^\| `([\w./]+)` \|", section(GUIDE, "What a run leaves behind"), re.MULTILINE)
    )
    assert {path.name for path in tmp_path.iterdir()} == listed - {".hydra/"}


def unnamed(page: str, names: set[str]) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return sorted(name for name in names if f"`{name}`" not in text)


def test_the_artefacts_page_names_every_field_and_every_event() -> None:
    models = (RunResult, ExecutionHistory, ExecutionPass, CycleRecord)
    fields = {name for model in (*models, Patterns) for name in model.model_fields}
    assert unnamed("artefacts.md", fields | {event_name(kind) for kind in event_types()}) == []


def test_the_errors_page_names_every_error() -> None:
    kinds = (kind for kind in vars(errors).values() if isinstance(kind, type))
    assert (
        unnamed(
            "errors.md", {kind.__name__ for kind in kinds if issubclass(kind, errors.AeonError)}
        )
        == []
    )


def test_the_convergence_page_names_every_end_every_trigger_and_every_reason() -> None:
    codes = {code for pair in SCORE_CODES.values() for code in pair}
    reasons = {reason for kind in get_args(TerminationReason) for reason in get_args(kind)}
    assert unnamed("convergence.md", {*reasons, *get_args(TriggerKind), *codes}) == []


ROOMS = frozenset(path.name for path in (ROOT / "aeon").iterdir() if path.is_dir())
MODULE_NAMES = [
    pytest.param(page, name, id=f"{page.name}-{name}")
    for page in PAGES
    for name in sorted(set(re.findall(r"\baeon(?:\.[A-Za-z_]\w*)+", page.read_text())))
    if name.split(".")[1] in ROOMS and not name.endswith(".json")
]


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found: object = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.parametrize(("page", "name"), MODULE_NAMES)
def test_modules_and_names_that_pages_mention_are_there(page: Path, name: str) -> None:
    assert is_there(name)


def test_a_module_that_is_not_there_is_noticed() -> None:
    assert is_there("aeon.tools.registry.ApprovalRequest")
    assert not is_there("aeon.tools.approval.ApprovalRequest")
    assert not is_there("aeon.tools.registry.Nothing")
