"""What a parsed template names: variables that it sets or provides for, and other templates. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jinja2 import nodes


def assigned(tree: nodes.Template) -> set[str]:
    """Names a template sets itself; what it includes sees them."""
    return {node.name for node in tree.find_all(nodes.Name) if node.ctx in ("store", "param")}


def guarded(tree: nodes.Template) -> set[str]:
    """Names whose absence the template itself provides for, with `is defined` or `default`."""
    guards = [*tree.find_all(nodes.Test), *tree.find_all(nodes.Filter)]
    return {
        guard.node.name
        for guard in guards
        if guard.name in ("defined", "undefined", "default", "d") and isinstance(guard.node, nodes.Name)
    }


def references(tree: nodes.Template) -> Iterator[tuple[list[str], int, bool]]:
    """Templates named by literals: the names, of which the first that exists counts, the line, whether all may be
    missing."""
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        template: Any = getattr(node, "template", None)
        given = template.items if isinstance(template, nodes.List | nodes.Tuple) else [template]
        names = [choice.value for choice in given if isinstance(choice, nodes.Const) and isinstance(choice.value, str)]
        if len(names) == len(given):
            yield names, node.lineno, bool(getattr(node, "ignore_missing", False))


def no_template(names: Sequence[str]) -> str:
    """The message that none of these templates is there."""
    outside = any(name.startswith("/") or ".." in name.split("/") for name in names)
    where = "; names are looked up in the folders of the prompt sets, never outside them" if outside else ""
    return f"there is no template {' or '.join(names)}{where}"
