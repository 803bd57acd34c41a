"""The scheduler's own memory of what queues held.

What is recorded holds until the next record, but no longer than ``longest_gap``: while nobody looked, nobody knows. It
is summed up by slots of time. There are never more than so many slots: when they become too many, two neighbours are
joined everywhere and slots last twice as long, so that a week costs as much as an hour and is as exact, in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.shares.usage.windows import Window, weight

_FORGOTTEN = 40
"""Half-lives after which use counts for nothing that could be noticed."""

Sums = list[float]
"""Seconds times cpu, memory and gpu."""


class UnreadableHistory(ValueError):
    """Bytes that are no history."""


class _Slot(msgspec.Struct, array_like=True):
    start: float
    end: float
    capacity: Sums
    queues: dict[str, Sums]


class _Record(msgspec.Struct, array_like=True):
    at: float
    capacity: Amounts
    queues: dict[str, Amounts]


class _Encoded(msgspec.Struct):
    version: int
    length: float
    slots: list[_Slot]
    last: _Record | None = None


class UsageHistory:
    """What queues held within the window that counts."""

    def __init__(
        self,
        window: Window,
        *,
        half_life: float | None = None,
        longest_gap: float = 300.0,
        answer_lasts: float = 60.0,
        slots: int = 512,
    ) -> None:
        self._window = window
        self._half_life = half_life
        self._longest_gap = longest_gap
        self._answer_lasts = answer_lasts
        self._most = slots
        self._length = 60.0
        self._slots: list[_Slot] = []
        self._last: _Record | None = None
        self._answer: tuple[float, dict[str, Amounts]] | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def record(self, at: float, allocated: Mapping[str, Amounts], capacity: Amounts) -> None:
        """From now on this is what queues hold, of this much. A record from before the last one is left out."""
        last = self._last
        if last is not None:
            if at <= last.at:
                return
            self._add(last, min(at, last.at + self._longest_gap))
        self._last = _Record(at, capacity, {name: held for name, held in allocated.items() if held != NONE})
        self._forget(at)

    def usage(self, now: float) -> dict[str, Amounts]:
        """By queue the part of what there was that it held, by resource; counted anew once in a while."""
        if self._answer is None or not 0 <= now - self._answer[0] < self._answer_lasts:
            self._answer = now, self._counted(now)
        return self._answer[1]

    def encode(self) -> bytes:
        """All of it, to be kept by whoever wants to read it after a restart."""
        return msgspec.json.encode(_Encoded(1, self._length, self._slots, self._last))

    def restore(self, encoded: bytes) -> None:
        """Takes up what was kept; raises UnreadableHistory, and then stays as it was."""
        try:
            read = msgspec.json.decode(encoded, type=_Encoded)
        except msgspec.MsgspecError as problem:
            raise UnreadableHistory(f"the kept history of usage cannot be read: {problem}") from None
        is_sound = all(
            slot.start < slot.end and len(slot.capacity) == 3 and all(len(sums) == 3 for sums in slot.queues.values())
            for slot in read.slots
        )
        if read.version != 1 or read.length <= 0 or not is_sound:
            raise UnreadableHistory("the kept history of usage cannot be read: it is not of this version")
        self._length, self._slots, self._last = read.length, read.slots, read.last
        self._answer = None

    def _add(self, record: _Record, until: float) -> None:
        """Adds what was held from the record on, slot by slot."""
        start = record.at
        while start < until:
            begin = start - start % self._length
            end = min(until, begin + self._length)
            if self._slots and self._slots[-1].start >= begin:
                slot = self._slots[-1]
                slot.end = end
            else:
                slot = _Slot(start, end, [0.0, 0.0, 0.0], {})
                self._slots.append(slot)
            _sum(slot.capacity, record.capacity, end - start)
            for name, held in record.queues.items():
                _sum(slot.queues.setdefault(name, [0.0, 0.0, 0.0]), held, end - start)
            start = end

    def _forget(self, now: float) -> None:
        """Drops what counts no more, and joins neighbours while there are too many."""
        horizon = self._horizon(now)
        gone = 0
        while gone < len(self._slots) and self._slots[gone].end <= horizon:
            gone += 1
        if gone:
            del self._slots[:gone]
        while len(self._slots) > self._most:
            self._length *= 2
            joined: list[_Slot] = []
            for slot in self._slots:
                if joined and slot.start // self._length == joined[-1].start // self._length:
                    _join(joined[-1], slot)
                else:
                    joined.append(slot)
            self._slots = joined

    def _horizon(self, now: float) -> float:
        start = self._window.start(now)
        return start if self._half_life is None else max(start, now - _FORGOTTEN * self._half_life)

    def _counted(self, now: float) -> dict[str, Amounts]:
        start = self._horizon(now)
        capacity = [0.0, 0.0, 0.0]
        queues: dict[str, Sums] = {}
        for slot in self._slots:
            within = min(slot.end, now) - max(slot.start, start)
            if within <= 0:
                continue
            middle = max(slot.start, start) + within / 2
            counts = within / (slot.end - slot.start) * weight(now - middle, self._half_life)
            _sum(capacity, slot.capacity, counts)
            for name, sums in slot.queues.items():
                _sum(queues.setdefault(name, [0.0, 0.0, 0.0]), sums, counts)
        return {name: Amounts(*map(_part, sums, capacity)) for name, sums in queues.items()}


def _sum(into: Sums, amounts: Amounts | Sums, times: float) -> None:
    into[0] += amounts[0] * times
    into[1] += amounts[1] * times
    into[2] += amounts[2] * times


def _join(into: _Slot, slot: _Slot) -> None:
    into.end = slot.end
    _sum(into.capacity, slot.capacity, 1.0)
    for name, sums in slot.queues.items():
        _sum(into.queues.setdefault(name, [0.0, 0.0, 0.0]), sums, 1.0)


def _part(used: float, whole: float) -> float:
    return used / whole if whole > 0 else 0.0
