import itertools
import random
import threading

import pytest

from aeon.domain import events as e
from aeon.domain.request import CallSite, Usage
from aeon.domain.result import TokenUsage
from aeon.llm.settings import Price
from aeon.observability.ledger import Ledger
from tests.observability.support import MODEL, Story, feed, realistic_run


def failed(usage: Usage, model: str = "", *, reported: bool = True) -> e.CallFailed:
    return e.CallFailed(
        site=CallSite(sequence=1),
        call="plan",
        role="planner",
        error="Truncated",
        message="cut",
        usage=usage,
        seconds=2.0,
        model=model,
        usage_reported=reported,
    )


def test_usage_adds_up_in_all_and_by_call_role_model_and_pass() -> None:
    ledger = Ledger()
    feed(ledger, realistic_run())
    usage = ledger.usage()
    assert usage.total == TokenUsage(
        requests=15,
        input_tokens=15_000,
        output_tokens=3_000,
        cached_tokens=6_000,
        reasoning_tokens=750,
        total_tokens=18_000,
        cost=None,
    )
    assert {name: part.requests for name, part in usage.by_call.items()} == {
        "convergence": 2,
        "plan": 1,
        "refinement": 2,
        "repair": 1,
        "semantic_validation": 3,
        "step": 5,
        "task_profile": 1,
    }
    assert {name: part.requests for name, part in usage.by_role.items()} == {
        "grader": 5,
        "planner": 4,
        "repairer": 1,
        "worker": 5,
    }
    assert {number: part.requests for number, part in usage.by_pass.items()} == {0: 4, 1: 7, 2: 4}
    assert list(usage.by_model) == [MODEL]


def test_a_run_without_prices_has_no_cost() -> None:
    ledger = Ledger()
    feed(ledger, realistic_run())
    usage = ledger.usage()
    assert usage.total.cost is None
    assert all(part.cost is None for part in usage.by_model.values())


def test_one_model_without_a_price_leaves_the_total_unknown_and_never_zero() -> None:
    story = Story()
    site = story.dispatch("plan", "PLAN", 0)
    story.answer(site, "plan", model="priced")
    story.answer(site, "plan", model="unpriced")
    ledger = Ledger({"priced": Price(input=1, output=1)})
    feed(ledger, story.told)
    usage = ledger.usage()
    assert usage.by_model["priced"].cost == pytest.approx(0.0012)
    assert usage.by_model["unpriced"].cost is None
    assert usage.total.cost is None
    assert usage.by_call["plan"].cost is None


def test_what_a_failed_request_had_cost_is_counted() -> None:
    ledger = Ledger({"m": Price(input=1, output=1)})
    ledger(e.Recorded(1, 0, "", failed(Usage(requests=2))))
    assert ledger.usage().total.cost == 0
    ledger(e.Recorded(1, 1, "", failed(Usage(100, 50, requests=1), "m")))
    assert ledger.usage().total.requests == 3
    assert ledger.usage().total.cost == pytest.approx(0.00015)
    ledger(e.Recorded(1, 2, "", failed(Usage(100, 50, requests=1))))
    assert ledger.usage().by_model["unknown"].total_tokens == 150
    assert ledger.usage().total.cost is None
    assert ledger.seconds_by_call() == {"plan": 6.0}


def test_repairs_come_in_the_order_of_their_cycles() -> None:
    ledger = Ledger()
    told = [r for r in realistic_run() if isinstance(r.event, e.RepairFinished)]
    (first,) = told
    assert isinstance(first.event, e.RepairFinished)
    later = e.RepairFinished(
        site=first.event.site, record=first.event.record.model_copy(update={"cycle": 99})
    )
    ledger(e.Recorded(9, 9, first.time, later))
    ledger(first)
    assert [repair.cycle for repair in ledger.repairs()] == [7, 99]


def test_seconds_are_counted_by_call_and_by_phase() -> None:
    ledger = Ledger(clock=itertools.count().__next__)
    feed(ledger, realistic_run())
    assert ledger.seconds_by_call()["step"] == pytest.approx(7.5)
    assert set(ledger.seconds_by_phase) == {
        "PROFILE",
        "PLAN",
        "EXECUTE",
        "EVALUATE",
        "REFINE",
        "RE_EXECUTE",
    }
    assert ledger.seconds_by_phase["PROFILE"] == 1


def test_a_clock_that_is_set_back_makes_no_phase_negative() -> None:
    ledger = Ledger(clock=iter([10.0, 12.5]).__next__)
    began = e.PhaseStarted(stage="A", phase="PROFILE", pass_number=0)
    ended = e.PhaseFinished(stage="A", phase="PROFILE", pass_number=0, outcome="done")
    ledger(e.Recorded(1, 1, "2026-01-01T12:00:00+00:00", began))
    ledger(e.Recorded(2, 2, "2026-01-01T11:00:00+00:00", ended))
    assert ledger.seconds_by_phase == {"PROFILE": 2.5}


def test_models_are_named_by_role() -> None:
    ledger = Ledger()
    feed(ledger, realistic_run())
    assert ledger.models() == {
        "grader": [MODEL],
        "planner": [MODEL],
        "repairer": [MODEL],
        "worker": [MODEL],
    }


def test_sums_do_not_depend_on_the_order_in_which_calls_end() -> None:
    prices = {"a": Price(input=0.1, output=0.7), "b": Price(input=0.3, output=0.9)}
    story = Story()
    for number in range(30):
        site = story.dispatch("step", "EXECUTE", number % 3)
        story.answer(site, "step", role="worker", model="ab"[number % 2])
    one, other = Ledger(prices), Ledger(prices)
    feed(one, story.told)
    feed(other, random.Random(4).sample(story.told, len(story.told)))
    assert one.usage().model_dump_json() == other.usage().model_dump_json()
    assert one.models() == other.models()


def test_many_threads_may_book_and_read_at_once() -> None:
    ledger = Ledger()
    told = realistic_run()
    threads = [
        threading.Thread(target=lambda: [ledger(r) or ledger.usage() for r in told])
        for _ in range(4)
    ]  # type: ignore[func-returns-value]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.usage().total.requests == 60


def test_an_answer_that_is_none_and_tells_no_usage_is_unreported_and_its_cost_unknown() -> None:
    story = Story()
    story.tell(failed(Usage(requests=1), "m", reported=False))
    ledger = Ledger({"m": Price(input=1, output=1)})
    feed(ledger, story.told)
    usage = ledger.usage()
    assert usage.total.cost is None
    assert (usage.unreported, usage.unpriced) == (("m",), ())
