"""What is remembered of the packaged files is what Hydra makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf

from aeon.config.compose.hydra_private import hydra_in
from tests.support.composing import packaged_files_merged_once

CHOICES = (
    (),
    ("task=x", "hydra.run.dir=here"),
    ("provider=simulated", "task=y"),
    ("provider=groq", "ttl=large", "ttl.base=7", "+inputs.a=b"),
    ("env=ci", "mode=core", "experiment=quick", "tools=[builtin]"),
    ("~sweep", "hydra/launcher=basic"),
)
MISTAKES = (("ttl=bass",), ("ttl.bass=1",), ("+ttl=large",), ("no_such=x",), ("~mode=core",))


def compose(overrides: tuple[str, ...], folder: Path | None = None) -> Any:
    with hydra_in(folder):
        made = hydra.compose("config", list(overrides), return_hydra_config=True)
        return OmegaConf.to_container(made)


@pytest.mark.parametrize("overrides", CHOICES)
def test_what_is_composed_is_what_hydra_composes(
    monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...]
) -> None:
    remembered = [compose(overrides), compose(overrides)]
    monkeypatch.setattr("tests.support.composing._is_packaged", lambda _: False)
    assert remembered == [compose(overrides)] * 2


@pytest.mark.parametrize("overrides", MISTAKES)
def test_a_mistake_is_reported_as_often_as_it_is_made(
    monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...]
) -> None:
    messages = set()
    for _ in range(2):
        with pytest.raises(HydraException) as raised:
            compose(overrides)
        messages.add(str(raised.value))
    monkeypatch.setattr("tests.support.composing._is_packaged", lambda _: False)
    with pytest.raises(HydraException) as raised:
        compose(overrides)
    assert messages == {str(raised.value)}


def test_files_of_ones_own_are_read_each_time(tmp_path: Path) -> None:
    (tmp_path / "limits").mkdir()
    for passes in (21, 22):
        (tmp_path / "limits" / "mine.yaml").write_text(f"max_passes: {passes}\n")
        with packaged_files_merged_once():
            made = compose(("limits=mine",), tmp_path)
            assert made["limits"]["max_passes"] == passes
