"""Waiting for many descriptors at once."""

from __future__ import annotations

import selectors
from collections.abc import Callable


class Loop:
    """Descriptors, and what to do when they can be read."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._watched: dict[int, Callable[[int], None]] = {}

    def watch(self, descriptor: int, action: Callable[[int], None]) -> None:
        """Calls the action with what is possible, reading until told otherwise."""
        self._selector.register(descriptor, selectors.EVENT_READ)
        self._watched[descriptor] = action

    def change(self, descriptor: int, *, with_writing: bool) -> None:
        """Says whether the descriptor is watched for writing too."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if with_writing else 0)
        if self._selector.get_key(descriptor).events != events:
            self._selector.modify(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Watches a descriptor no more; to be said before it is closed."""
        if self._watched.pop(descriptor, None) is not None:
            self._selector.unregister(descriptor)

    def turn(self, timeout: float | None) -> None:
        """Waits once, and does what is to be done."""
        ready = [(key.fd, self._watched[key.fd], events) for key, events in self._selector.select(timeout)]
        for descriptor, action, events in ready:
            if self._watched.get(descriptor) == action:  # not forgotten, or another by now, since it was found ready
                action(events)
