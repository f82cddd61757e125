import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon.domain import graph
from aeon.domain.errors import PlanError
from aeon.domain.plan import Plan, PlanStep
from tests.plan.builders import blocked, done, failed, plan_of, step
from tests.support.growth import MOST, growth


def ids(steps: tuple[PlanStep, ...]) -> list[str]:
    return [one.step_id for one in steps]


def diamond() -> Plan:
    return plan_of(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))


def test_ready_steps_are_pending_with_every_dependency_complete() -> None:
    plan = plan_of(
        done("a"), step("b", "a"), step("c", "a", "b"), failed("d"), step("e", "d"), step("f")
    )
    assert ids(graph.ready_steps(plan)) == ["b", "f"]


def test_a_plan_takes_a_pass_for_each_step_of_its_longest_chain() -> None:
    assert graph.count_passes(diamond()) == 3
    assert graph.count_passes(plan_of(step("a", status="skipped"), step("b", "a"))) == 1
    assert graph.count_passes(plan_of()) == 0


def test_a_step_that_may_be_skipped_counts_no_pass() -> None:
    plan = plan_of(step("a"), step("b", "a", when="inputs.x == 'y'"), step("c", "b"))
    assert graph.count_passes(plan) == graph.count_passes(plan, one_by_one=True) == 2


def test_one_by_one_a_plan_takes_a_pass_for_each_step() -> None:
    assert graph.count_passes(diamond(), one_by_one=True) == 4


def test_a_step_behind_a_failed_invalid_running_or_unknown_one_is_not_ready() -> None:
    plan = plan_of(
        failed("a"),
        blocked("b"),
        step("c", status="running"),
        step("d", "a"),
        step("e", "b"),
        step("f", "c"),
        step("g", "?"),
    )
    assert graph.ready_steps(plan) == ()


def test_topological_keeps_an_order_that_is_already_right() -> None:
    plan = diamond()
    assert graph.sort_by_dependencies(plan.steps) == plan.steps


def test_topological_puts_dependencies_first_and_otherwise_keeps_the_given_order() -> None:
    steps = (step("c", "b"), step("x"), step("b", "a"), step("a"), step("y"))
    assert ids(graph.sort_by_dependencies(steps)) == ["x", "a", "b", "c", "y"]


def test_topological_refuses_a_cycle_and_names_it() -> None:
    with pytest.raises(PlanError, match="a depends on b, b depends on a"):
        graph.sort_by_dependencies((step("a", "b"), step("b", "a")))


def test_find_cycle_names_the_ids_along_it_each_depending_on_the_next() -> None:
    steps = (step("z"), step("a", "z", "c"), step("b", "a"), step("c", "b"))
    assert graph.find_cycle(steps) == ("a", "c", "b")


def test_a_step_that_depends_on_itself_is_a_cycle() -> None:
    assert graph.find_cycle((step("a", "a"),)) == ("a",)
    with pytest.raises(PlanError, match="form a loop: a depends on itself"):
        graph.sort_by_dependencies((step("a", "a"),))


def test_there_is_no_cycle_in_a_diamond_or_with_unknown_dependencies() -> None:
    assert graph.find_cycle(diamond().steps) == ()
    assert graph.find_cycle((step("a", "?"),)) == ()


def test_layers_are_longest_distances_from_the_start() -> None:
    plan = plan_of(step("a"), step("d", "c", "a"), step("b", "a"), step("c", "b"), step("e"))
    assert graph.layers(plan) == (("a", "e"), ("b",), ("c",), ("d",))


def test_layers_of_an_empty_plan_are_none() -> None:
    assert graph.layers(plan_of()) == ()


def test_expected_calls_are_steps_plus_four_a_layer_plus_two() -> None:
    assert graph.count_expected_calls(diamond()) == 4 + 4 * 3 + 2


def test_final_steps_ignore_what_is_invalid_for_good_and_what_was_replaced() -> None:
    plan = plan_of(
        done("a"),
        step("old", "a", status="invalid", replaced_by="new"),
        step("new", "a"),
        step("wrong", "new", status="invalid", step_output="kept"),
    )
    assert ids(graph.final_steps(plan)) == ["new"]


def test_a_blocked_or_failed_step_can_be_final() -> None:
    plan = plan_of(step("a"), blocked("b", "a"), failed("c", "a"))
    assert ids(graph.final_steps(plan)) == ["b", "c"]


def test_answer_steps_are_complete_ones_that_no_complete_step_depends_on() -> None:
    plan = plan_of(done("a"), done("b", "a"), done("c"), step("d", "b", "c"), failed("e", "c"))
    assert ids(graph.answer_steps(plan)) == ["b", "c"]
    assert graph.answer_text(plan) == "output of b\n\noutput of c"


def test_a_retired_step_does_not_hide_the_answer_before_it() -> None:
    plan = plan_of(done("a"), step("b", "a", status="invalid", step_output="no longer holds"))
    assert graph.answer_text(plan) == "output of a"


def test_what_depends_on_a_skipped_step_depends_on_what_that_one_does() -> None:
    plan = plan_of(done("a"), step("b", "a", status="skipped"), done("c", "b"))
    assert ids(graph.answer_steps(plan)) == ids(graph.final_steps(plan)) == ["c"]


def test_without_its_skipped_last_step_a_plan_ends_with_the_one_before() -> None:
    plan = plan_of(done("a"), step("b", "a", status="skipped"))
    assert ids(graph.answer_steps(plan)) == ids(graph.final_steps(plan)) == ["a"]


def test_there_is_no_answer_before_anything_is_complete() -> None:
    assert graph.answer_text(diamond()) == ""


def test_nesting_level_counts_parents() -> None:
    plan = plan_of(step("a.b.c", parent_step_id="a.b"), step("a.b", parent_step_id="a"), step("a"))
    assert [graph.nesting_level(graph.by_id(plan.steps), i) for i in ("a", "a.b", "a.b.c")] == [
        0,
        1,
        2,
    ]


def test_nesting_level_counts_a_parent_that_is_gone_and_survives_a_circle() -> None:
    plan = plan_of(
        step("x", parent_step_id="gone"),
        step("p", parent_step_id="q"),
        step("q", parent_step_id="p"),
    )
    assert graph.nesting_level(graph.by_id(plan.steps), "x") == 1
    assert graph.nesting_level(graph.by_id(plan.steps), "p") == 1


def test_nesting_level_of_an_unknown_step_is_an_error() -> None:
    with pytest.raises(KeyError):
        graph.nesting_level(graph.by_id(diamond().steps), "?")


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_topological_respects_every_dependency_and_is_idempotent(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 12))
    edges = {
        i: data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        for i in range(size)
    }
    shuffled = data.draw(st.permutations(range(size)))
    steps = [step(f"s{i}", *(f"s{d}" for d in sorted(edges[i]))) for i in shuffled]
    order = graph.sort_by_dependencies(steps)
    place = {one.step_id: index for index, one in enumerate(order)}
    assert sorted(place) == sorted(one.step_id for one in steps)
    assert all(place[d] < place[one.step_id] for one in order for d in one.dependencies)
    assert graph.sort_by_dependencies(order) == order


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), unique=True, max_size=3)
    )
)
@settings(deadline=None)
def test_a_cycle_found_is_one_and_none_found_means_an_order_exists(
    edges: dict[str, list[str]],
) -> None:
    cycle = graph.cycle_in(edges)
    assert all(after in edges[one] for one, after in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    assert len(set(cycle)) == len(cycle)
    if not cycle:
        steps = [step(step_id, *dependencies) for step_id, dependencies in edges.items()]
        assert len(graph.sort_by_dependencies(steps)) == len(edges)


def test_reading_a_plan_takes_time_in_proportion_to_its_steps() -> None:
    def make_plan(size: int) -> Plan:
        return plan_of(
            step("s0"),
            *(
                step(f"s{i}", f"s{i - 1}", *([f"s{i // 2}"] if i // 2 != i - 1 else []))
                for i in range(1, size)
            ),
        )

    def read(plan: Plan) -> None:
        size = len(plan.steps)
        assert len(graph.sort_by_dependencies(plan.steps)) == len(graph.layers(plan)) == size
        assert graph.find_cycle(plan.steps) == ()
        assert ids(graph.ready_steps(plan)) == ["s0"]
        assert ids(graph.final_steps(plan)) == [f"s{size - 1}"]

    assert growth(make_plan, read) <= MOST
