"""`aeon doctor [overrides]`: does the configured provider work, role by role; and what to change if it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aeon.app import doctor, process, rehearsal
from aeon.app.doctor import RoleCheck
from aeon.cli.job.arguments import parse
from aeon.cli.job.show import show
from aeon.cli.terminal.status import DONE, FAILED
from aeon.cli.terminal.stderr import say
from aeon.cli.terminal.streams import answer_alone_on_stdout, put
from aeon.cli.terminal.text import count_noun, one_line
from aeon.config.load import environment
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.values import shown_address
from aeon.llm.settings import CustomProvider, EndpointSettings, SimulatedProvider
from aeon.llm.stack import findings


def main(arguments: Sequence[str]) -> int:
    """Examine and report on standard output. Raises ConfigError for what is wrong before any call."""
    given = parse(arguments)
    if given.shows:
        return show(given)
    if given.flags.multirun:
        raise ConfigError("aeon doctor checks one configuration: leave --multirun out")
    settings = given.settings()
    with answer_alone_on_stdout():
        return _check(settings)


def _check(settings: Settings) -> int:
    environ = environment()
    shared = process.build_process(settings, environ)
    try:
        rehearsal.check(shared)
        for line in (*_provider(shared.settings, environ), "Prompts and schemas: in order."):
            put(line)
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
        put("\n".join(_lines(check)))
    if found := findings.new_findings(shared.adapter):
        put("\nFound out:\n" + "\n".join(f"  {finding}" for finding in found))
    failed = [check for check in checks if not check.works]
    put(f"\n{_verdict(failed, checks)}")
    return FAILED if failed else DONE


def _verdict(failed: Sequence[RoleCheck], checks: Sequence[RoleCheck]) -> str:
    if not failed:
        return "Every role works." + (" Every fallback works." if any(check.fallback for check in checks) else "")
    roles = [check for check in failed if not check.fallback]
    parts = [f"{count_noun(len(roles), 'role')} of {len(doctor.ROLE_CALLS)}"] if roles else []
    parts += [f"fallback {check.fallback}" for check in failed if check.fallback]
    return f"{', '.join(parts)} cannot be used."


def _provider(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """The provider with its address, and the name of the variable that holds its key."""
    provider = settings.provider
    if isinstance(provider, SimulatedProvider):
        yield "Provider: simulated. No model is called, whatever stands below: this checks the program itself."
        return
    if isinstance(provider, CustomProvider):
        yield f"Provider: {provider.kind}, {provider.adapter}"
        return
    address = getattr(provider, "base_url", None)
    yield f"Provider: {getattr(provider, 'name', provider.kind)}" + (f" at {shown_address(address)}" if address else "")
    if isinstance(provider, EndpointSettings):
        # A key that is not needed is sent all the same.
        is_sent = bool(environ.get(provider.api_key_env, "").strip())
        key = f"in {provider.api_key_env}" if is_sent or provider.needs_key(environ) else "none needed"
        yield f"Key: {key}"


def _lines(check: RoleCheck) -> Iterator[str]:
    model = check.answered or check.asked
    if check.answered and check.answered != check.asked:
        model = f"{check.answered} (asked: {check.asked})"
    works, tokens = "yes" if check.works else "NO", check.usage.total_tokens if check.usage else "unknown"
    if check.fallback:
        yield f"fallback {one_line(check.fallback)}:"
    yield f"{check.role:<9} {works:<6} {check.seconds:>7.2f} {tokens:>8}  {one_line(model)}"
    for text in (check.problem, check.hint):
        if text:
            yield f"          {one_line(text)}"
