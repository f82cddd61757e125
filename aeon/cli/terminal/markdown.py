"""An answer in Markdown rendered for a terminal: no text is lost, no link hides its address."""

from __future__ import annotations

from io import StringIO
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax

from aeon.domain.result import SIMULATED_LINE
from aeon.report.words import MOST_LEVELS

_WIDEST = 100
_COLUMNS_OF_A_LEVEL = 4


def render_markdown(text: str, width: int) -> str:
    """Render the text with terminal codes for headings, tables, lists and code, at most `width`
    columns wide (and 100). The text must not hold control characters. Line breaks are preserved;
    HTML, images and link definitions, which a terminal cannot show, are left unchanged, and so is a
    text nested too deeply for the width."""
    width = min(width, _WIDEST)
    console = Console(file=StringIO(), force_terminal=True, width=width, highlight=False)
    if text.startswith(SIMULATED_LINE):
        console.print(SIMULATED_LINE, style="bold", markup=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    tokens = parser.disable(["image", "reference"]).parse(text.removeprefix(SIMULATED_LINE))
    levels = max((token.level for token in tokens), default=0)
    if levels > min(MOST_LEVELS, width // _COLUMNS_OF_A_LEVEL):
        return text
    for is_code, group in groupby(
        tokens, lambda token: token.type in ("fence", "code_block") and not token.level
    ):
        if is_code:
            for block in group:
                _print_code(console, block)
        else:
            _print_text(console, list(group))
    rendered: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip(" ") for line in rendered.splitlines())


def _print_text(console: Console, tokens: list[Token]) -> None:
    markdown = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    markdown.parsed = tokens
    for token in tokens:
        for child in token.children or ():
            # Rich would join the lines of a paragraph.
            child.type = "hardbreak" if child.type == "softbreak" else child.type
    console.print(markdown)


def _print_code(console: Console, block: Token) -> None:
    language = (block.info.split() or ["text"])[0]
    code = Syntax(block.content, language, theme="ansi_dark", background_color="default")
    # Its lines are not wrapped, so that it can be copied.
    console.print("", code.highlight(block.content), sep="\n", soft_wrap=True)
