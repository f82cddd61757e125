"""The table of modules in `docs/architecture.md`: the first paragraph of each module's docstring.

After a change of modules or of their docstrings, `python -m tests.docs.modules` writes it anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "aeon"
PAGE = ROOT / "docs" / "architecture.md"
_TABLES = re.compile(r"(?<=\n## Module by module\n\n).*?(?=\nBeside `aeon/`)", re.DOTALL)


def module_tables() -> str:
    """Return a Markdown table for the package itself and for each room, in the page's order."""
    page = PAGE.read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE)
    tables = [_table(sorted(PACKAGE.glob("*.py")))]
    tables += [f"### {room}\n\n{_table(sorted((PACKAGE / room).rglob('*.py')))}" for room in rooms]
    return "\n".join(tables)


def page_with(tables: str) -> str:
    """Return the text of the page with `tables` as its tables of modules."""
    return _TABLES.sub(lambda _: tables, PAGE.read_text(encoding="utf-8"))


def _table(modules: list[Path]) -> str:
    rows = [_row(path) for path in modules if _is_listed(path)]
    return "\n".join(["| module | content |", "|---|---|", *rows, ""])


def _is_listed(path: Path) -> bool:
    return path.name != "__init__.py" or path.parent == PACKAGE


def _row(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first_paragraph = " ".join(docstring.partition("\n\n")[0].split())
    # A bar would end the cell, even between backticks.
    content = first_paragraph.replace("|", "\\|")
    return f"| `{path.relative_to(PACKAGE).as_posix()}` | {content} |"


if __name__ == "__main__":
    PAGE.write_text(page_with(module_tables()), encoding="utf-8")
