"""The list of decisions: in the repository the folder itself, on the site a page made of their titles."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDER = "docs/decisions"
LIST = "README.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    lines = ["# Decisions", "", "Why things are as they are, a page for each decision.", ""]
    for path in sorted(Path(config.docs_dir, FOLDER).glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    files.append(File.generated(config, f"{FOLDER}/{LIST}", content="\n".join(lines)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Have links to the folder lead to the page."""
    return markdown.replace("decisions/)", f"decisions/{LIST})")
