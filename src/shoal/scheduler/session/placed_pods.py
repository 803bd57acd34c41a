"""The pods that have a place, found by a label once somebody has asked for that label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.scheduler.model.tasks import Task


class PlacedPods:
    """Where every pod is. One that moves is in two places until it has left the old one."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._rows: dict[str, int] = {}
        self._more: dict[str, list[int]] = {}
        """Further rows of the few that are in more than one place."""
        self._by_label: dict[str, dict[str, dict[str, None]]] = {}
        """By key, then by value: the uids of the pods that have it. Only for keys that somebody has asked for."""

    def rows(self, task: Task) -> list[int]:
        """Where a pod is; nowhere: []."""
        first = self._rows.get(task.uid)
        return [] if first is None else [first, *self._more.get(task.uid, ())]

    def add(self, task: Task, row: int) -> None:
        """A pod gets a place."""
        uid = task.uid
        if uid in self._rows:
            self._more.setdefault(uid, []).append(row)
            return
        self._tasks[uid] = task
        self._rows[uid] = row
        for key, uids in self._by_label.items():
            if (value := task.labels.get(key)) is not None:
                uids.setdefault(value, {})[uid] = None

    def remove(self, task: Task, row: int) -> None:
        """A pod leaves a place."""
        uid = task.uid
        if self._more and (more := self._more.get(uid)):
            if self._rows[uid] == row:
                self._rows[uid] = more.pop(0)
            else:
                more.remove(row)
            if not more:
                del self._more[uid]
            return
        del self._tasks[uid], self._rows[uid]
        for key, uids in self._by_label.items():
            if (value := task.labels.get(key)) is not None:
                del uids[value][uid]

    def having(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[Task, int]]:
        """All pods that have one of these labels, with each of their places; those of no labels at all: every pod."""
        uids = [uid for key, value in pairs for uid in self._labelled(key).get(value, ())] if pairs else self._tasks
        for uid in dict.fromkeys(uids):
            task = self._tasks[uid]
            for row in self.rows(task):
                yield task, row

    def _labelled(self, key: str) -> dict[str, dict[str, None]]:
        found = self._by_label.get(key)
        if found is None:
            found = self._by_label[key] = {}
            for uid, task in self._tasks.items():
                if (value := task.labels.get(key)) is not None:
                    found.setdefault(value, {})[uid] = None
        return found
