"""The only module that uses Hydra's private parts: its state, its sources of files, its command
line and its jobs.

`make test-hydra-next` reports what the next version of Hydra breaks here.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
from collections.abc import Callable, Container, Iterable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import yaml
from hydra._internal import hydra as hydra_main
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.hydra import Hydra
from hydra._internal.sources_registry import SourcesRegistry
from hydra._internal.utils import create_config_search_path
from hydra.core.config_loader import ConfigLoader
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

from aeon.config.compose.literal import CONFIG_NAME, Composition, escape_interpolations
from aeon.config.compose.problems import HYDRA_ERRORS, composition_error, hydra_errors
from aeon.files.fast_yaml import refuse_excess
from aeon.files.located_yaml import LocatedYaml
from aeon.files.pinned import list_pinned, pin, read_file
from aeon.files.resources import resource_root


def packaged_config_dir() -> Path:
    """Return the folder of the packaged configuration."""
    return resource_root() / "conf"


@contextmanager
def hydra_in(config_dir: Path | None, *, as_usual: bool = False) -> Iterator[Hydra]:
    """Initialise Hydra in a folder while the block lasts; its former state is restored afterwards.
    Raises ConfigError within it for a file that cannot be read. `as_usual`: other processes that
    receive its state can load it."""
    # A program that imports Aeon may use Hydra itself.
    version = VersionBase.instance()
    backup = get_gh_backup()
    version_before = version.getbase()
    # The user's own folder comes first, if there is one, then the packaged one.
    path = create_config_search_path(
        str((config_dir or packaged_config_dir()).expanduser().resolve())
    )
    if config_dir is not None:
        path.prepend(
            "aeon", f"file://{packaged_config_dir()}", anchor=SearchPathQuery(provider="schema")
        )
    try:
        GlobalHydra.instance().clear()
        with _set_up(as_usual=as_usual):
            yield Hydra.create_main_hydra2("aeon", path)
    finally:
        restore_gh_from_backup(backup)
        version.version_base = version_before


@contextmanager
def _set_up(*, as_usual: bool = False) -> Iterator[None]:
    """Let Hydra read files by `_FileSource`, with the defaults of its own version; `as_usual`: by
    `_PinnedLoader`."""
    Plugins.instance()  # fills the registry of sources
    if hydra.__version__.startswith("1.3."):  # Hydra 1.4 has only its own, and warns here
        setbase("1.3")
    reading = (
        _set(vars(hydra_main), "ConfigLoaderImpl", _PinnedLoader)
        if as_usual
        else _read_pinned_files()
    )
    with reading:
        yield


def _read_pinned_files() -> AbstractContextManager[None]:
    return _set(SourcesRegistry.instance().types, "file", _FileSource)


@contextmanager
def _set(mapping: MutableMapping[str, Any], name: str, value: object) -> Iterator[None]:
    """Replace the value of a name while the block lasts."""
    before = mapping[name]
    mapping[name] = value
    try:
        yield
    finally:
        mapping[name] = before


def read_packaged(text: str) -> Any:
    """Return the values of a packaged file. libyaml reads ten times as fast as OmegaConf, and a
    test ensures that it reads every packaged file with the same meaning."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}


class _FileSource(FileConfigSource):
    """Hydra's source of files, which reads the trusted version of a file, and reports a mistake in
    a file with its line."""

    def load_config(self, config_path: str) -> ConfigResult:
        folder = Path(self.path)
        path = folder / self._normalize_file_name(config_path)
        if not path.is_file():
            return super().load_config(config_path)
        try:
            text = read_file(path, folder).decode("utf-8")
            if folder.is_relative_to(packaged_config_dir()):
                config = OmegaConf.create(read_packaged(text))
            else:
                refuse_excess(text)
                config = OmegaConf.create(text)
        except (OSError, ValueError, yaml.YAMLError):
            LocatedYaml(path)  # raises ConfigError with the line
            raise
        place = f"{self.scheme()}://{self.path}"
        header = self._get_header_dict(text[:512])
        return ConfigResult(config=config, path=place, provider=self.provider, header=header)


class _PinnedLoader(ConfigLoaderImpl):
    """Hydra's loader, which carries the trusted files into the process that composes a job: their
    content is trusted there too."""

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        with _read_pinned_files():
            super().__init__(config_search_path)
        self._pinned = list_pinned()

    def load_configuration(self, *arguments: Any, **named: Any) -> DictConfig:
        with _read_pinned_files():
            return super().load_configuration(*arguments, **named)

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        for pinned in self._pinned:
            pin(pinned)
        # Hydra's state, which other processes receive, must refer to its own class alone.
        with _read_pinned_files():
            return super().load_sweep_config(master_config, sweep_overrides)


_MOST_CHOICES = 32
_merged: dict[tuple[str, ...], bytes] = {}
"""By the choice of options, pickled: that is read in a seventh of the time of a deep copy."""
_packaged_groups: set[str] = set()


def compose_values(of: Composition, overrides: Sequence[str], loader: ConfigLoader) -> DictConfig:
    """Return what `hydra.compose` returns without Hydra's part; the packaged files of one choice of
    options are merged once in a process, since they do not change.

    Gain: a composition after the first takes 0.002 s of CPU instead of 0.13 s (rows of a batch and
    jobs of a sweep have overrides of their own).
    """
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    may_differ = any(_is_elsewhere(override) for override in parsed)
    if of.config_dir is not None or of.config_name != CONFIG_NAME or may_differ:
        return hydra.compose(of.config_name, list(overrides))
    groups = _list_packaged_groups(loader)
    values = [override for override in parsed if _sets_value(override, groups)]
    given = {override.input_line for override in values}
    choices = tuple(text for text in overrides if text not in given)
    made = _compose_choices(choices)
    ConfigLoaderImpl._apply_overrides_to_config(values, made)
    return made


def _list_packaged_groups(loader: ConfigLoader) -> Container[str]:
    if not _packaged_groups:
        _packaged_groups.update(loader.list_groups(""))
    return _packaged_groups


def _compose_choices(choices: tuple[str, ...]) -> DictConfig:
    """Return the merged packaged files of these options, as a copy: overrides change it."""
    if choices not in _merged:
        # Rows of a batch may choose options without end.
        if len(_merged) >= _MOST_CHOICES:
            _merged.clear()
        _merged[choices] = pickle.dumps(hydra.compose(CONFIG_NAME, list(choices)))
    made: DictConfig = pickle.loads(_merged[choices])
    return made


class ConfigPart(NamedTuple):
    """A file of a composition: its path, its group (empty for the primary file), and its values at
    their place in the whole."""

    path: Path
    group: str
    values: Any


def load_parts(of: Composition, loader: ConfigLoader) -> list[ConfigPart]:
    """Return the files of a composition without Hydra's own, in the order in which they are merged.
    Raises ConfigError."""
    assert isinstance(loader, ConfigLoaderImpl)
    with hydra_errors():
        overrides = [text for text in of.overrides if not text.startswith("hydra.mode=")]
        chosen = loader.compute_defaults_list(of.config_name, overrides, RunMode.RUN)
        # With the folders of hydra.searchpath.
        _, repository = loader._parse_overrides_and_create_caching_repo(of.config_name, overrides)
        named = [each for each in chosen.defaults if each.config_path is not None]
        loaded = [
            (str(each.config_path), loader._load_single_config(each, repository))
            for each in named
            if not str(each.config_path).startswith("hydra/")
        ]
    return [
        ConfigPart(
            Path(result.path.removeprefix("file://"), f"{name}.yaml"),
            name.rpartition("/")[0],
            result.config,
        )
        for name, result in loaded
        if result.path.startswith("file://")
    ]


def _is_elsewhere(override: Override) -> bool:
    return override.is_sweep_override() or override.key_or_group == "hydra.searchpath"


def _sets_value(override: Override, groups: Container[str]) -> bool:
    if override.is_hydra_override():
        return False
    return override.key_or_group not in groups or isinstance(override.value(), dict)


def show(given: argparse.Namespace, of: Composition) -> str:
    """Return what Hydra prints for the `given` flags about the composition. Raises ConfigError."""
    from hydra._internal.utils import _run_hydra, get_args_parser

    own = of.config_dir
    flags = argparse.Namespace(**{**vars(given), "help": False})
    flags.overrides = list(of.overrides)
    flags.config_name = of.config_name
    flags.config_path = str(own) if own else None
    flags.config_dir = str(packaged_config_dir()) if own else None
    # With it set, Hydra raises its errors; otherwise it prints them and exits.
    os.environ.setdefault("HYDRA_FULL_ERROR", "")
    shown = StringIO()
    # Hydra exits the program after its own help.
    with (
        redirect_stdout(shown),
        suppress(SystemExit),
        hydra_errors(),
        _set_up(),
        _set(os.environ, "HYDRA_FULL_ERROR", "1"),
    ):
        _run_hydra(
            args=flags,
            args_parser=get_args_parser(),
            task_function=lambda _: None,
            config_path=str(packaged_config_dir()),
            config_name=CONFIG_NAME,
        )
    return shown.getvalue()


def run_composed(cfg: DictConfig, config_name: str, directory: Path, task: TaskFunction) -> Any:
    """Run a composed configuration as Hydra's job in `directory`, and return the result of `task`.
    It is not composed again: that takes 0.14 s of CPU, and on an error Hydra would print the
    overrides, the task too."""
    from hydra._internal.callbacks import Callbacks
    from hydra.core.utils import configure_log, run_job
    from hydra.types import HydraContext

    cfg.hydra.mode = RunMode.RUN
    cfg.hydra.run.dir = escape_interpolations(str(directory))
    with hydra_errors(), hydra_in(None) as made:
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
) -> None:
    """Hand a multirun over to Hydra, which composes the jobs and launches them. A `launcher` of
    this process is that of `hydra/launcher=aeon`. Raises ConfigError."""
    with hydra_errors(), hydra_in(of.config_dir, as_usual=launcher is None) as made:
        if launcher is not None:
            plugins = Plugins.instance()
            plugins.register(launcher)
            # Hydra 1.3 accepts plugins only from its own packages.
            vars(plugins)["is_in_toplevel_plugins_module"] = lambda _: True
        try:
            made.multirun(of.config_name, task, list(of.overrides))
        finally:
            vars(Plugins.instance()).pop("is_in_toplevel_plugins_module", None)


def name_overrides(overrides: Iterable[str]) -> tuple[str, ...]:
    """Return the overrides that distinguish a job of a multirun: its overrides without Hydra's
    own."""
    return tuple(text.lstrip("+") for text in overrides if not re.match(r"[+~]*hydra[./]", text))


def sweep_jobs(of: Composition, cfg: DictConfig) -> list[list[str]]:
    """Return the overrides of each job of a composed sweep, in Hydra's order; none where another
    sweeper than Hydra's own draws values as it goes. Raises ConfigError for overrides that cannot
    be read."""
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
