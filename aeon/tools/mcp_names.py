"""What a server's tools are called here, and which of them are wanted. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256

from aeon.tools.mcp_settings import McpServer

NAME_LIMIT = 64
_DIGEST_LENGTH = 8


def tool_name(prefix: str, name: str) -> str:
    """`prefix.name`, or `name` without a prefix, as 1 to 64 characters of A-Z a-z 0-9 _ . -

    Any other character becomes `_`. A longer name is cut and ends in a digest of the whole, so that names which differ
    late stay different.
    """
    whole = f"{prefix}.{name}" if prefix else name
    clean = re.sub(r"[^A-Za-z0-9_.-]", "_", whole) or "_"
    if len(clean) <= NAME_LIMIT:
        return clean
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{clean[: NAME_LIMIT - _DIGEST_LENGTH - 1]}-{digest}"


def wanted(name: str, server: McpServer) -> bool:
    """Whether the server's own name of a tool matches a pattern of `allow` and none of `deny` (`*`, `?`, `[...]`)."""
    return _matches(name, server.allow) and not _matches(name, server.deny)


def unmatched(names: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns that match none of the names: most likely misspelt. `*` is never one of them."""
    known = tuple(names)
    return tuple(
        pattern for pattern in patterns if pattern != "*" and not any(fnmatchcase(name, pattern) for name in known)
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
