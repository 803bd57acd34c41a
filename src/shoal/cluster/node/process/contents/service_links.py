"""The variables by which a container finds services: those of its namespace, and ``kubernetes`` in any case."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.api.core import Service
from shoal.cluster.node.process.contents.facts import ApiAddress

_HOME = "default"
_API_SERVICE = "kubernetes"


def service_variables(
    services: Iterable[Service], namespace: str, *, has_links: bool, api_server: ApiAddress | None = None
) -> dict[str, str]:
    """The variables for a pod of a namespace.

    ``api_server`` stands for the service ``kubernetes`` where no service address can be reached.
    """
    chosen: dict[str, Service] = {}
    for service in services:
        if service.spec.cluster_ip in ("", "None") or not service.spec.ports:
            continue
        metadata = service.metadata
        if (metadata.namespace, metadata.name) == (_HOME, _API_SERVICE):
            found = service if api_server is None else _moved(service, api_server)
            chosen.setdefault(metadata.name, found)
        elif metadata.namespace == namespace and has_links:
            chosen[metadata.name] = service
    variables: dict[str, str] = {}
    for name in sorted(chosen):
        variables |= _variables(chosen[name])
    return variables


def _moved(service: Service, address: ApiAddress) -> Service:
    ports = [msgspec.structs.replace(service.spec.ports[0], port=address.port), *service.spec.ports[1:]]
    spec = msgspec.structs.replace(service.spec, cluster_ip=address.host, ports=ports)
    return msgspec.structs.replace(service, spec=spec)


def _variables(service: Service) -> dict[str, str]:
    host, ports = service.spec.cluster_ip, service.spec.ports
    prefix = _name(service.metadata.name)
    variables = {f"{prefix}_SERVICE_HOST": host, f"{prefix}_SERVICE_PORT": str(ports[0].port)}
    for port in ports:
        if port.name:
            variables[f"{prefix}_SERVICE_PORT_{_name(port.name)}"] = str(port.port)
    shown = f"[{host}]" if ":" in host else host
    for index, port in enumerate(ports):
        protocol = port.protocol or "TCP"
        address = f"{protocol.lower()}://{shown}:{port.port}"
        if index == 0:
            variables[f"{prefix}_PORT"] = address
        each = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        variables[each] = address
        variables[f"{each}_PROTO"] = protocol.lower()
        variables[f"{each}_PORT"] = str(port.port)
        variables[f"{each}_ADDR"] = host
    return variables


def _name(name: str) -> str:
    return name.replace("-", "_").upper()
