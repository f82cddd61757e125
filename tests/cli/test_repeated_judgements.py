"""How far repeated judgements went apart, wherever a person reads the scores."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import aeon as library
from aeon.cli.job.card import card
from tests.cli.conftest import RunAeon

SCENARIO = """
calls:
  convergence:
    - {answer: {completeness_score: 0.96}}
    - {answer: {completeness_score: 0.90}}
    - {answer: {completeness_score: 0.97}}
"""
RUN = ("task=plan a move", "provider=simulated", "provider.scenario=low.yaml", "progress=plain")
MARGIN = ("limits.max_passes=1", "convergence.margin=0.05", "hydra.run.dir=run")


def strip_tags(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def test_progress_card_page_and_text_say_how_far_the_judgements_went_apart(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "low.yaml").write_text(SCENARIO)
    ended = aeon(*RUN, *MARGIN)
    repeated = "completeness 0.96 (threshold 0.95; 3 judgements, spread 0.07)"
    assert f"convergence  {repeated}  coherence" in ended.err
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = card(library.load("run"), tmp_path / "run")
    assert repeated in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "completeness 0.96 (3 judgements, spread 0.07)" in strip_tags(page)
    lines = aeon("inspect", "run", "output=text").out.splitlines()
    assert any(
        line.startswith("pass 1: completeness 0.96 (3 judgements, spread 0.07), coherence")
        for line in lines
    )


def test_nothing_is_said_of_a_single_judgement(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "low.yaml").write_text(SCENARIO)
    ended = aeon(*RUN, "limits.max_passes=1", "hydra.run.dir=run")
    text = aeon("inspect", "run", "output=text").out
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "judgements" not in ended.err + text + strip_tags(page)
