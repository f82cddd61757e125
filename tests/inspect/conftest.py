import pytest

REASON = "needs the extra inspect-test: make test-inspect"


@pytest.fixture(autouse=True)
def has_inspect() -> None:
    """What these tests need: Inspect, which brings eighty packages."""
    pytest.importorskip("inspect_ai", reason=REASON)
