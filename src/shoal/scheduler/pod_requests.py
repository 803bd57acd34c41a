"""What a pod asks of its node: the sum of its containers, or what its initialisation needs where that is more.

Init containers run one after the other, so the largest counts; those that go on running (sidecars) count with all that
comes after them. What is asked for the pod as a whole takes the place of the sum, and overhead comes on top. Parts of
GPUs are asked for elsewhere: see ``gpu_requests``.
"""

from __future__ import annotations

from shoal.api.core import Pod
from shoal.scheduler.resource_lists import Amounts, add_to, amounts_of, raise_to

_OF_WHOLE_PODS = ("cpu", "memory")


def pod_requests(pod: Pod) -> Amounts:
    """All that a pod's specification asks for."""
    spec = pod.spec
    total: Amounts = {}
    for container in spec.containers:
        add_to(total, amounts_of(container.resources.requests))
    if spec.init_containers:
        sidecars: Amounts = {}
        most: Amounts = {}
        for container in spec.init_containers:
            own = amounts_of(container.resources.requests)
            if container.restart_policy == "Always":
                add_to(total, own)
                add_to(sidecars, own)
                raise_to(most, sidecars)
            else:
                add_to(own, sidecars)
                raise_to(most, own)
        raise_to(total, most)
    if spec.resources is not None:
        for name, nano in amounts_of(spec.resources.requests).items():
            if name in _OF_WHOLE_PODS or name.startswith("hugepages-"):
                total[name] = nano
    if spec.overhead:
        add_to(total, amounts_of(spec.overhead))
    return total
