"""Which nodes will do for a pod by its claims of devices, what they weigh, and which claim it has to wait for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from shoal.api.core import Pod
from shoal.api.resource_k8s_io import DeviceClaim, DeviceClass
from shoal.scheduler.devices import (
    DeviceUse,
    NotUnderstood,
    Offer,
    asked_gpus,
    choose,
    device_claim_problem,
)
from shoal.scheduler.ground import Ground
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.watching.needs.stock import NODES, Kind, Look, use_of
from shoal.scheduler.watching.needs.volumes import Users

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(slots=True)
class DeviceReach:
    """What a pod's claims of devices mean to it."""

    problem: str = ""
    nodes: Mask | None = None
    """[nodes] those that will do; None: nobody asked."""
    claimed: int = 0
    """GPUs that its queue answers for."""
    taken: int = 0
    """GPUs that no other pod on its node answers for."""

    def narrow(self, nodes: Mask) -> None:
        """Only these nodes will do."""
        self.nodes = nodes if self.nodes is None else self.nodes & nodes


def device_reach(
    pod: Pod,
    uses: Sequence[DeviceUse],
    look: Look,
    ground: Ground,
    users: Users,
    *,
    is_placed: bool,
    queue: Callable[[], str | None],
    queue_key: str,
) -> DeviceReach:
    """What a pod's claims of devices mean to it, as they are now. What can be weighed is weighed in any case.

    ``is_placed``: whether the pod is on a node, or on its way to one; ``queue``: that of its gang, if anybody knows.
    """
    reach = DeviceReach()
    for use in uses:
        claim = look.device_claim(pod.metadata.namespace, use.name) if use.name else None
        if claim is not None:
            gpus = asked_gpus(claim)
            reach.claimed += gpus
            if use.template or not gpus or not _is_borne(pod, claim, look, users, is_placed=is_placed):
                reach.taken += gpus
        classes = look.device_classes(claim) if claim is not None else {}
        problem = device_claim_problem(pod, use, claim, classes, queue=queue(), queue_key=queue_key)
        if problem or claim is None:
            reach.problem = reach.problem or problem
            continue
        look.topics.add(NODES)
        if claim.status.allocation is not None:
            selector = claim.status.allocation.node_selector
            if selector is not None:
                reach.narrow(ground.selected([msgspec.to_builtins(term) for term in selector.node_selector_terms]))
            continue
        try:
            reach.narrow(_served(claim, look, ground))
        except NotUnderstood as what:
            reach.problem = reach.problem or f"claim {use.name} of devices is not understood here: {what}"
    return reach


def _is_borne(pod: Pod, claim: DeviceClaim, look: Look, users: Users, *, is_placed: bool) -> bool:
    """Whether another pod answers for a claim that several use: the first, by name, of those that have a place."""
    key = claim.metadata.namespace, claim.metadata.name
    look.topics.add(use_of(Kind.DEVICE_CLAIM, key))
    others = users(Kind.DEVICE_CLAIM, key)
    return bool(others) and (not is_placed or others[0] < pod.metadata.name)


def _served(claim: DeviceClaim, look: Look, ground: Ground) -> Mask:
    """[nodes] those that have the devices of a claim, whoever may use them now; raises NotUnderstood.

    Claims that are alike share the answer.
    """
    classes, offers = look.device_classes(claim), look.offers()
    asked = [claim.spec, {name: one.spec for name, one in classes.items()}, look.stock.devices_version]
    return ground.once(_encode(["devices", *asked]), lambda: _serving(claim, classes, offers, ground))


def _serving(claim: DeviceClaim, classes: Mapping[str, DeviceClass], offers: Sequence[Offer], ground: Ground) -> Mask:
    anywhere = [offer for offer in offers if offer.terms is None]
    by_place: dict[bytes, tuple[Mask, list[Offer]]] = {}
    for offer in offers:
        if offer.terms is not None:
            mask = ground.selected(offer.terms)
            by_place.setdefault(mask.tobytes(), (mask, []))[1].append(offer)
    served = ground.nowhere
    if choose(claim, classes, anywhere) is not None:
        return ground.everywhere
    for mask, found in by_place.values():
        if choose(claim, classes, [*found, *anywhere]) is not None:
            served = served | mask
    return served
