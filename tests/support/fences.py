"""The texts that the fences of a prompt hold."""

from __future__ import annotations

import re


def texts_in(prompt: str, label: str) -> list[str]:
    """The texts of a prompt's fences of this label, in order."""
    fence = re.compile(rf"<({label}-[a-z2-7]{{12}})(?: [^>\n]*)?>\n(.*?)\n</\1>", re.DOTALL)
    return [found[2] for found in fence.finditer(prompt)]
