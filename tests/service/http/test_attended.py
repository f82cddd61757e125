"""What a client that follows a job is sent of it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import cast

import pytest

from aeon.domain.events import Recorded, RunStarted
from aeon.domain.request import CallSite
from aeon.llm.watching import Piece
from aeon.service.http import attended
from aeon.service.http.attended import Attended, follow_text
from aeon.service.http.feed import Feed

SITE = CallSite(pass_number=1, phase="EXECUTE")
ANSWER = "tea " * 500


def test_pieces_that_come_during_a_pause_are_sent_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, pauses = asyncio.run(follow_answer(monkeypatch, pieces_a_pause=100))
    assert ANSWER.startswith("".join(texts))
    assert len(texts) == pauses == -(-len(json.dumps({"answer": ANSWER})) // 100)


async def follow_answer(
    monkeypatch: pytest.MonkeyPatch, *, pieces_a_pause: int
) -> tuple[list[str], int]:
    """The texts that a client is sent while pieces of a character each arrive, so many in each
    pause, and how many pauses there were."""
    feed = Feed(is_final=True)
    follower = feed.make_follower(with_text=True)
    assert follower.see is not None
    assert follower.watch is not None
    event = RunStarted(run_id="r", task="t", provider="p", synthetic=False)
    follower.see(Recorded(sequence=1, part=0, time="", event=event))
    waiting = list(json.dumps({"answer": ANSWER}))
    pauses = 0

    def send_pieces() -> None:
        for _ in range(min(pieces_a_pause, len(waiting))):
            follower.watch(Piece(site=SITE, call="direct", text=waiting.pop(0)))  # type: ignore[misc]

    async def pause(_: float) -> None:
        nonlocal pauses
        pauses += 1
        if waiting:
            send_pieces()
        else:
            follower.end()

    monkeypatch.setattr(attended.asyncio, "sleep", pause)
    send_pieces()
    job = cast("Attended", FollowedJob(feed))
    texts = []
    with suppress(JobRead):
        async for text in follow_text(job):
            texts.append(str(text))
    return texts, pauses


class JobRead(Exception):
    """The job has ended, and what it came to is asked for."""


class FollowedJob:
    """A job of which only the text is followed."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.job_id = "j"

    async def find(self) -> None:
        """What it came to."""
        raise JobRead
