"""Runs recordings with today's prompts, schemas, code and configuration, and checks that each
decides as it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from xml.etree import ElementTree

from aeon.app.aeon import Aeon
from aeon.domain.errors import ConfigError
from aeon.domain.history import RunError
from aeon.domain.result import RunResult
from aeon.llm.prompts import show_path
from aeon.report.words import encode_for_xml
from aeon.store.cassette import Cassette, read

_OF_FILES = {"system message": "system", "user message": "user", "schema": "schema"}
"""The parts of a request that come from a file, by the name of that file."""


@dataclass(frozen=True, slots=True)
class CheckedRecording:
    """A recording that was run again. `divergence` says where it first departed, empty where it did
    not, and `causes` what has changed that may explain it."""

    path: Path
    seconds: float
    answers: int
    divergence: str = ""
    causes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether exactly the recorded answers were requested."""
        return not self.divergence


def check_recording(
    path: Path, overrides: Sequence[str], environ: Mapping[str, str] | None = None
) -> CheckedRecording:
    """Run a recording with its own settings and these overrides, without a network. Raises
    StoreFailed for a file that is not a cassette."""
    began = perf_counter()
    cassette = read(path)
    recorded = sum(entry.request.kind == "model" and entry.usable for entry in cassette.answers)
    divergence = ""
    causes: tuple[str, ...] = ()
    try:
        replay = ["store.mode=replay", f"store.path={path}", "observability=none"]
        with Aeon.from_config([*replay, *overrides], environ=environ) as aeon:
            result = aeon.run(warn=lambda _: None)
            divergence = _find_divergence(result, recorded)
            causes = tuple(_find_causes(aeon, cassette, result)) if divergence else ()
    except ConfigError as error:
        divergence = f"it cannot be started: {error.message}"
        causes = (error.hint,) if error.hint else ()
    return CheckedRecording(path, perf_counter() - began, recorded, divergence, causes)


def _find_divergence(result: RunResult, recorded: int) -> str:
    if result.error is not None:
        return result.error.message
    used = result.parent.saved.model_calls if result.parent else 0
    if used < recorded:
        left = recorded - used
        return (
            f"it ended earlier ({result.termination_reason}): "
            f"{left} of {recorded} answers were not asked for"
        )
    return ""


def _find_causes(aeon: Aeon, cassette: Cassette, result: RunResult) -> Iterator[str]:
    """Yield the files, keys and versions that the differing parts are made of."""
    error = result.error
    hashes = cassette.origin.get("hashes") or {}
    if error is not None:
        yield from _find_files(aeon, error, hashes)
        for part in error.differs:
            if part not in _OF_FILES:
                yield f"{part}: the keys of roles, reasoning or provider that make it"
    if hashes.get("configuration") not in (None, aeon.hashes["configuration"]):
        yield "the configuration is not the recorded one"
    yield from _compare_versions(cassette, result)


def _find_files(aeon: Aeon, error: RunError, hashes: Mapping[str, str]) -> Iterator[str]:
    """Yield the prompt and schema files of the request that matches no recorded one."""
    parts = [part for part in error.differs if part in _OF_FILES]
    files = aeon.render(error.call, "the task").files if parts else {}
    for part in parts:
        kind = "schemas" if part == "schema" else "prompts"
        changed = hashes.get(kind) != aeon.hashes[kind]
        since = "changed since" if changed else "as recorded: what fills them changed"
        yield f"{part}: {show_path(files[_OF_FILES[part]])} ({kind} {since})"


def _compare_versions(cassette: Cassette, result: RunResult) -> Iterator[str]:
    before = (cassette.origin.get("versions") or {}).get("aeon-engine")
    now = result.versions.get("aeon-engine")
    if before and before != now:
        yield f"version: recorded by aeon-engine {before}, checked by {now}"


def write_junit(checked: Sequence[CheckedRecording]) -> bytes:
    """Return the outcome as JUnit XML: a case for each recording."""
    failures = sum(not one.holds for one in checked)
    suite = ElementTree.Element(
        "testsuite", name="recordings", tests=str(len(checked)), failures=str(failures)
    )
    for one in checked:
        name = encode_for_xml(str(one.path))
        case = ElementTree.SubElement(suite, "testcase", name=name, time=f"{one.seconds:.3f}")
        if not one.holds:
            failure = ElementTree.SubElement(
                case, "failure", message=encode_for_xml(one.divergence.partition("\n")[0])
            )
            failure.text = encode_for_xml("\n".join((one.divergence, *one.causes)))
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
