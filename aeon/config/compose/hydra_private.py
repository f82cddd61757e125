"""The only module that knows Hydra's private parts: its state, its sources of files, its command line and its jobs.

`make test-hydra-next` says what the next version of Hydra breaks here.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import hydra
import yaml
from hydra._internal import config_loader_impl, defaults_list
from hydra._internal import hydra as hydra_main
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.defaults_list import create_defaults_list
from hydra._internal.hydra import Hydra
from hydra._internal.sources_registry import SourcesRegistry
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.initialize import get_gh_backup, restore_gh_from_backup
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.launcher import Launcher
from hydra.types import RunMode, TaskFunction
from hydra.version import VersionBase, setbase
from omegaconf import DictConfig, OmegaConf

from aeon.config.compose.cache import make_once
from aeon.config.compose.literal import Composition
from aeon.config.compose.problems import HYDRA_ERRORS, composition_error
from aeon.files.fast_yaml import FastLoader
from aeon.files.located_yaml import LocatedYaml
from aeon.files.pinned import list_pinned, pin, read_file
from aeon.files.resources import resource_root

try:
    from omegaconf._utils import get_yaml_loader
except ImportError:  # omegaconf 2.4
    from omegaconf._yaml import get_yaml_loader  # type: ignore[import-not-found,no-redef]

CONFIG_NAME = "config"
LAUNCHER = "aeon.cli.job.sweep_launcher.Threads"
"""The `_target_` of `conf/hydra/launcher/aeon.yaml`."""
Composed = Mapping[tuple[str, ...], bytes]
"""Jobs that are composed already, by `name_overrides`, pickled: they take a tenth of the room."""


def packaged_config_dir() -> Path:
    """The folder of the packaged configuration."""
    return resource_root() / "conf"


@contextmanager
def hydra_in(config_dir: Path | None, *, as_usual: bool = False) -> Iterator[Hydra]:
    """Hydra initialised in a folder; afterwards it is in every respect as it was before. Raises ConfigError within it
    for a file that cannot be read. `as_usual`: other processes, which are given its state, can load it."""
    version, backup = VersionBase.instance(), get_gh_backup()
    version_before = version.getbase()
    # A person's own folder comes first, if there is one, then the packaged one.
    path = create_config_search_path(
        str((config_dir or packaged_config_dir()).expanduser().resolve())
    )
    if config_dir is not None:
        path.prepend(
            "aeon", f"file://{packaged_config_dir()}", anchor=SearchPathQuery(provider="schema")
        )
    try:
        GlobalHydra.instance().clear()
        with _reading_once(as_usual=as_usual):
            yield Hydra.create_main_hydra2("aeon", path)
    finally:
        restore_gh_from_backup(backup)
        version.version_base = version_before


@contextmanager
def _reading_once(*, as_usual: bool = False) -> Iterator[None]:
    """Let Hydra parse, list and merge files once, unless `as_usual`, with the defaults of its own version."""
    Plugins.instance()  # fills the registry of sources
    if hydra.__version__.startswith("1.3."):  # Hydra 1.4 has no others, and warns when it is asked
        setbase("1.3")
    if as_usual:
        with _set(vars(hydra_main), "ConfigLoaderImpl", _PinnedLoader):
            yield
        return
    with (
        _reading_pinned_files(),
        _set(vars(config_loader_impl), "create_defaults_list", _create_defaults_list),
        _set(vars(defaults_list), "_create_interpolation_map", _create_interpolation_map),
        _set(vars(hydra_main), "ConfigLoaderImpl", _MergedOnceLoader),
    ):
        yield


def _reading_pinned_files() -> AbstractContextManager[None]:
    return _set(SourcesRegistry.instance().types, "file", _ParsedOnceSource)


@contextmanager
def _set(mapping: MutableMapping[str, Any], name: str, value: Any) -> Iterator[None]:
    """Another value for a name while the block lasts; nothing where there is no such name."""
    if name not in mapping:
        yield
        return
    before = mapping[name]
    mapping[name] = value
    try:
        yield
    finally:
        mapping[name] = before


class _ParsedOnceSource(FileConfigSource):
    """Hydra's source of files: each text is parsed once in a process, a mistake reported with its line."""

    def load_config(self, config_path: str) -> ConfigResult:
        path = Path(self.path, self._normalize_file_name(config_path))
        if not path.is_file():
            return super().load_config(config_path)
        try:
            text = read_file(path, Path(self.path)).decode("utf-8")
            value = _parse(text)
        except (OSError, ValueError, yaml.YAMLError):
            LocatedYaml(path)  # raises ConfigError with the line
            raise
        place, header = f"{self.scheme()}://{self.path}", self._get_header_dict(text[:512])
        config = OmegaConf.create({} if value is None else value)
        return ConfigResult(config=config, path=place, provider=self.provider, header=header)


def _create_defaults_list(
    repo: Any,
    config_name: str | None,
    overrides_list: list[Override],
    prepend_hydra: bool,
    skip_missing: bool,
) -> Any:
    """Hydra's list of the files to merge, worked out once for each choice of options; values do not change it."""

    def is_value(override: Override) -> bool:
        return not repo.group_exists(override.key_or_group) or isinstance(override.value(), dict)

    values = [
        override
        for override in overrides_list
        if not override.is_sweep_override() and is_value(override)
    ]
    choices = tuple(override.input_line for override in overrides_list if override not in values)
    made = make_once(
        _stamps(repo),
        (config_name, choices, prepend_hydra, skip_missing),
        lambda: create_defaults_list(
            repo, config_name, overrides_list, prepend_hydra, skip_missing
        ),
    )
    return replace(made, config_overrides=values)


# Hydra 1.4 has no such function.
_usual_map = getattr(defaults_list, "_create_interpolation_map", None)


def _create_interpolation_map(overrides: Any, defaults: list[Any], self_added: bool) -> DictConfig:
    """What interpolations in a defaults list may refer to, made only where there are some: it costs a fifth."""
    is_needed = any(not one.is_self() and one.is_interpolation() for one in defaults)
    return (
        _usual_map(overrides, defaults, self_added)
        if is_needed and _usual_map
        else OmegaConf.create()
    )


class _PinnedLoader(ConfigLoaderImpl):
    """Hydra's loader, which takes with it, into the process that composes a job, the files that the person has
    trusted: they are what was looked at there too."""

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        with _reading_pinned_files():
            super().__init__(config_search_path)
        self._pinned = list_pinned()

    def load_configuration(self, *arguments: Any, **named: Any) -> DictConfig:
        with _reading_pinned_files():
            return super().load_configuration(*arguments, **named)

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        for pinned in self._pinned:
            pin(pinned)
        # What other processes are given of Hydra's state must know its own class alone.
        with _reading_pinned_files():
            return super().load_sweep_config(master_config, sweep_overrides)


class _MergedOnceLoader(ConfigLoaderImpl):
    """Hydra's loader: the files of a defaults list are merged once for as long as no file changes, and a job that is
    among the `composed` is not composed again."""

    composed: Composed = MappingProxyType({})

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        if not (known := self.composed.get(name_overrides(sweep_overrides))):
            return super().load_sweep_config(master_config, sweep_overrides)
        job: DictConfig = pickle.loads(known)
        return job

    def _compose_config_from_defaults_list(self, defaults: list[Any], repo: Any) -> Any:
        merge = super()._compose_config_from_defaults_list
        return make_once(_stamps(repo), repr(defaults), lambda: merge(defaults=defaults, repo=repo))


def _stamps(repo: Any) -> tuple[Any, ...]:
    """Where the configuration is read from, with the time and size of every file of a folder."""
    sources = [(source.scheme(), source.path) for source in repo.get_sources()]
    return (
        *sources,
        *(state for scheme, folder in sources if scheme == "file" for state in _states(folder)),
    )


def _states(folder: str) -> Iterator[tuple[str, int, int]]:
    for path in sorted(Path(folder).rglob("*.yaml")):
        with suppress(
            FileNotFoundError
        ):  # gone by now, or what an editor keeps as a link to nowhere
            stat = path.stat()
            yield str(path), stat.st_mtime_ns, stat.st_size


# OmegaConf's loader of YAML, on libyaml's parser, which is ten times as fast.
_LOADER: Any = type("_Loader", (FastLoader, get_yaml_loader()), {})


@lru_cache(maxsize=512)
def _parse(text: str) -> Any:
    return yaml.load(text, Loader=_LOADER)


def arguments_parser() -> argparse.ArgumentParser:
    """The parser of Hydra's command line."""
    from hydra._internal.utils import get_args_parser

    return get_args_parser()


def show(flags: argparse.Namespace) -> None:
    """Let Hydra print what its `flags` ask for; it may leave with status 0. Raises what Hydra raises."""
    from hydra._internal.utils import _run_hydra

    os.environ.setdefault("HYDRA_FULL_ERROR", "")
    with _reading_once(), _set(os.environ, "HYDRA_FULL_ERROR", "1"):
        _run_hydra(
            args=flags,
            args_parser=arguments_parser(),
            task_function=lambda _: None,
            config_path=str(packaged_config_dir()),
            config_name=CONFIG_NAME,
        )


def run_composed(cfg: DictConfig, config_name: str, directory: Path, task: TaskFunction) -> Any:
    """Run a composed configuration as Hydra's job in `directory`, without composing it again; what `task` returns."""
    from hydra._internal.callbacks import Callbacks
    from hydra.core.utils import configure_log, run_job
    from hydra.types import HydraContext

    cfg.hydra.mode = RunMode.RUN
    cfg.hydra.run.dir = re.sub(r"(\\*)\$\{", r"\1\1\\${", str(directory))
    with hydra_in(None) as made:
        callbacks = Callbacks(cfg)
        callbacks.on_run_start(config=cfg, config_name=config_name)
        context = HydraContext(config_loader=made.config_loader, callbacks=callbacks)
        configure_log(cfg.hydra.hydra_logging, cfg.hydra.verbose)
        ended = run_job(
            task, cfg, job_dir_key="hydra.run.dir", job_subdir_key=None, hydra_context=context
        )
        callbacks.on_run_end(config=cfg, config_name=config_name, job_return=ended)
        return ended.return_value


def start_multirun(
    of: Composition,
    task: Callable[..., Any],
    launcher: type[Launcher] | None = None,
    jobs: Composed = MappingProxyType({}),
) -> None:
    """Hand a multirun over to Hydra, which composes the jobs and launches them. A `launcher` of this process is that of
    `hydra/launcher=aeon`, and does not compose `jobs` again."""
    with hydra_in(of.config_dir, as_usual=launcher is None) as made:
        if launcher is not None:
            made.config_loader.composed = jobs  # type: ignore[attr-defined]
            plugins = Plugins.instance()
            plugins.register(launcher)
            # Hydra 1.3 takes plugins from packages of its own alone.
            vars(plugins)["is_in_toplevel_plugins_module"] = lambda _: True
        try:
            made.multirun(of.config_name, task, list(of.overrides))
        finally:
            vars(Plugins.instance()).pop("is_in_toplevel_plugins_module", None)


def name_overrides(overrides: Iterable[str]) -> tuple[str, ...]:
    """What tells a job from the others of its multirun: its overrides but for Hydra's own."""
    return tuple(text.lstrip("+") for text in overrides if not re.match(r"[+~]*hydra[./]", text))


def sweep_jobs(of: Composition, cfg: DictConfig) -> list[list[str]]:
    """The overrides of each job of a composed sweep, in Hydra's order; none where another sweeper than Hydra's own
    draws values as it goes. Raises ConfigError for what cannot be read."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    if cfg.hydra.sweeper.get("_target_") != f"{BasicSweeper.__module__}.BasicSweeper":
        return []
    params = [f"{key}={value}" for key, value in (cfg.hydra.sweeper.get("params") or {}).items()]
    with hydra_in(of.config_dir) as made:
        try:
            parsed = OverridesParser.create(config_loader=made.config_loader).parse_overrides(
                [*params, *of.overrides]
            )
            return list(BasicSweeper.split_arguments(parsed, None)[0])
        except HYDRA_ERRORS as error:
            raise composition_error(error) from None
