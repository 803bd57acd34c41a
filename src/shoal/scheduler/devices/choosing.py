"""Which devices serve a claim: the first, by name, that suit all of its requests together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shoal.api.resource_k8s_io import DeviceClaim, DeviceClass, DeviceConstraint
from shoal.scheduler.devices.offers import DeviceKey, Offer
from shoal.scheduler.devices.selecting import NotUnderstood
from shoal.scheduler.devices.wishes import Wish, wishes_of

_MOST_STEPS: Final = 100_000
"""Devices that are looked at for one claim: whoever needs more asks for what no machine has."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The devices of a claim."""

    given: tuple[tuple[Wish, Offer], ...]

    def allocation(self, claim: DeviceClaim) -> dict[str, Any]:
        """What is written into the claim's status."""
        results = [
            {"request": wish.request, "driver": offer.driver, "pool": offer.pool, "device": offer.device.name}
            for wish, offer in self.given
        ]
        wishes = {wish.request: wish for wish, _ in self.given}
        config = [
            {"source": "FromClass", "requests": [wish.request], **entry}
            for wish in wishes.values()
            for entry in wish.config
        ] + [{"source": "FromClaim", **entry} for entry in claim.spec.devices.config]
        devices: dict[str, Any] = {"results": results, **({"config": config} if config else {})}
        terms = next((offer.terms for _, offer in self.given if offer.terms is not None), None)
        return {"devices": devices, **({"nodeSelector": {"nodeSelectorTerms": terms}} if terms is not None else {})}


def choose(
    claim: DeviceClaim,
    classes: Mapping[str, DeviceClass],
    offers: Sequence[Offer],
    *,
    taken: Collection[DeviceKey] = frozenset(),
) -> Choice | None:
    """Devices for a claim, of those that can be reached; None where there are none. Raises NotUnderstood."""
    constraints = claim.spec.devices.constraints
    if any(one.distinct_attribute for one in constraints):
        raise NotUnderstood(f"that devices of claim {claim.metadata.name} must differ in an attribute")
    free = [offer for offer in offers if offer.key not in taken]
    search = _Search(constraints, taken)
    for ways in _combinations(wishes_of(claim, classes)):
        if (found := search.fill(ways, free, offers)) is not None:
            return Choice(tuple(found))
    return None


def _combinations(requests: Sequence[Sequence[Wish]]) -> Iterator[list[Wish]]:
    """Every way to serve all requests, the best ways of the first ones first."""
    if not requests:
        yield []
        return
    for wish in requests[0]:
        for rest in _combinations(requests[1:]):
            yield [wish, *rest]


class _Search:
    def __init__(self, constraints: Iterable[DeviceConstraint], taken: Collection[DeviceKey]) -> None:
        self._constraints = [one for one in constraints if one.match_attribute]
        self._taken = taken
        self._steps = 0

    def fill(
        self, wishes: Sequence[Wish], free: Sequence[Offer], offers: Sequence[Offer]
    ) -> list[tuple[Wish, Offer]] | None:
        """A device for every place of every wish."""
        places: list[tuple[Wish, list[Offer]]] = []
        for wish in wishes:
            if wish.count is None:
                everything = [offer for offer in offers if wish.means(offer.driver, offer.device)]
                if not everything or any(offer.key in self._taken for offer in everything):
                    return None
                places += [(wish, [offer]) for offer in everything]
            else:
                suitable = [offer for offer in free if wish.means(offer.driver, offer.device)]
                if len(suitable) < wish.count:
                    return None
                places += [(wish, suitable)] * wish.count
        return self._place(places, [])

    def _place(
        self, places: Sequence[tuple[Wish, list[Offer]]], given: list[tuple[Wish, Offer]]
    ) -> list[tuple[Wish, Offer]] | None:
        if len(given) == len(places):
            return given
        wish, suitable = places[len(given)]
        used = {offer.key for _, offer in given}
        start = 0
        if given and given[-1][0] is wish and places[len(given) - 1][1] is suitable:
            start = suitable.index(given[-1][1]) + 1  # the same devices in another order are no other choice
        for offer in suitable[start:]:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                return None
            if offer.key in used or not self._agree([*given, (wish, offer)]):
                continue
            if (found := self._place(places, [*given, (wish, offer)])) is not None:
                return found
        return None

    def _agree(self, given: Sequence[tuple[Wish, Offer]]) -> bool:
        """Whether devices have in common what they must have in common."""
        for constraint in self._constraints:
            values = [
                _attribute(offer, constraint.match_attribute)
                for wish, offer in given
                if not constraint.requests
                or wish.request in constraint.requests
                or wish.request.partition("/")[0] in constraint.requests
            ]
            if values and (None in values or any(value != values[0] for value in values)):
                return False
        return True


def _attribute(offer: Offer, name: str) -> Any:
    domain, _, own = name.rpartition("/")
    found = offer.device.attributes.get(name)
    if found is None and domain == offer.driver:
        found = offer.device.attributes.get(own)
    return found
