"""Plugins by their entry points. One that is no use is told of and left out; it stops nobody else's."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import structlog

from shoal.scheduler.configuration import PluginChoice
from shoal.scheduler.configuration.file import OPTIONAL_PLUGINS
from shoal.scheduler.plugins.asking import Plugins
from shoal.scheduler.plugins.surface import FUNCTIONS, Arguments, Plugin
from shoal.scheduler.session.settings import PLUGINS

log = structlog.get_logger("shoal.scheduler.plugins")

ENTRY_POINTS: Final = "shoal.scheduler.plugins"
BUILT_IN: Final = frozenset({*PLUGINS, *OPTIONAL_PLUGINS})


def installed_names() -> Collection[str]:
    """The names of all plugins that packages bring, whether they take part or not."""
    return _installed().keys()


def load_plugins(choices: Sequence[PluginChoice]) -> Plugins:
    """Those plugins of third parties that the configuration names, in its order."""
    installed = _installed()
    found = [_loaded(installed[one.name], one.arguments) for one in choices if one.name in installed]
    return Plugins([plugin for plugin in found if plugin is not None])


def _installed() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value)):
        if entry.name in BUILT_IN or entry.name in found:
            whose = "comes with Shoal" if entry.name in BUILT_IN else "was found before"
            log.warning("plugin left out: its name is taken", plugin=entry.name, entry_point=entry.value, by=whose)
            continue
        found[entry.name] = entry
    return found


def _loaded(entry: EntryPoint, arguments: Arguments) -> Plugin | None:
    try:
        loaded = entry.load()
        offering = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        # Somebody else's code, which may fail in any way.
        log.error("plugin left out: it does not load", plugin=entry.name, entry_point=entry.value, error=repr(error))
        return None
    functions = {name: getattr(offering, name) for name in FUNCTIONS if hasattr(offering, name)}
    problem = _problem(functions)
    if problem:
        log.error("plugin left out: it is none", plugin=entry.name, entry_point=entry.value, problem=problem)
        return None
    return Plugin(name=entry.name, arguments=arguments, **functions)


def _problem(functions: dict[str, Any]) -> str:
    if not functions:
        return f"it offers none of {', '.join(FUNCTIONS)}"
    for name, function in functions.items():
        wanted = FUNCTIONS[name]
        try:
            inspect.signature(function).bind(*wanted)
        except (TypeError, ValueError):
            return f"its {name} must take ({', '.join(wanted)})"
    return ""
