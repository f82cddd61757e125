"""What custom checks import."""

from aeon.checks.interface import CheckContext, CheckResult

__all__ = ["CheckContext", "CheckResult"]
