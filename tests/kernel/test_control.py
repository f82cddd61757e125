"""How a run is stopped."""

from aeon.kernel.control import RunControl


def test_a_stop_is_requested_once_and_for_all():
    control = RunControl()
    assert not control.stop_requested
    control.request_stop()
    control.request_stop()
    assert control.stop_requested
