"""What a parsed template names: variables that it sets or provides for, and other templates. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import meta, nodes


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


def names_in(tree: nodes.Template) -> TemplateNames:
    """What a parsed template names."""
    used = list(tree.find_all(nodes.Name))
    wanted = meta.find_undeclared_variables(tree) - _guarded(tree)
    return TemplateNames(
        assigned=frozenset(name.name for name in used if name.ctx in ("store", "param")),
        wanted={name: next((u.lineno for u in used if u.name == name), 1) for name in sorted(wanted)},
        references=tuple(_references(tree)),
        dynamic=None in meta.find_referenced_templates(tree),
    )


def _guarded(tree: nodes.Template) -> set[str]:
    return {
        guard.node.name
        for guard in tree.find_all((nodes.Test, nodes.Filter))
        if guard.name in ("defined", "undefined", "default", "d") and isinstance(guard.node, nodes.Name)
    }


def _references(tree: nodes.Template) -> Iterator[Reference]:
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        template: Any = getattr(node, "template", None)
        given = template.items if isinstance(template, nodes.List | nodes.Tuple) else [template]
        names = [choice.value for choice in given if isinstance(choice, nodes.Const) and isinstance(choice.value, str)]
        if len(names) == len(given):
            yield Reference(tuple(names), node.lineno, bool(getattr(node, "ignore_missing", False)))


def no_template(names: Sequence[str]) -> str:
    """The message that none of these templates is there."""
    outside = any(name.startswith("/") or ".." in name.split("/") for name in names)
    where = "; names are looked up in the folders of the prompt sets, never outside them" if outside else ""
    return f"there is no template {' or '.join(names)}{where}"
