"""Identifies the person's own recorded runs: each carries a seal that only the key in their state
folder can make.

A seal is valid for the content of a recording, wherever its folder is moved, and for no other
content.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable, Iterator

from aeon.config.compose.literal import key_of
from aeon.config.state import VARIABLE as STATE
from aeon.config.state import read_state, state_folder, write_state
from aeon.config.trusted_folders import VARIABLE, read_given_hashes
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.domain.values import JsonMapping

SEAL = "seal"
"""The key of `run.json` that holds the seal over all other keys."""
_KEY_FILE = "key"
_KEY_BYTES = 32
UNATTENDED = ("ci", "prod")
"""The values of `env` in which nobody is asked."""


class UntrustedRun(ConfigError):
    """A recorded run, or a multirun, that this person has not made; `digest` is the hash of the
    settings it would apply."""

    digest = ""


def make_seal(document: JsonMapping) -> str | None:
    """Return the seal of a JSON document; None when there is no state folder for a key."""
    key = _key(create=True)
    return None if key is None else _sign(key, document)


def warn_of_unsealed_runs(store_mode: str) -> Iterator[str]:
    """Yield a warning for a person whose runs cannot be identified as their own: resuming them will
    ask."""
    if store_mode in ("record", "cache") and _key(create=True) is None:
        yield (
            f"{state_folder() or 'the folder of your state'} cannot be used: resume "
            f"will ask whether this run is yours ({STATE} names a folder of your own)"
        )


def is_own(document: JsonMapping, seal: object) -> bool:
    """Check whether a seal is this person's for a document."""
    key = _key(create=False)
    if key is None or not isinstance(seal, str):
        return False
    # A stranger's seal may hold any text; `compare_digest` takes only ASCII text, or bytes.
    return hmac.compare_digest(_sign(key, document).encode(), seal.encode("utf-8", "replace"))


def require_own(
    named: str,
    digest: str,
    *,
    own: bool,
    trust: bool | str,
    env: str,
    shown: str,
    problem: str = "this is not known as a run of yours, and it would set",
    command: str = "",
) -> None:
    """Raise UntrustedRun unless the object named `named`, expected to be `what`, is the person's
    `own`, or they trust it: by its hash in `AEON_TRUST` or as `trust`, or, except where nobody is
    asked, by `trust=true`. `shown` lists the settings it would apply."""
    is_unattended = env in UNATTENDED
    if own or digest in read_given_hashes() or trust == digest:
        return
    if trust is True and not is_unattended:
        return
    way = (
        f"env={env} takes no trust=true"
        if is_unattended
        else "add trust=true on the command line"
        + (f", as in `{command} trust=true`" if command else "")
    )
    raise UntrustedRun(
        f"{named}: {problem}:\n{shown}",
        hint=f"If you trust who made it: {way}; where nobody can be asked: {VARIABLE}={digest}",
        digest=digest,
    )


def read_trust(overrides: Iterable[str]) -> tuple[bool | str, str]:
    """Return the last values of `trust` (false unless given) and of `env` (empty unless given)
    among the overrides."""
    given = {key_of(text): text.partition("=")[2].strip("'\"") for text in overrides}
    trust = given.get("trust", "")
    return (True if trust.lower() == "true" else trust), given.get("env", "")


def _sign(key: bytes, document: JsonMapping) -> str:
    values = {name: value for name, value in document.items() if name != SEAL}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode("ascii"), "sha256").hex()


def _key(*, create: bool) -> bytes | None:
    found = read_state(_KEY_FILE)
    if found is None and create:
        try:
            # Another process may write one first; that key counts then.
            write_state(_KEY_FILE, secrets.token_bytes(_KEY_BYTES), replace=False)
        except ArtefactError:
            return None
        found = read_state(_KEY_FILE)
    return found if found and len(found) == _KEY_BYTES else None
