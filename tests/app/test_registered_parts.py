"""A package that is installed registers parts, and their names stand where `package.module:name` would."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.domain.errors import ConfigError
from aeon.files.reference import find_registered
from tests.support.dict_store import STORES

PARTS = """
from aeon.domain.request import LLMResponse
from tests.support.scripted_model import ScriptedModel

EVENTS = []


class Scripted(ScriptedModel):
    pass


def board():
    return EVENTS.append
"""
ENTRIES = """
[aeon.adapters]
scripted = house_parts:Scripted
[aeon.sinks]
board = house_parts:board
[aeon.stores]
dictionary = tests.support.dict_store:DictStore
[aeon.components]
text = tests.contract.test_written_from_the_text:Engine
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    site = tmp_path / "site"
    metadata = site / "house_parts-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: house-parts\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    (site / "house_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(str(site))
    find_registered.cache_clear()
    yield
    find_registered.cache_clear()
    sys.modules.pop("house_parts", None)


def test_adapter_sink_store_and_component_are_found_by_their_names(tmp_path: Path):
    overrides = (
        "provider=custom",
        "provider.adapter=scripted",
        "+observability.sinks.house=board",
        "store.backend=dictionary",
        "components.convergence=text",
    )
    with Aeon.from_config(overrides, environ={}) as aeon:
        result = aeon.run("do it", directory=tmp_path / "run")
    assert result.explanation == "as it stands"
    assert set(STORES) == {str(tmp_path / "run" / "store")}
    assert sys.modules["house_parts"].EVENTS


@pytest.mark.parametrize(
    "override",
    [
        "provider.adapter=script",
        "+observability.sinks.house=boards",
        "store.backend=dict",
        "components.convergence=texts",
    ],
)
def test_a_name_that_is_not_registered_is_refused_with_those_that_are(
    override: str, tmp_path: Path
):
    provider = "provider=custom" if "adapter" in override else "provider=simulated"
    with pytest.raises(ConfigError, match="or a name that a package registers under") as refused:
        Aeon.from_config((provider, override), environ={}).run("do it", directory=tmp_path / "run")
    assert refused.value.hint.startswith("There is ")
