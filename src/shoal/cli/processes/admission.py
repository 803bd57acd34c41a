"""Webhooks in a process: served, and made known to the API server before all is called ready.

They are registered only once they are served, and in one step with the certificate that they are trusted by: at no
moment does the API server know of a webhook that it cannot call. What keeps it from calling them later (an address or a
bundle that somebody changed, a registration that was deleted) is put right; whatever else people change in a
registration stays as they want it until the next start. One that is offered no more is taken back, and one that says
whose it is belongs to whoever takes that off: two processes never take it from each other in turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog

from shoal.api.meta import Document, PartialObject, Resource
from shoal.cli.registrations import marked
from shoal.kube import Change, Client, Conflict, Manager, NotFound
from shoal.kube.admission import AdmissionServer, CertificateSource
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS, encoded_bundle

log = structlog.get_logger("shoal.cli.admission")

REGISTRATIONS: Final[Mapping[str, Resource[Document]]] = {
    resource.kind: resource for resource in (MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS)
}
_MANAGER = "shoal-webhooks"


class Admission:
    """Serves webhooks for as long as a manager runs; ``ready`` is set once the API server can call them."""

    def __init__(
        self,
        manager: Manager,
        server: AdmissionServer,
        source: CertificateSource,
        configurations: Sequence[Mapping[str, Any]],
        *,
        retired: Collection[tuple[str, str]] = (),
        marks: Mapping[str, str] | None = None,
    ) -> None:
        """``retired`` are kinds and names of what earlier runs registered, and nobody answers any more.

        With ``marks``, labels that say whose registrations are, all that has them and is not offered is taken back.
        """
        self.ready = asyncio.Event()
        self._client = manager.client
        self._server = server
        self._source = source
        self._configurations = [marked(body, marks) for body in configurations] if marks else configurations
        self._marks = marks
        self._retired = retired
        self._names = {(body["kind"], body["metadata"]["name"]) for body in configurations}
        # One picture of a kind for all of ours: there are a few dozen in a cluster, and a connection each costs more.
        for kind in sorted({body["kind"] for body in configurations}):
            informer = manager.cache.informer(REGISTRATIONS[kind].view(PartialObject))
            informer.subscribe(partial(self._changed, kind))
        manager.probes.add_ready("admission", self._check)
        manager.add_service(self._run)

    async def _run(self) -> None:
        await self._server.run(self._source, inject=self._register)

    def _changed(self, kind: str, change: Change[PartialObject]) -> None:
        if (kind, change.latest.metadata.name) in self._names:
            self._server.look_again()

    def _check(self) -> str:
        return self._server.check() or ("" if self.ready.is_set() else "the webhooks are not registered yet")

    async def _register(self, authorities: bytes) -> None:
        """Writes what is missing; called at every change of a registration, and now and then."""
        is_first = not self.ready.is_set()
        write = _register if is_first else _keep
        steps = [write(self._client, registration(body, authorities)) for body in self._configurations]
        if is_first:
            steps += [_retire(self._client, REGISTRATIONS[kind], name) for kind, name in self._retired]
            if self._marks:
                steps += [_take_back(self._client, kind, self._marks, self._names) for kind in REGISTRATIONS]
        # One that cannot be written keeps no other from being written; the server tries again.
        for outcome in await asyncio.gather(*steps, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        if is_first:
            log.info("all webhooks are registered", count=len(self._configurations))
        self.ready.set()


def registration(body: Mapping[str, Any], authorities: bytes) -> Mapping[str, Any]:
    """A webhook configuration that has the API server trust these authorities; with none it is left to others."""
    if not authorities:
        return body
    bundle = {"caBundle": encoded_bundle(authorities)}
    entries = [{**entry, "clientConfig": entry["clientConfig"] | bundle} for entry in body["webhooks"]]
    return {**body, "webhooks": entries}


def holds(present: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; entries of a list are found by their names where they have some."""
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(holds(present.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and all(isinstance(entry, Mapping) and "name" in entry for entry in wanted):
        named = {entry.get("name"): entry for entry in present or ()}
        return all(holds(named.get(entry["name"]), entry) for entry in wanted)
    return bool(present == wanted)


def _address(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of a registration decides whether the API server can call us."""
    return {"webhooks": [{key: entry[key] for key in ("name", "clientConfig")} for entry in body["webhooks"]]}


async def _retire(client: Client, resource: Resource[Document], name: str) -> None:
    """Deletes a registration that is ours: the API server would refuse what it is for, since it gets no answer."""
    with suppress(NotFound, Conflict):
        present = await client.get(resource, name)
        writers = {entry.get("manager") for entry in present.content["metadata"].get("managedFields") or ()}
        if _MANAGER in writers:
            await client.delete(resource, name, uid=present.metadata.uid)
            log.info("webhooks taken back", resource=str(resource), name=name)


async def _take_back(client: Client, kind: str, marks: Mapping[str, str], kept: Collection[tuple[str, str]]) -> None:
    """Deletes what has our marks and is not offered."""
    resource = REGISTRATIONS[kind]
    selector = ",".join(f"{label}={value}" for label, value in marks.items())
    for found in (await client.list(resource.view(PartialObject), label_selector=selector)).items:
        if (kind, found.metadata.name) not in kept:
            with suppress(NotFound, Conflict):
                await client.delete(resource, found.metadata.name, uid=found.metadata.uid)
                log.info("webhooks taken back", resource=str(resource), name=found.metadata.name)


async def _register(client: Client, wanted: Mapping[str, Any]) -> None:
    """Has a registration as it is wanted, whoever had it before."""
    if not holds(await _present(client, wanted), wanted):
        await _apply(client, wanted)


async def _keep(client: Client, wanted: Mapping[str, Any]) -> None:
    """Has a registration lead to us, unless somebody else has taken it over."""
    present = await _present(client, wanted)
    marks = wanted["metadata"].get("labels")
    is_ours = not marks or not present or holds(present["metadata"].get("labels"), marks)
    if is_ours and not holds(present, _address(wanted)):
        await _apply(client, wanted)


async def _present(client: Client, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return (await client.get(REGISTRATIONS[wanted["kind"]], wanted["metadata"]["name"])).content
    except NotFound:
        return {}


async def _apply(client: Client, wanted: Mapping[str, Any]) -> None:
    resource, name = REGISTRATIONS[wanted["kind"]], wanted["metadata"]["name"]
    await client.apply(resource, wanted, name=name, field_manager=_MANAGER, force=True)
    log.info("webhooks registered", resource=str(resource), name=name)
