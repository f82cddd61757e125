"""A page as one HTML file: a Jinja template, a style sheet, a script allowed by its hash, and one
island of JSON."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from aeon.llm.compiled import CompiledTemplates
from aeon.report.words import MOST_LEVELS, MOST_RENDERED, escape_controls

if TYPE_CHECKING:
    from markdown_it.token import Token

_ASSETS = Path(__file__).with_name("assets")
_AS = {
    "batch": "compare",
    "eval": "compare",
}  # which page has the script and the style of another one
_ADDRESSES = ("https:", "http:", "mailto:", "#")


def render_page(name: str, data: object, **values: Any) -> bytes:
    """Render the template `NAME.html.j2`, with `NAME.js`, `page.css` and `NAME.css`, if there is
    one, inside. `data` are JSON values for the script, `values` the template's variables, each
    escaped. The page loads nothing and sends nothing; it contains its images."""
    look = _AS.get(name, name)
    script = _asset(f"{look}.js")
    style = _asset("page.css")
    style += _asset(f"{look}.css") if (_ASSETS / f"{look}.css").is_file() else ""
    allowed = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash_of(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template(f"{name}.html.j2")
    text = template.render(
        **values, allowed=allowed, script=Markup(script), style=Markup(style), island=_island(data)
    )
    return text.encode("utf-8", "replace")


def render_part(name: str, **values: Any) -> Markup:
    """Render a part of a page from the template `NAME.html.j2`."""
    return Markup(_environment().get_template(f"{name}.html.j2").render(**values))


def _island(data: object) -> Markup:
    """Return JSON that no text in it can end: it contains no `<`. The script shows its texts, so
    controls are escaped."""
    text = json.dumps(without_controls(data), ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def without_controls(data: object) -> Any:
    """Return JSON values with the controls in their texts escaped as by `escape_controls`."""
    if isinstance(data, str):
        return escape_controls(data)
    if isinstance(data, Mapping):
        return {escape_controls(str(name)): without_controls(each) for name, each in data.items()}
    return [without_controls(each) for each in data] if isinstance(data, list | tuple) else data


@cache
def _environment() -> Environment:
    return Environment(
        bytecode_cache=CompiledTemplates(__file__),
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        finalize=_escape_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _escape_text(value: object) -> Any:
    """Escape a value for a page: controls in text; markup, which was made here, unchanged."""
    return escape_controls(value) if type(value) is str else value


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def _hash_of(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def render_markdown(text: str) -> Markup:
    """Render Markdown as HTML: HTML in it is shown as text, lines end where they end in the text,
    links lead only to web and mail addresses, and images become links. A text of more than
    MOST_RENDERED characters or MOST_LEVELS levels is shown unrendered."""
    text = escape_controls(text)
    if len(text) > MOST_RENDERED:
        return Markup("<pre>{}</pre>").format(text)
    from markdown_it import MarkdownIt  # for answers alone

    parser = (
        MarkdownIt("commonmark", {"html": False, "breaks": True})
        .enable(["strikethrough", "table"])
        .disable("image")
    )
    parser.validateLink = lambda url: url.lower().startswith(_ADDRESSES)  # type: ignore[method-assign]
    tokens = parser.parse(text)
    if max((token.level for token in tokens), default=0) > MOST_LEVELS:
        return Markup("<pre>{}</pre>").format(text)
    _place_headings(tokens)
    html: str = parser.renderer.render(tokens, parser.options, {})
    # Text has no `<` any more. A table can be scrolled sideways, so it must take the keyboard.
    return Markup(
        html.replace("<a href", '<a rel="noopener noreferrer" href').replace(
            "<table", '<table tabindex="0"'
        )
    )


def _place_headings(tokens: Sequence[Token]) -> None:
    """Put headings under an `h2` of the page, none more than one level below the one above it."""
    above: list[str] = []
    for token in tokens:
        if token.type == "heading_open":
            above = [*(tag for tag in above if tag < token.tag), token.tag]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, 2 + len(above))}"
