"""The names of servers' tools in the registry, and which tools are wanted."""

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


def is_selected(name: str, server: McpServer) -> bool:
    """Whether the server's own name of a tool matches a pattern of `allow` and none of `deny` (`*`, `?`, `[...]`)."""
    return _matches(name, server.allow) and not _matches(name, server.deny)


def find_owner(name: str, servers: Mapping[str, McpServer]) -> str | None:
    """The key of the server to which a tool of that registered name would belong; None when to none.

    After a prefix `_` and `-` count as well as the dot, since other programs join them so. Of several prefixes the
    longest counts; a server without a prefix has the names that its `allow` lists, except by `*` alone.
    """
    prefixes = {
        key: key if server.prefix is None else server.prefix for key, server in servers.items()
    }
    for key in sorted(servers, key=lambda key: -len(prefixes[key])):
        prefix, server = prefixes[key], servers[key]
        if prefix and name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in _JOINERS:
            return key if is_selected(name[len(prefix) + 1 :], server) else None
        if not prefix and _matches(name, [pattern for pattern in server.allow if pattern != "*"]):
            return key if is_selected(name, server) else None
    return None


def find_unmatched_patterns(names: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns that match none of the names, most likely misspelt; never `*`."""
    known = tuple(names)
    return tuple(
        pattern
        for pattern in patterns
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in known)
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
