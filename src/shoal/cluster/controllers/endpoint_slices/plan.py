"""What is to be written to slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shoal.api.discovery_k8s_io import EndpointSlice


@dataclass
class Plan:
    """New slices, slices with what they become, and slices that go."""

    create: list[EndpointSlice] = field(default_factory=list)
    update: list[tuple[EndpointSlice, EndpointSlice]] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)
    hint_problem: str = ""
    """Why endpoints have no zones though their service asks for them."""

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)

    def recycled(self, may_become_another: Callable[[EndpointSlice], bool] = lambda _: True) -> Plan:
        """The same with as many deletions as possible turned into changes of the slices that would go."""
        create, update, delete = list(self.create), list(self.update), []
        for going in self.delete:
            fitting = [index for index, new in enumerate(create) if new.address_type == going.address_type]
            if fitting and may_become_another(going):
                update.append((going, create.pop(fitting[-1])))
            else:
                delete.append(going)
        return replace(self, create=create, update=update, delete=delete)
