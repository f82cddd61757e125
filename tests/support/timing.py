"""What a test may say of time on a machine that does other work too."""

SOON = 30.0
"""Seconds: far above what a busy machine takes, far below what the failure would take."""
