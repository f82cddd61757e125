"""What the shape of the code promises."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import io
import pkgutil
import subprocess
import sys
import tokenize
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import aeon

ROOT = Path(aeon.__file__).parent
KERNEL_FILES = tuple(sorted((ROOT / "kernel").rglob("*.py")))
BELOW_THE_SURFACE = (
    "aeon.kernel.orchestrator",
    "aeon.kernel.executor",
    "aeon.plan.recursive",
    "aeon.adaptive.heuristics",
    "aeon.validation.semantic",
    "aeon.convergence.engine",
    "aeon.refinement.refiner",
)
VALUES = (
    "aeon.domain.values",
    "aeon.domain.errors",
    "aeon.domain.request",
    "aeon.domain.plan",
    "aeon.domain.graph",
    "aeon.plan.deltas",
    "aeon.plan.transitions",
    "aeon.domain.report",
    "aeon.plan.structural",
    "aeon.domain.assessment",
    "aeon.domain.profile",
    "aeon.domain.refinement",
    "aeon.domain.history",
    "aeon.kernel.settings",
    "aeon.memory.interface",
)


def modules() -> list[str]:
    found = pkgutil.walk_packages([str(ROOT)], "aeon.", onerror=lambda name: None)
    return sorted(module.name for module in found if module.name != "aeon.__main__")


@functools.cache
def loaded_by(*names: str) -> frozenset[str]:
    """The modules that a fresh interpreter has loaded after importing these."""
    code = f"import sys; import {', '.join(names)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    return frozenset(done.stdout.split())


def roots(names: frozenset[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def code_lines(path: Path) -> int:
    """Lines of code: blank lines, comments and docstrings aside."""
    text = path.read_text(encoding="utf-8")
    code = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in code:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_the_code_of_the_kernel_is_read_in_one_sitting():
    lines = {path.name: code_lines(path) for path in KERNEL_FILES}
    assert sum(lines.values()) < 800, lines


@pytest.mark.parametrize(
    "vendor", ["hydra", "omegaconf", "openai", "rich", "mcp", "yaml", "dotenv", "httpx", "httpx2"]
)
def test_nothing_of_a_vendor_or_of_the_command_line_is_imported_with_the_engine(vendor: str):
    assert vendor not in roots(loaded_by(*BELOW_THE_SURFACE))


@pytest.mark.parametrize("path", KERNEL_FILES, ids=lambda path: path.stem)
def test_the_kernel_names_neither_hydra_nor_jinja_nor_openai(path: Path):
    source = path.read_text(encoding="utf-8")
    imports = [
        line for line in source.splitlines() if line.lstrip().startswith(("import ", "from "))
    ]
    assert not [
        line
        for line in imports
        if any(vendor in line for vendor in ("hydra", "omegaconf", "jinja2", "openai"))
    ]


def test_values_know_no_vendor_no_template_and_no_configuration():
    assert roots(loaded_by(*VALUES)).isdisjoint(
        {"hydra", "omegaconf", "jinja2", "openai", "jsonschema", "rich", "mcp"}
    )


def test_importing_aeon_is_cheap():
    assert roots(loaded_by("aeon")).isdisjoint(
        {"hydra", "omegaconf", "jinja2", "openai", "pydantic", "mcp", "rich"}
    )


def test_every_exported_name_is_there():
    assert len(set(aeon.__all__)) == len(aeon.__all__)
    assert all(callable(getattr(aeon, name)) for name in aeon.__all__)
    assert {"Aeon", "RunResult", "AeonError", "ConfigError", "LLMError"} <= set(aeon.__all__)


def test_a_name_that_is_not_exported_is_not_there():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        aeon.nothing_of_the_kind  # noqa: B018


def test_subpackages_import_nothing_of_themselves():
    publishing = ROOT / "checks" / "__init__.py"  # what a person's own checks import
    for path in set(ROOT.glob("*/**/__init__.py")) - {publishing}:
        assert path.read_text(encoding="utf-8").strip() == "", path


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "py.typed").is_file()


@pytest.mark.parametrize("name", ["adaptive", "convergence", "validation", "plan"])
def test_components_import_neither_the_kernels_loop_nor_each_other(name: str):
    main = {
        "adaptive": "aeon.adaptive.heuristics",
        "convergence": "aeon.convergence.engine",
        "validation": "aeon.validation.semantic",
        "plan": "aeon.plan.recursive",
    }
    loaded = loaded_by(main[name])
    others = {module for room, module in main.items() if room != name}
    assert loaded.isdisjoint(
        {
            "aeon.kernel.orchestrator",
            "aeon.kernel.executor",
            "aeon.app.aeon",
            "aeon.app.wiring",
            *others,
        }
    )


@pytest.mark.parametrize("module", ["aeon.app.aeon", "aeon.config.settings", "aeon.cli.main"])
def test_a_vendors_sdk_is_only_loaded_for_a_call(module: str):
    assert roots(loaded_by(module)).isdisjoint({"openai", "mcp"})


def own(module: ModuleType) -> list[tuple[str, object]]:
    """The public classes and functions that a module defines."""
    return [
        (name, thing)
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    ]


@pytest.mark.parametrize("name", BELOW_THE_SURFACE + VALUES)
def test_everything_public_of_the_engine_says_what_it_is(name: str):
    module = importlib.import_module(name)
    assert module.__doc__
    for thing_name, thing in own(module):
        assert thing.__doc__, thing_name
        for method_name, method in vars(thing).items() if inspect.isclass(thing) else ():
            if inspect.isfunction(method) and not method_name.startswith("_"):
                assert method.__doc__, f"{thing_name}.{method_name}"


def test_every_module_can_be_found_and_none_shadows_another():
    names = modules()
    assert "aeon.kernel.orchestrator" in names
    assert len(names) == len(set(names))
    assert all(importlib.util.find_spec(name) for name in names)


RE_EXPORTS = ("aeon.plan.models", "aeon.kernel.state", "aeon.llm.interface")
MOST_FILES = 15


def folder_imports() -> dict[str, set[str]]:
    """The folders of the package, each with the folders whose modules its own modules import."""
    folders: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        here = ".".join(("aeon", *path.relative_to(ROOT).parent.parts))
        found = folders.setdefault(here, set())
        for name in imported_modules(path):
            there = (
                name if (ROOT / Path(*name.split(".")[1:])).is_dir() else name.rpartition(".")[0]
            )
            if there not in (here, "aeon"):
                found.add(there)
    return folders


def imported_modules(path: Path) -> list[str]:
    """The modules of the package that a file imports, anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [resolved_import(node.module, alias.name) for alias in node.names]
    return [name for name in found if name.startswith("aeon.")]


def resolved_import(module: str, name: str) -> str:
    """`from module import name` as the module that it loads."""
    inner = ROOT.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if inner.is_dir() or inner.with_suffix(".py").is_file() else module


def test_no_folder_imports_itself_through_others():
    TopologicalSorter(folder_imports()).prepare()


def test_no_module_imports_itself_through_others():
    modules = {
        ".".join(("aeon", *path.relative_to(ROOT).with_suffix("").parts)): set(
            imported_modules(path)
        )
        for path in ROOT.rglob("*.py")
    }
    TopologicalSorter(modules).prepare()


def test_no_folder_is_crowded():
    counts = {folder: len(list(folder.glob("*.py"))) for folder in [ROOT, *ROOT.rglob("*/")]}
    assert {folder.name: count for folder, count in counts.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("name", RE_EXPORTS)
def test_a_module_path_that_others_hold_on_to_re_exports_and_nothing_else(name: str):
    tree = ast.parse(
        ROOT.parent.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    )
    docstring, *imports = tree.body
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(node, ast.ImportFrom) for node in imports)


def test_one_module_alone_imports_what_hydra_and_omegaconf_keep_private():
    importing = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for name in vendor_imports(path)
        if name.startswith(("hydra._internal", "omegaconf._"))
    }
    assert importing == {"config/compose/hydra_private.py"}


def vendor_imports(path: Path) -> list[str]:
    """What a file imports, anywhere in it, each with the name that it takes."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found
