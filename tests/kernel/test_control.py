"""How a run is stopped."""

from aeon.kernel.control import RunControl


def test_a_stop_is_requested_once_and_for_all():
    control = RunControl()
    assert not control.stop_requested
    control.request_stop()
    control.request_stop()
    assert control.stop_requested


def test_the_first_who_stops_a_run_says_why():
    by_cap, by_person = RunControl(), RunControl()
    by_cap.request_stop("a cap is reached")
    by_person.request_stop()
    by_person.request_stop("a cap is reached")
    assert (by_cap.reason, by_person.reason) == ("a cap is reached", "")
