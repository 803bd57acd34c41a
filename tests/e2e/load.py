"""A client that keeps a cluster busy, tries again until each write is acknowledged, and remembers what it was told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from shoal.api.meta import Document, Resource
from shoal.kube import AlreadyExists, ApiError, Client, ConnectionFault, NotFound

_KINDS = {
    "ConfigMap": ("", "configmaps"),
    "Deployment": ("apps", "deployments"),
    "Job": ("batch", "jobs"),
    "Namespace": ("", "namespaces"),
    "StatefulSet": ("apps", "statefulsets"),
}
_QUICK = {"shoal.dev/sim-run-time": "400ms"}
COMPLETIONS = 5
FAILS = "Fails"
"""What is remembered of a Job that cannot succeed."""


class Load:
    """Workloads in one namespace, each written by one writer, so that the last acknowledged write is what must hold."""

    def __init__(self, client: Client, namespace: str, *, seed: int, leaves: bool = False) -> None:
        """One that ``leaves`` deletes its namespace in the end.

        It counts failures by Job and not by index: otherwise a failed pod is kept until another takes its place, which
        a namespace that is being deleted does not admit, and so it is never gone, in Kubernetes as here.
        """
        self.namespace = namespace
        self.wanted: dict[tuple[str, str], Any] = {}
        """By kind and name: the replicas, a Job's completions, a ConfigMap's value; None where it was deleted."""
        self.writes = 0
        self._client = client
        self._leaves = leaves
        self._random = random.Random(seed)

    async def keep_busy(self, ended: asyncio.Event, *, writers: int, rounds: int) -> None:
        """Creates, scales and deletes until the event is set, or each writer has done its rounds; then it may leave."""
        await self._create("Namespace", self.namespace, {}, wanted="Active")
        async with asyncio.TaskGroup() as tasks:
            for number in range(writers):
                tasks.create_task(self._write(f"w{number}", ended, rounds))
        if self._leaves:
            await self._delete("Namespace", self.namespace)
            self.wanted = dict.fromkeys(self.wanted)

    async def _write(self, name: str, ended: asyncio.Event, rounds: int) -> None:
        for number in range(rounds):
            if ended.is_set():
                return
            await self._round(f"{name}-{number}")
            await asyncio.sleep(self._random.uniform(0.05, 0.5))

    async def _round(self, name: str) -> None:
        choose = self._random.randint
        await self._create("Deployment", f"{name}-web", _replicated(choose(1, 4)))
        await self._create("StatefulSet", f"{name}-db", {**_replicated(choose(1, 3)), "serviceName": "db"})
        await self._create("Job", f"{name}-plain", _job(fail_first=choose(0, 1)), wanted=COMPLETIONS)
        indexed = {"completionMode": "Indexed", **({} if self._leaves else {"backoffLimitPerIndex": 3})}
        await self._create("Job", f"{name}-indexed", {**_job(fail_first=choose(0, 1)), **indexed}, wanted=COMPLETIONS)
        await self._create("Job", f"{name}-failing", {**_job(outcome="OOMKilled"), "backoffLimit": 0}, wanted=FAILS)
        await self._create("ConfigMap", f"{name}-note", {})
        await self._note(f"{name}-note", "first")
        for _ in range(choose(1, 3)):
            await self._scale("Deployment", f"{name}-web", choose(0, 6))
            await self._note(f"{name}-note", str(choose(0, 10**6)))
            await asyncio.sleep(self._random.uniform(0, 0.2))
        await self._scale("StatefulSet", f"{name}-db", choose(0, 4))
        for kind, suffix in (("Deployment", "web"), ("StatefulSet", "db"), ("Job", "indexed"), ("ConfigMap", "note")):
            if choose(0, 2) == 0:
                await self._delete(kind, f"{name}-{suffix}")

    async def _create(self, kind: str, name: str, spec: dict[str, Any], *, wanted: Any = None) -> None:
        body = {"metadata": {"name": name}, **({"spec": spec} if spec else {})}
        namespace = "" if kind == "Namespace" else self.namespace
        await self._until_acknowledged(
            lambda: self._client.create(_resource(kind), body, namespace), but_for=AlreadyExists
        )
        self.wanted[kind, name] = spec.get("replicas", wanted)

    async def _scale(self, kind: str, name: str, replicas: int) -> None:
        await self._until_acknowledged(lambda: self._client.scale(_resource(kind), name, replicas, self.namespace))
        self.wanted[kind, name] = replicas

    async def _note(self, name: str, value: str) -> None:
        patch = {"data": {"value": value}}
        await self._until_acknowledged(
            lambda: self._client.merge_patch(_resource("ConfigMap"), name, patch, self.namespace)
        )
        self.wanted["ConfigMap", name] = value

    async def _delete(self, kind: str, name: str) -> None:
        namespace = "" if kind == "Namespace" else self.namespace
        await self._until_acknowledged(
            lambda: self._client.delete(_resource(kind), name, namespace, propagation="Background"),
            but_for=NotFound,
        )
        self.wanted[kind, name] = None

    async def _until_acknowledged(
        self, write: Callable[[], Awaitable[object]], *, but_for: type[ApiError] | None = None
    ) -> None:
        """``but_for`` is what an earlier try whose answer was lost looks like."""
        while True:
            try:
                await write()
            except ConnectionFault:
                pass
            except ApiError as error:
                if but_for is not None and isinstance(error, but_for):
                    break
                if not error.is_retryable and error.code != 409:
                    raise
            else:
                break
            await asyncio.sleep(0.1)
        self.writes += 1


def _resource(kind: str) -> Resource[Document]:
    group, plural = _KINDS[kind]
    return Resource(type=Document, group=group, version="v1", kind=kind, plural=plural, namespaced=kind != "Namespace")


def _replicated(replicas: int) -> dict[str, Any]:
    labels = {"app": "load"}
    return {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": _CONTAINERS}},
    }


def _job(*, fail_first: int = 0, outcome: str = "Succeeded") -> dict[str, Any]:
    annotations = {**_QUICK, "shoal.dev/sim-outcome": outcome, "shoal.dev/sim-fail-first": str(fail_first)}
    return {
        "completions": COMPLETIONS,
        "parallelism": 3,
        "template": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": _CONTAINERS},
        },
    }


_CONTAINERS = [{"name": "main", "image": "none"}]
