"""An answer in Markdown rendered for a terminal: no text is lost, no link hides its address."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax

from aeon.domain.result import SIMULATED_LINE

_WIDEST = 100
_CODE = ("fence", "code_block")


def render_markdown(text: str, width: int) -> str:
    """The text with the terminal's codes for headings, tables, lists and code, at most `width` columns wide (and 100).

    The text must not hold control characters. Line breaks stay where they are; HTML, images and definitions of links,
    which a terminal cannot show, stay as they are written.
    """
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=min(width, _WIDEST), highlight=False)
    if text.startswith(SIMULATED_LINE):
        console.print(SIMULATED_LINE, style="bold", markup=False)
    for is_code, tokens in groupby(_parse(text.removeprefix(SIMULATED_LINE)), _is_code):
        if is_code:
            _print_code(console, list(tokens))
        else:
            console.print(_prose(list(tokens)))
    return "\n".join(line.rstrip(" ") for line in file.getvalue().splitlines())


def _parse(text: str) -> Sequence[Token]:
    """The tokens of a text; every line break within a paragraph is kept."""
    parser = (
        MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])
    )
    tokens = parser.parse(text)
    for token in tokens:
        for child in token.children or ():
            child.type = "hardbreak" if child.type == "softbreak" else child.type
    return tokens


def _is_code(token: Token) -> bool:
    """Whether a token is code at the margin; code in lists and quotes keeps their indentation."""
    return token.type in _CODE and not token.level


def _prose(tokens: list[Token]) -> Markdown:
    markdown = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    markdown.parsed = tokens
    return markdown


def _print_code(console: Console, blocks: Sequence[Token]) -> None:
    """Code at the margin, its lines not wrapped, so that it can be copied."""
    for block in blocks:
        language = (block.info.split() or ["text"])[0]
        code = Syntax(block.content, language, theme="ansi_dark", background_color="default")
        console.print()
        console.print(code.highlight(block.content.rstrip("\n")), soft_wrap=True)
        console.print()
