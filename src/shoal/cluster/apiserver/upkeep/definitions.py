"""Serves the kinds that CustomResourceDefinitions define, from the moment they are accepted until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from shoal.cluster.apiserver.apply import record_update
from shoal.cluster.apiserver.custom import CLEANUP, DEFINITIONS, definition_status, kinds_of
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.state import State
from shoal.cluster.apiserver.storage import ChangeType, StorageFailed
from shoal.cluster.apiserver.upkeep.lasting import PAUSE

_REFUSED_PAUSE = 5.0

_log = structlog.get_logger(__name__)


class Definitions:
    """Keeps the registry equal to the definitions that are established, and writes their status.

    ``delete`` deletes one object of a custom kind (storage, namespace, name) as any client would.
    """

    def __init__(
        self, state: State, delete: Callable[[str, str, str], Awaitable[None]], now: Callable[[], str]
    ) -> None:
        self._state = state
        self._delete = delete
        self._now = now
        self._served: dict[str, tuple[Any, ...]] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}

    def load(self) -> None:
        """Serves what was established before the server stopped."""
        for definition in self._state.list(DEFINITIONS):
            try:
                self._serve(definition)
            except Exception:
                # One that cannot be read must not keep the server from starting.
                _log.exception("definition not served", definition=definition["metadata"]["name"])

    def stop(self) -> None:
        """Leaves unfinished deletions to the next start."""
        for task in self._ending.values():
            task.cancel()

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Follows the definitions for ever; may be begun anew after a fault."""
        watcher = self._state.store.watch(DEFINITIONS, None, since=self._state.store.revision)
        try:
            definitions = list(self._state.list(DEFINITIONS))
            for name in set(self._served) - {definition["metadata"]["name"] for definition in definitions}:
                self._forget(name)
            for definition in definitions:
                await self._follow(definition, tasks)
            while True:
                changes = await watcher.changes()
                for type_, change in changes:
                    name = change.record.name
                    if type_ is ChangeType.DELETED:
                        self._forget(name)
                    current = self._state.get(DEFINITIONS, "", name)
                    if current is not None:
                        await self._follow(current, tasks)
                if any(type_ is ChangeType.DELETED for type_, _ in changes):
                    await self._settle_names()
        finally:
            watcher.close()

    async def _settle_names(self) -> None:
        """A name that was taken may be free now."""
        for definition in list(self._state.list(DEFINITIONS)):
            await self._write_status(definition)

    async def _follow(self, definition: Object, tasks: asyncio.TaskGroup) -> None:
        name = definition["metadata"]["name"]
        try:
            # A schema may have thousands of fields and rules. It is compiled in a thread, and before the definition is
            # said to be established: then ``_serve`` has it at hand, and serves its kinds at once.
            compiled = () if self._is_served(definition) else await asyncio.to_thread(kinds_of, definition)
            await self._write_status(definition)
            current = self._state.get(DEFINITIONS, "", name)
            if current is None:
                return
            self._serve(current)
            del compiled
            is_ending = "deletionTimestamp" in current["metadata"] and name not in self._ending
            finalizers = current["metadata"].get("finalizers")
            # Without any, a server that was killed has not come to its last step.
            if is_ending and (not finalizers or CLEANUP in finalizers):
                task = tasks.create_task(self._end(name))
                self._ending[name] = task
                task.add_done_callback(lambda _task: self._ending.pop(name, None))
        except StorageFailed:
            raise  # which is no fault of this one: all are followed anew
        except Exception:
            # One definition that cannot be followed must not keep the others waiting.
            _log.exception("definition not followed", definition=name)

    async def _write_status(self, definition: Object) -> None:
        name = definition["metadata"]["name"]
        kind = self._state.registry.stored(DEFINITIONS)
        assert kind is not None

        def change(current: Object) -> Object | None:
            others = [one for one in self._state.list(DEFINITIONS) if one["metadata"]["name"] != name]
            status = definition_status(current, others, now=self._now())
            if status == current.get("status"):
                return None
            new = {**current, "metadata": dict(current["metadata"]), "status": status}
            record_update(
                kind.schema,
                current,
                new,
                manager="kube-apiserver",
                subresource="status",
                now=self._now(),
                resets=kind.rules.resets.get("status", ()),
            )
            return new

        await self._state.update(DEFINITIONS, "", name, change)

    def _is_served(self, definition: Object) -> bool:
        """Whether its kinds are served as it describes them; their names may have to change."""
        metadata = definition["metadata"]
        served = self._served.get(metadata["name"])
        return served is not None and served[:2] == (metadata["uid"], metadata.get("generation"))

    def _serve(self, definition: Object) -> None:
        name, spec = definition["metadata"]["name"], definition["spec"]
        if not _is_established(definition) or self._state.registry.is_builtin_resource(name):
            return
        metadata = definition["metadata"]
        shape = (metadata["uid"], metadata.get("generation"), definition["status"].get("acceptedNames"))
        if self._served.get(name) == shape:
            return
        kinds = kinds_of(definition)
        versions = {version["name"]: version for version in spec["versions"]}
        served = tuple(kind for kind in kinds if versions[kind.version]["served"])
        stored = next(kind for kind in kinds if versions[kind.version]["storage"])
        self._state.registry.replace_custom(name, served, stored)
        self._served[name] = shape

    def _forget(self, name: str) -> None:
        if self._served.pop(name, None) is not None:
            self._state.registry.replace_custom(name, (), None)

    async def _end(self, name: str) -> None:
        """Lets a definition go after the last of its objects, however often that fails."""
        while True:
            try:
                await self._clean_up(name)
                await self._state.update(DEFINITIONS, "", name, _without_cleanup)
                # All that was staged before is there by now: also what was created in the very moment of the marking.
                await self._clean_up(name)
                await self._remove(name)
            except Exception:
                _log.exception("definition not ended", definition=name)
                await asyncio.sleep(PAUSE)
            else:
                return

    async def _clean_up(self, name: str) -> None:
        """Deletes all objects of a kind whose definition shall go."""
        if self._state.registry.is_builtin_resource(name):
            return
        watcher = self._state.store.watch(name, None, since=self._state.store.revision)
        try:
            while records := self._state.store.page(name, None).records:
                is_refused = False
                for record in records:
                    try:
                        await self._delete(name, record.namespace, record.name)
                    except Refused as refusal:
                        if refusal.status.code != 404:
                            is_refused = True
                            _log.warning("object not deleted", kind=name, name=record.name, why=str(refusal))
                if is_refused:
                    # Who refuses it, a webhook for instance, may think otherwise later, and nothing here would tell.
                    await asyncio.sleep(_REFUSED_PAUSE)
                elif self._state.store.count(name):
                    await watcher.changes()
        finally:
            watcher.close()

    async def _remove(self, name: str) -> None:
        """Takes the definition out of the store once nothing holds it."""
        current = self._state.get(DEFINITIONS, "", name)
        if current is not None and not current["metadata"].get("finalizers"):
            await self._delete(DEFINITIONS, "", name)


def _is_established(definition: Object) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _without_cleanup(definition: Object) -> Object | None:
    metadata = definition["metadata"]
    if CLEANUP not in metadata.get("finalizers", ()):
        return None
    finalizers = [one for one in metadata["finalizers"] if one != CLEANUP]
    metadata = {key: value for key, value in metadata.items() if key != "finalizers"}
    if finalizers:
        metadata["finalizers"] = finalizers
    return {**definition, "metadata": metadata}
