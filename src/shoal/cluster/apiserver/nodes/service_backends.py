"""The pods behind a Service, as its ready endpoints say.

An endpoint counts only where it is a pod of the Service's namespace, with the address that the pod has: whoever may
write Endpoints must not lead the server anywhere else. A Service that leads out of the cluster, by its endpoints or by
an external name, leads nowhere from here.
"""

from __future__ import annotations

import random

import aiohttp

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.nodes.pod_connections import PodConnector, PodDialer, PodHost
from shoal.cluster.apiserver.reader import Reader

_OUTSIDE = "the API server connects to pods alone: name a webhook outside of the cluster by its URL"


class ServiceBackends:
    """Finds the pod that a request to a Service goes to."""

    def __init__(self, state: Reader, dialer: PodDialer) -> None:
        self._state = state
        self._dialer = dialer

    def connector(self) -> aiohttp.BaseConnector:
        """Opens connections to backends."""
        return PodConnector(self._dialer)

    def backend(self, namespace: str, name: str, port: int) -> str:
        """A backend of a Service's port as ``host:port`` for the connector, chosen by chance; raises LookupError."""
        service = self._state.get("services", namespace, name)
        if service is None:
            raise LookupError(f'service "{name}" not found')
        if service["spec"].get("type") == "ExternalName":
            raise LookupError(f'service "{name}" has the type ExternalName: {_OUTSIDE}')
        wanted = next((one for one in service["spec"].get("ports") or () if one["port"] == port), None)
        if wanted is None:
            raise LookupError(f'no service port {port} found for service "{name}"')
        chosen = self.chosen(namespace, name, wanted.get("name", ""))
        if chosen is None:
            raise LookupError(self._why_none(namespace, name))
        pod, number = chosen
        return f"{PodHost.of(pod)}:{number}"

    def chosen(self, namespace: str, name: str, port: str) -> tuple[Object, int] | None:
        """A pod behind a Service's port, by the port's name, and the port's number there; None where there is none."""
        endpoints = self._state.get("endpoints", namespace, name) or {}
        choices = [
            (pod, int(one["port"]))
            for subset in endpoints.get("subsets") or ()
            for one in subset.get("ports") or ()
            if one.get("name", "") == port and one.get("protocol", "TCP") == "TCP"
            for address in subset.get("addresses") or ()
            if (pod := self._pod(address, namespace)) is not None
        ]
        return random.choice(choices) if choices else None  # noqa: S311 - any of them will do

    def _pod(self, address: Object, namespace: str) -> Object | None:
        target = address.get("targetRef") or {}
        if target.get("namespace") != namespace or target.get("kind", "Pod") != "Pod":
            return None
        pod = self._state.get("pods", namespace, target.get("name", ""))
        known = (pod.get("status") or {}).get("podIPs") or () if pod is not None else ()
        return pod if any(one.get("ip") == address["ip"] for one in known) else None

    def _why_none(self, namespace: str, name: str) -> str:
        endpoints = self._state.get("endpoints", namespace, name) or {}
        is_outside = any(
            self._pod(address, namespace) is None
            for subset in endpoints.get("subsets") or ()
            for address in subset.get("addresses") or ()
        )
        words = f'no endpoints available for service "{name}"'
        return f"{words} that are pods: {_OUTSIDE}" if is_outside else words
