"""What a template names: variables and other templates, found while the template is compiled."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import StringIO
from types import CodeType
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template, meta, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.idtracking import VAR_LOAD_RESOLVE


@dataclass(frozen=True, slots=True)
class Reference:
    """Templates named by literals, of which the first that exists counts, the line, and whether all may be missing."""

    names: tuple[str, ...]
    line: int
    is_optional: bool


@dataclass(frozen=True, slots=True)
class TemplateNames:
    """What a template names: variables that it sets, which the templates it includes see too; variables that it must
    be given, each with the line of its first use; other templates; and whether one is named only at run time.

    A variable whose absence the template provides for, with `is defined` or `default`, need not be given.
    """

    assigned: frozenset[str]
    required: dict[str, int]
    references: tuple[Reference, ...]
    is_dynamic: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """A template's text and its file; environments are not compared, as all are set up alike."""

    text: str
    name: str
    filename: str | None
    environment: Environment = field(compare=False)


class _Generator(CodeGenerator):
    """Generates a template's code and notes the variables that it must be given, in one pass over the template."""

    def __init__(self, environment: Environment, name: str, filename: str | None) -> None:
        self.source = StringIO()
        super().__init__(environment, name, filename, self.source, optimized=environment.optimized)
        self.undeclared: set[str] = set()

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        for action, name in frame.symbols.loads.values():
            if action == VAR_LOAD_RESOLVE and name is not None and name not in self.environment.globals:
                self.undeclared.add(name)


@lru_cache(maxsize=512)
def _compile(source: _Source) -> tuple[CodeType, TemplateNames]:
    tree = source.environment.parse(source.text, source.name, source.filename)
    parts, is_dynamic = list(tree.find_all(nodes.Node)), None in meta.find_referenced_templates(tree)
    generator = _Generator(source.environment, source.name, source.filename)
    generator.visit(tree)
    code = compile(generator.source.getvalue(), source.filename or source.name, "exec")
    return code, _names_in(parts, generator.undeclared, is_dynamic=is_dynamic)


class NamingLoader(FileSystemLoader):
    """Loads templates as Jinja's own loader does and keeps, by template, what each names.

    A text is compiled once in a process, whatever library it is in: their environments differ in their loader alone.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        super().__init__(folders)
        self.names: dict[str, TemplateNames] = {}

    def load(self, environment: Environment, name: str, globals: MutableMapping[str, Any] | None = None) -> Template:
        """The compiled template; raises as Jinja's own loader."""
        text, filename, is_current = self.get_source(environment, name)
        code, self.names[name] = _compile(_Source(text, name, filename, environment))
        return environment.template_class.from_code(environment, code, globals or {}, is_current)


def _names_in(parts: Sequence[nodes.Node], undeclared: set[str], *, is_dynamic: bool) -> TemplateNames:
    used = [part for part in parts if isinstance(part, nodes.Name)]
    return TemplateNames(
        assigned=frozenset(name.name for name in used if name.ctx in ("store", "param")),
        required={
            name: next((u.lineno for u in used if u.name == name), 1) for name in sorted(undeclared - _guarded(parts))
        },
        references=tuple(_references(parts)),
        is_dynamic=is_dynamic,
    )


def _guarded(parts: Sequence[nodes.Node]) -> set[str]:
    return {
        part.node.name
        for part in parts
        if isinstance(part, nodes.Test | nodes.Filter)
        and part.name in ("defined", "undefined", "default", "d")
        and isinstance(part.node, nodes.Name)
    }


def _references(parts: Sequence[nodes.Node]) -> Iterator[Reference]:
    for part in parts:
        if not isinstance(part, nodes.Include | nodes.Import | nodes.FromImport | nodes.Extends):
            continue
        template: Any = part.template
        given = template.items if isinstance(template, nodes.List | nodes.Tuple) else [template]
        names = [choice.value for choice in given if isinstance(choice, nodes.Const) and isinstance(choice.value, str)]
        if len(names) == len(given):
            yield Reference(tuple(names), part.lineno, bool(getattr(part, "ignore_missing", False)))


def no_template(names: Sequence[str]) -> str:
    """The message that none of these templates is there."""
    outside = any(name.startswith("/") or ".." in name.split("/") for name in names)
    where = "; names are looked up in the folders of the prompt sets, never outside them" if outside else ""
    return f"there is no template {' or '.join(names)}{where}"
