"""Plugins of third parties, found as entry points ``shoal.training.plugins``: the class of a plugin, or a plugin.

One that does not load is told of and left out; it stops nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import structlog

from shoal.training.framework.plugin import Plugin

log = structlog.get_logger("shoal.training.framework")

ENTRY_POINTS: Final = "shoal.training.plugins"


def third_party(taken: Iterable[str]) -> list[Plugin]:
    """What entry points bring, in the order of their names; a name that is taken is told of and left out."""
    known = set(taken)
    found: list[Plugin] = []
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value)):
        plugin = _loaded(entry)
        if plugin is None:
            continue
        if plugin.name in known:
            log.warning("plugin left out: its name is taken", plugin=plugin.name, entry_point=entry.value)
            continue
        known.add(plugin.name)
        found.append(plugin)
    return found


def _loaded(entry: EntryPoint) -> Plugin | None:
    try:
        loaded = entry.load()
        plugin = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        # Somebody else's code, which may fail in any way.
        log.error("plugin left out: it does not load", entry_point=entry.value, name=entry.name, error=repr(error))
        return None
    if not isinstance(plugin, Plugin) or not plugin.name:
        log.error("plugin left out: it is no Plugin with a name", entry_point=entry.value, name=entry.name)
        return None
    if plugin.runs is not None:
        log.error("plugin left out: pods are run by JobSets alone", entry_point=entry.value, name=entry.name)
        return None
    return plugin
