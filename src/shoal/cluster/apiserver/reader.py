"""What the parts of the server see of its state: objects as plain values, shared and never to be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from shoal.cluster.apiserver.kinds.kind import Object


class Reader(Protocol):
    """The committed state. ``storage`` is a kind's storage name: ``pods``, ``deployments.apps``."""

    def get(self, storage: str, namespace: str, name: str) -> Object | None:
        """One object in its stored version (with apiVersion and kind); decoded once and shared."""
        ...

    def list(self, storage: str, namespace: str | None = None) -> Iterable[Object]:
        """All objects of a kind, or those of a namespace."""
        ...

    def scan(self, storage: str, namespace: str | None = None) -> tuple[int, Iterator[Object]]:
        """The same where there may be very many: their number, and each, decoded when it is read and not kept."""
        ...

    def changed(self, storage: str) -> int:
        """Another number whenever an object of a kind has changed: for those who keep what they made of them."""
        ...


class Writer(Reader, Protocol):
    """For the few parts that keep records of their own, such as a quota's use."""

    async def update(
        self, storage: str, namespace: str, name: str, change: Callable[[Object], Object | None]
    ) -> Object | None:
        """Replaces an object by what ``change`` makes of a copy of it, again when it was changed meanwhile.

        Nothing is written where ``change`` gives None, and None is returned where there is no such object. An exception
        that ``change`` raises passes through.
        """
        ...
