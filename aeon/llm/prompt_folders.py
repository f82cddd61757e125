"""Which folders the templates of a prompt set are looked for in, a person's own before the packaged ones."""

from __future__ import annotations

from pathlib import Path

from aeon.domain.errors import PromptError
from aeon.files.resources import find_meant, resource_root


def prompt_folders(directory: Path | None, prompt_set: str) -> tuple[Path, ...]:
    """The folders to look for templates in, first to last.

    Raises PromptError when a person's own folder is missing, holds no set, or neither the chosen set nor `default`.
    """
    if directory is not None and not directory.is_dir():
        raise PromptError(f"there is no prompts folder {directory}", hint="Set prompts.dir to a folder of prompt sets.")
    if directory is not None and not _sets(directory):
        raise _no_sets(directory)
    roots = [root for root in (directory, resource_root() / "prompts") if root is not None]
    sets = sorted({path.name for root in roots if root.is_dir() for path in root.iterdir() if path.is_dir()})
    if prompt_set not in sets and prompt_set != "default":
        raise PromptError(f"there is no prompt set {prompt_set!r}; there are: {', '.join(sets)}")
    if directory is not None and not {prompt_set, "default"} & set(own := _sets(directory)):
        raise PromptError(
            f"prompts.dir={directory}: it has no prompt set {prompt_set!r}, so nothing of it would be used",
            hint=f"Choose one that it has: prompts.set={own[0]}.",
        )
    candidates = dict.fromkeys((root / name) for root in roots for name in (prompt_set, "default"))
    return tuple(folder for folder in candidates if folder.is_dir())


def _sets(folder: Path) -> list[str]:
    """The prompt sets in a folder: its folders that hold templates."""
    return sorted({template.parent.name for template in folder.glob("*/*.j2")})


def _no_sets(directory: Path) -> PromptError:
    meant = find_meant(directory, "prompts", lambda place: bool(_sets(place)))
    return PromptError(
        f"prompts.dir={directory}: it holds no prompt set (a folder of *.j2 files)",
        hint=f"Did you mean prompts.dir={meant}?" if meant else "`aeon init DIR` copies the packaged set.",
    )
