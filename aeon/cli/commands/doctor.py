"""`aeon doctor [overrides]`: does the configured provider work, role by role; and what to change if it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aeon.app import doctor, process, rehearsal
from aeon.cli.job.arguments import parse
from aeon.cli.terminal.status import DONE, FAILED
from aeon.cli.terminal.streams import put, say
from aeon.cli.terminal.text import count_noun, one_line
from aeon.config.load import compose_settings, environment
from aeon.config.settings import Settings
from aeon.domain.values import shown_address
from aeon.llm.settings import CustomProvider, EndpointSettings, SimulatedProvider
from aeon.llm.stack import build as stack


def main(arguments: Sequence[str]) -> int:
    """Examine and report on standard output. Raises ConfigError for what is wrong before any call."""
    settings, environ = compose_settings(parse(arguments)), environment()
    shared = process.build_process(settings, environ)
    try:
        rehearsal.check(shared)
        put(f"{_describe_provider(shared.settings, environ)}\nPrompts and schemas: in order.")
        for warning in shared.warnings:
            say(f"Warning: {warning}")
        return _examine(shared)
    finally:
        process.close_process(shared)


def _examine(shared: process.Process) -> int:
    put(f"\n{'role':<9} {'works':<6} {'seconds':>7} {'tokens':>8}  model")
    checks = []
    for check in doctor.check_roles(shared):
        checks.append(check)
        put(_describe_check(check))
    if found := stack.findings(shared.adapter, only_new=True):
        put("\nFound out:\n" + "\n".join(f"  {finding}" for finding in found))
    failed = [check for check in checks if not check.works]
    if not failed:
        put("\nEvery role works." + (" Every fallback works." if any(check.fallback for check in checks) else ""))
        return DONE
    roles = sum(not check.fallback for check in failed)
    parts = [f"{count_noun(roles, 'role')} of {len(doctor.ROLE_CALLS)}"] if roles else []
    parts += [f"fallback {check.fallback}" for check in failed if check.fallback]
    put(f"\n{', '.join(parts)} cannot be used.")
    return FAILED


def _describe_provider(settings: Settings, environ: Mapping[str, str]) -> str:
    """The provider with its address, and the name of the variable that holds its key."""
    provider = settings.provider
    if isinstance(provider, SimulatedProvider):
        return "Provider: simulated. No model is called, whatever stands below: this checks the program itself."
    if isinstance(provider, CustomProvider):
        return f"Provider: {provider.kind}, {provider.adapter}"
    address = getattr(provider, "base_url", None)
    text = f"Provider: {getattr(provider, 'name', provider.kind)}"
    text += f" at {shown_address(address)}" if address else ""
    if isinstance(provider, EndpointSettings):
        # A key that is not needed is sent all the same.
        is_sent = bool(environ.get(provider.api_key_env, "").strip())
        text += f"\nKey: {f'in {provider.api_key_env}' if is_sent or provider.needs_key(environ) else 'none needed'}"
    return text


def _describe_check(check: doctor.RoleCheck) -> str:
    model = check.answered or check.asked
    if model != check.asked:
        model = f"{model} (asked: {check.asked})"
    works, tokens = "yes" if check.works else "NO", check.usage.total_tokens if check.usage else "unknown"
    lines = [f"fallback {one_line(check.fallback)}:"] if check.fallback else []
    lines.append(f"{check.role:<9} {works:<6} {check.seconds:>7.2f} {tokens:>8}  {one_line(model)}")
    return "\n".join((*lines, *(f"          {one_line(text)}" for text in (check.problem, check.hint) if text)))
