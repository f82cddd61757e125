"""What a template names - variables that it sets or provides for, other templates - found out as it is loaded."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template, meta, nodes


@dataclass(frozen=True, slots=True)
class Reference:
    """Templates named by literals, of which the first that exists counts, the line, and whether all may be missing."""

    names: tuple[str, ...]
    line: int
    optional: bool


@dataclass(frozen=True, slots=True)
class TemplateNames:
    """What a template names. What it sets itself (`assigned`) is seen by the templates it includes too.

    `wanted` are the variables it must be given, each with the line of its first use; those whose absence the template
    provides for, with `is defined` or `default`, are not among them. `dynamic` says that another template is named only
    at run time.
    """

    assigned: frozenset[str]
    wanted: dict[str, int]
    references: tuple[Reference, ...]
    dynamic: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """A template's text and where it is from: what tells one compilation from another, where all environments are set
    up alike."""

    text: str
    name: str
    filename: str | None
    environment: Environment = field(compare=False)


@lru_cache(maxsize=512)
def _compiled(source: _Source) -> tuple[CodeType, TemplateNames]:
    tree = source.environment.parse(source.text, source.name, source.filename)
    return source.environment.compile(tree, source.name, source.filename), names_in(tree)


class NamingLoader(FileSystemLoader):
    """Loads templates as Jinja's own loader does and keeps, by template, what each names; parsed once for both.

    A text is compiled once in a process, whatever library it is in: their environments differ in their loader alone.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        super().__init__(folders)
        self.names: dict[str, TemplateNames] = {}

    def load(self, environment: Environment, name: str, globals: MutableMapping[str, Any] | None = None) -> Template:
        """The compiled template; raises as Jinja's own loader."""
        text, filename, is_current = self.get_source(environment, name)
        code, self.names[name] = _compiled(_Source(text, name, filename, environment))
        return environment.template_class.from_code(environment, code, globals or {}, is_current)


def names_in(tree: nodes.Template) -> TemplateNames:
    """What a parsed template names."""
    parts = list(tree.find_all(nodes.Node))
    used = [part for part in parts if isinstance(part, nodes.Name)]
    wanted = meta.find_undeclared_variables(tree) - _guarded(parts)
    return TemplateNames(
        assigned=frozenset(name.name for name in used if name.ctx in ("store", "param")),
        wanted={name: next((u.lineno for u in used if u.name == name), 1) for name in sorted(wanted)},
        references=tuple(_references(parts)),
        dynamic=None in meta.find_referenced_templates(tree),
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
