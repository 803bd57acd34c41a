"""What a container may use: its resources in the kernel's units."""

from __future__ import annotations

import os
from collections.abc import Mapping

from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.api.meta import Quantity, QuantityString, parse_quantity
from shoal.cluster.node.process.runtime.protocol import Limits

_LEAST_SHARES, _MOST_SHARES = 2, 262144


def most_processes(cores: int) -> int:
    """How many processes and threads a container may have on a machine with so many cores.

    Programs have threads for each core, several times over; few cores can be kept from everybody else by the forks of a
    few thousand processes, so that a bomb would be the trouble of more than its own pod.
    """
    return min(16384, max(4096, 1024 * cores))


PROCESSES = most_processes(os.cpu_count() or 1)


def limits_of(pod: PodDetails, container: ContainerDetails) -> Limits:
    """The limits of a container; where it has none, those of its pod as a whole."""
    shared = pod.spec.resources.limits if pod.spec.resources is not None else {}
    limits, requests = container.resources.limits, container.resources.requests
    cpu = _amount(limits, "cpu") or _amount(shared, "cpu")
    memory = _amount(limits, "memory") or _amount(shared, "memory")
    asked = parse_quantity(requests["cpu"]) if "cpu" in requests else cpu
    shares = (asked.milli_value() * 1024 // 1000) if asked is not None else 0
    return Limits(
        memory_bytes=memory.value() if memory is not None else None,
        cpu_cores=cpu.milli_value() / 1000 if cpu is not None else None,
        cpu_shares=min(max(shares, _LEAST_SHARES), _MOST_SHARES),
        processes=PROCESSES,
    )


def _amount(amounts: Mapping[str, QuantityString], resource: str) -> Quantity | None:
    amount = parse_quantity(amounts.get(resource, 0))
    return None if amount.is_zero else amount
