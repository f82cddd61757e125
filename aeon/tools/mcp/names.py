"""The registered names of servers' tools, and the selection of tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256

from aeon.tools.settings import McpServer

NAME_LIMIT = 64
_DIGEST_LENGTH = 8
_JOINERS = (".", "_", "-")


def tool_name(prefix: str, name: str) -> str:
    """Return `prefix.name`, or `name` without a prefix, as 1 to 64 characters of A-Z a-z 0-9 _ . -

    Every other character becomes `_`. A longer name is cut and ends in a digest of the whole, so
    that names that differ late stay different.
    """
    whole = f"{prefix}.{name}" if prefix else name
    clean = re.sub(r"[^A-Za-z0-9_.-]", "_", whole) or "_"
    if len(clean) <= NAME_LIMIT:
        return clean
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{clean[: NAME_LIMIT - _DIGEST_LENGTH - 1]}-{digest}"


def is_selected(name: str, server: McpServer) -> bool:
    """Whether the server's own name of a tool matches a pattern of `allow` and none of `deny` (`*`,
    `?`, `[...]`)."""
    return _matches(name, server.allow) and not _matches(name, server.deny)


def find_owner(name: str, servers: Mapping[str, McpServer]) -> str | None:
    """Return the key of the server that a tool of this registered name would belong to, or None.

    A prefix may be followed by `_` or `-` instead of the dot, because other programs join names
    with them. The longest matching prefix wins. A server without a prefix has the names listed in
    its `allow`, unless that is only `*`.
    """
    prefixes = {
        key: key if server.prefix is None else server.prefix for key, server in servers.items()
    }
    for key in sorted(servers, key=lambda key: -len(prefixes[key])):
        own_name = _own_name(name, prefixes[key], servers[key])
        if own_name is not None:
            return key if is_selected(own_name, servers[key]) else None
    return None


def _own_name(name: str, prefix: str, server: McpServer) -> str | None:
    """Return the server's own name of a tool registered as `name`; None for another server's
    tool."""
    if not prefix:
        listed = [pattern for pattern in server.allow if pattern != "*"]
        return name if _matches(name, listed) else None
    rest = name.removeprefix(prefix)
    return rest[1:] if rest != name and rest[:1] in _JOINERS else None


def find_unmatched_patterns(names: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns that match none of the names and are probably misspelt; never `*`."""
    known = tuple(names)
    return tuple(
        pattern
        for pattern in patterns
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in known)
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
