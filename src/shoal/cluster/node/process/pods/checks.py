"""One question to a container, of a probe: a command, a request, a connection or a gRPC call, and what it gave."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from shoal.api.core.pod_details import ContainerDetails, HttpGetAction, Probe
from shoal.api.meta import IntOrString
from shoal.cluster.node.process.pods.commands import Executes, TimedOut, run_in
from shoal.cluster.node.process.pods.grpc_health import Unhealthy, check_health
from shoal.cluster.node.process.pods.http_get import Answer, Unanswered, http_get
from shoal.cluster.node.process.pods.reach import Dial, Unreachable
from shoal.cluster.node.process.runtime.protocol import ContainerSpec

VERSION = "1.36"
"""The minor version of the kubelet whose behaviour this is; servers see it in ``User-Agent``."""


class Verdict(NamedTuple):
    """What a question gave, and what to tell of it."""

    is_good: bool
    message: str = ""
    """Why it is bad; of a good one, what is nevertheless odd about it."""


class Unaskable(Exception):
    """The question could not be put: nothing is known, rather than something bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The container that is asked."""

    container: ContainerDetails
    spec: ContainerSpec | None
    """As it was started; None where that is not known any more."""
    address: str
    runtime: Executes
    dial: Dial


async def ask(probe: Probe, target: Target) -> Verdict:
    """Puts a probe's question once; raises Unaskable."""
    within = float(max(1, probe.timeout_seconds))
    if probe.exec is not None:
        return await _command(target, probe.exec.command, within)
    if probe.http_get is not None:
        return await _request(target, probe.http_get, within)
    if probe.tcp_socket is not None:
        host = probe.tcp_socket.host or target.address
        return await _connection(target, host, probe.tcp_socket.port, within)
    if probe.grpc is not None:
        service = probe.grpc.service or ""
        try:
            await check_health(
                target.dial, target.address, probe.grpc.port, service, agent=f"kube-probe/{VERSION}", within=within
            )
        except Unhealthy as error:
            return Verdict(False, str(error))
        return Verdict(True)
    raise Unaskable(f"missing probe handler for container {target.container.name}")


async def request(target: Target, action: HttpGetAction, *, agent: str, within: float | None) -> Answer:
    """A probe's or hook's request; raises Unanswered and Unaskable."""
    return await http_get(
        target.dial,
        scheme=action.scheme,
        host=action.host or target.address,
        port=port_of(target.container, action.port),
        path=action.path,
        headers=[(header.name, header.value) for header in action.http_headers],
        agent=agent,
        within=within,
    )


def port_of(container: ContainerDetails, port: IntOrString) -> int:
    """A port by its number or its name; raises Unaskable."""
    number: int | str = port
    if isinstance(port, str):
        named = next((one.container_port for one in container.ports if one.name == port), None)
        number = named if named is not None else (int(port) if port.isdigit() else port)
    if isinstance(number, str):
        raise Unaskable(f"couldn't find port: {port} in container {container.name}")
    if not 0 < number < 65536:
        raise Unaskable(f"invalid port number: {number}")
    return number


async def _command(target: Target, argv: list[str], within: float) -> Verdict:
    if target.spec is None:
        raise Unaskable(f"how container {target.container.name} was started is not known any more")
    try:
        result = await run_in(target.runtime, target.spec, argv, within=within)
    except TimedOut as error:
        return Verdict(False, str(error))
    except Exception as error:
        raise Unaskable(str(error)) from error  # whatever the runtime says: the container is not to blame
    return Verdict(result.exit_code == 0, result.output if result.exit_code else "")


async def _request(target: Target, action: HttpGetAction, within: float) -> Verdict:
    try:
        answer = await request(target, action, agent=f"kube-probe/{VERSION}", within=within)
    except Unanswered as error:
        return Verdict(False, str(error))
    if 200 <= answer.status < 300:
        return Verdict(True)
    if 300 <= answer.status < 400:
        body = answer.body.decode(errors="replace")
        return Verdict(True, f"Probe terminated redirects, Response body: {body}")
    return Verdict(False, f"HTTP probe failed with statuscode: {answer.status}")


async def _connection(target: Target, host: str, port: IntOrString, within: float) -> Verdict:
    number = port_of(target.container, port)
    try:
        async with asyncio.timeout(within):
            connection = await target.dial(host, number)
    except TimeoutError:
        return Verdict(False, f"dial tcp {host}:{number}: i/o timeout")
    except Unreachable as error:
        return Verdict(False, str(error))
    connection.close()
    return Verdict(True)
