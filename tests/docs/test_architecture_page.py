"""`docs/architecture.md` names the rooms and modules that there are, and `CONTRIBUTING.md` files that exist."""

import re
import tomllib
from pathlib import Path

from tests.docs.modules import module_tables, page_with

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_tables_of_modules_are_the_docstrings_of_the_modules():
    assert page_with(module_tables()) == PAGE, "run: python -m tests.docs.modules"


def test_every_module_has_a_row_with_a_docstring():
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.+) \|$", section("Module by module"), re.MULTILINE)
    modules = (path.relative_to(ROOT / "aeon").as_posix() for path in (ROOT / "aeon").rglob("*.py"))
    inner = [name for name in modules if not name.endswith("/__init__.py")]
    assert sorted(name for name, _ in rows) == sorted(inner)


def test_the_rooms_are_drawn_in_the_order_that_the_contract_holds():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    layers = [
        layer.replace("|", " ").split() for layer in contract[0]["layers"] if layer != "__main__"
    ]
    drawn = re.findall(r"```\n(.*?)```", section("The rooms"), re.DOTALL)[0]
    assert [line.split() for line in drawn.splitlines()] == layers


def test_every_room_says_what_belongs_there_and_what_does_not():
    rows = re.findall(r"^\| `(\w+)/` \| (.+) \| (.+) \|$", section("The rooms"), re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "aeon").glob("*/__init__.py")}
    assert {room for room, *_ in rows} == folders


def test_every_path_that_is_named_is_there():
    # `aeon.cassette/1` is the name of a format.
    named = re.findall(r"`(?!aeon\.\w+/\d)([\w.-]+/[\w./-]*)`", PAGE)
    assert len(named) > 200
    assert [
        path for path in named if not any((ROOT / room / path).exists() for room in ("", "aeon"))
    ] == []


def test_there_is_a_glossary():
    assert len(re.findall(r"^\| [\w -]+ \| .+ \|$", section("Glossary"), re.MULTILINE)) >= 20


def test_files_that_contributing_names_exist():
    named = re.findall(r"`((?:aeon|conf|schemas|tests|docs)/[\w/.]+)`", CONTRIBUTING)
    assert named
    assert [
        name
        for name in named
        if "NAME" not in name and "CALL" not in name and not (ROOT / name).exists()
    ] == []
