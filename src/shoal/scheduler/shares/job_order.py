"""The order in which jobs of all queues are looked at: a tree of queues, in which the best child leads to the best job.

Children are compared by what their own queue holds together with the next job of their best descendant. Between two
pops allocations change, so before each pop the queues that changed are looked at again, with their ancestors, and no
others. Victims come in the exact reverse at every level: the queue that would be served last loses first.

Of victims, those of the same queue that were chosen already count as gone, and the next one too: what would be left is
what queues are compared by. A parent counts those of the descendant that leads to its next victim.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.model.jobs import Job, SubGroup
from shoal.scheduler.shares.order import age, divisors_of, first_of_equals, is_chain, standing
from shoal.scheduler.shares.tree import QueueTree, Share

_Item = tuple[tuple[Any, ...], int, Job]
Ranked = tuple[tuple[Any, ...], Job]
"""A job behind its rank."""
_key = attrgetter("key")


def job_rank(job: Job) -> tuple[Any, ...]:
    """The order of the jobs of one queue: priority, those below their minimum, those at it, those above it, age."""
    return -job.priority, elastic_state(job), job.created, job.uid


def elastic_state(job: Job) -> int:
    """0: it has less than it needs; 1: exactly that; 2: more.

    A job that needs only some of its subgroups has what it needs without the others.
    """
    if not job.root.is_satisfied:
        return 0
    return 2 if has_surplus(job.root) else 1


def has_surplus(group: SubGroup) -> bool:
    """Whether it holds pods, or subgroups, that it could go on without."""
    if any(pod_set.active_allocated > pod_set.min_member for pod_set in group.pod_sets):
        return True
    return group.satisfied_children > group.needed or any(has_surplus(inner) for inner in group.groups)


class JobsByQueue:
    """Jobs to be looked at. Those of queues that are unknown, orphaned or no leaves are left out."""

    def __init__(
        self,
        tree: QueueTree,
        *,
        next_amounts: Callable[[Job], Amounts],
        job_key: Callable[[Job], tuple[Any, ...]],
        is_for_victims: bool = False,
        depth: int | None = None,
        is_by_age: bool = False,
    ) -> None:
        """``is_by_age``: queues come by age alone, whatever they have."""
        self._tree = tree
        self._next_amounts = next_amounts
        self._job_key = job_key
        self._is_for_victims = is_for_victims
        self._depth = depth
        self._is_by_age = is_by_age
        self._places: dict[str, _Place] = {}
        self._top = _Place(None, None)
        self._dirty: set[_Place] = set()
        self._popped: dict[str, Amounts] = {}
        self._count = 0
        self._division = tree.divisions
        self._seen = len(tree.changes)

    def __bool__(self) -> bool:
        return bool(self._top.children)

    def __len__(self) -> int:
        return sum(place.count(self._depth, last=self._is_for_victims) for place in self._places.values())

    def push(self, job: Job) -> None:
        """Takes a job in; one that was popped may come back, changed."""
        share = self._tree.get(job.queue)
        if share is None or not share.is_leaf or (self._depth is not None and self._depth <= 0):
            return
        place = self._places.get(share.name) or self._new_place(share)
        if place.job is job:
            place.job = None  # what is left of it may be less than it was
        self._count += 1
        place.add((self._job_key(job), self._count, job), self._depth, last=self._is_for_victims)
        self._dirty.add(place)

    def lay(self, queue_name: str, jobs: Sequence[Ranked], keeps: Callable[[Job], bool]) -> None:
        """Takes in all jobs of a queue that a rule keeps, as they lie sorted: each is looked at when its turn comes.

        The list stays the caller's, who does not change it as long as this is used. No depth cuts it short.
        """
        share = self._tree.get(queue_name)
        if share is None or not share.is_leaf or not jobs:
            return
        place = self._places.get(queue_name) or self._new_place(share)
        place.lay(jobs, keeps, last=self._is_for_victims)
        if place.items_left:
            self._dirty.add(place)
        else:
            self._drop(place)

    def pop(self) -> Job:
        """The next job; raises IndexError where there is none."""
        if not self._top.children:
            raise IndexError("no job is left")
        self._refresh()
        place = self._top
        while place.children:
            place = place.best
        job = place.take(last=self._is_for_victims)[-1]
        if self._is_for_victims:
            self._popped[job.queue] = place.amounts
        if place.items_left:
            self._dirty.add(place)
        else:
            self._drop(place)
        return job

    def touched(self, queue_name: str) -> None:
        """Something else than what the queue holds changed, such as what its next job needs: look at it again."""
        if place := self._places.get(queue_name):
            place.job = None
            self._dirty.add(place)

    def pass_by(self, queue_name: str, keeps: Collection[tuple[str, str]]) -> None:
        """Leaves out the jobs of a queue that would come right after the one that came last, and are like it.

        For whoever does nothing with them: as they ask for the same, and nobody took anything, it is still the
        queue's turn. ``keeps``: jobs that are not left out.
        """
        place = self._places.get(queue_name)
        while place is not None and place.items_left:
            following = place.peek(self._depth, last=self._is_for_victims)[-1]
            if following.key in keeps or self._next_amounts(following) != place.amounts:
                return
            place.take(last=self._is_for_victims)
        if place is not None:
            self._drop(place)

    def confine(self, queue_names: Collection[str]) -> None:
        """Leaves out whatever does not bear on the order in which jobs of these queues come, one after the other.

        Where all of them are below one ancestor, its other children only come in between. Within those children
        everybody counts, for the next job of any descendant is what the child is compared by.
        """
        paths = [self._tree[name].path[::-1] for name in queue_names if name in self._places]
        level = next((n for n, step in enumerate(zip(*paths, strict=False)) if len(set(map(id, step))) > 1), 0)
        tops = {path[level].name for path in paths}
        for place in [place for place in self._places.values() if not place.children]:
            if place.share is not None and tops.isdisjoint(share.name for share in place.share.path):
                self._drop(place)

    def _new_place(self, share: Share) -> _Place:
        parent = self._top
        if share.parent is not None:
            parent = self._places.get(share.parent.name) or self._new_place(share.parent)
        place = self._places[share.name] = _Place(share, parent)
        parent.children.append(place)
        return place

    def _drop(self, place: _Place) -> None:
        """Forgets a queue without jobs, and its ancestors that have none either; the others are looked at again."""
        while place.parent is not None and not place.children:
            assert place.share is not None
            del self._places[place.share.name]
            self._dirty.discard(place)
            place.parent.children.remove(place)
            place = place.parent
        self._dirty.add(place)

    def _refresh(self) -> None:
        """Looks again at what changed and all above it, from the leaves up."""
        self._notice()
        dirty = self._dirty
        if len(dirty) == 1:
            place: _Place | None = dirty.pop()
            while place is not None:
                self._look_at(place)
                place = place.parent
            return
        stale: set[_Place] = set()
        for start in dirty:
            place = start
            while place is not None and place not in stale:
                stale.add(place)
                place = place.parent
        dirty.clear()
        for place in sorted(stale, key=_depth, reverse=True):
            self._look_at(place)

    def _notice(self) -> None:
        """Finds out which queues hold other amounts than before; after a division all are others."""
        tree = self._tree
        if self._division != tree.divisions:
            self._division = tree.divisions
            for place in (self._top, *self._places.values()):
                place.divisors = place.is_chain = None
            self._dirty.update(self._places.values())
        elif self._seen != len(tree.changes):
            for share in set(tree.changes[self._seen :]):
                nearest = (self._places.get(ancestor.queue.name) for ancestor in share.path)
                if found := next(filter(None, nearest), None):
                    self._dirty.add(found)
        self._seen = len(tree.changes)

    def _look_at(self, place: _Place) -> None:
        if place.children:
            place.best = best = self._best(place)
            place.leaf = best.leaf
        else:
            self._look_at_jobs(place)
        share, parent = place.share, place.parent
        if share is None or parent is None:
            return
        if self._is_by_age:
            place.key = age(share)
            return
        if place.divisors is None:
            place.divisors = divisors_of(share, self._tree.total)
        amounts = place.leaf.amounts
        if self._is_for_victims:
            key: tuple[Any, ...] = standing(share, place.divisors, victims=amounts)
        else:
            key = standing(share, place.divisors, job=amounts)
        place.key = (*key, share.allocatable, *age(share)) if self._is_chain(parent) else key

    def _look_at_jobs(self, leaf: _Place) -> None:
        """What the next job of a queue takes, or gives together with those before it.

        It is asked anew only where the job is another, or changed.
        """
        job = leaf.peek(self._depth, last=self._is_for_victims)[-1]
        if leaf.job is not job or leaf.version != job.version:
            leaf.job, leaf.version = job, job.version
            leaf.amounts = self._next_amounts(job)
            if self._is_for_victims and (popped := self._popped.get(job.queue)):
                leaf.amounts = popped.plus(leaf.amounts)

    def _best(self, parent: _Place) -> _Place:
        children = parent.children
        if len(children) == 1:
            return children[0]
        best = max(children, key=_key) if self._is_for_victims else min(children, key=_key)
        if self._is_by_age or self._is_chain(parent):
            return best
        equals = [child for child in children if child.key == best.key]
        shares = [child.share for child in equals if child.share is not None]
        return equals[first_of_equals(shares, last=self._is_for_victims)]

    def _is_chain(self, parent: _Place) -> bool:
        if parent.is_chain is None:
            siblings = parent.share.children if parent.share else self._tree.roots
            parent.is_chain = is_chain(siblings)
        return parent.is_chain


class _Place:
    """A queue with jobs, or with descendants that have some."""

    __slots__ = (
        "amounts",
        "at",
        "best",
        "children",
        "depth",
        "divisors",
        "first",
        "is_chain",
        "is_sorted",
        "items",
        "job",
        "keeps",
        "key",
        "laid",
        "leaf",
        "parent",
        "share",
        "version",
    )

    def __init__(self, share: Share | None, parent: _Place | None) -> None:
        self.share = share
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.children: list[_Place] = []
        self.best: _Place = self
        self.leaf: _Place = self
        self.key: tuple[Any, ...] = ()
        self.divisors: Amounts | None = None
        self.is_chain: bool | None = None
        """Whether rules 1 to 8 sort its children by a key."""
        self.items: list[_Item] = []
        self.first = 0
        """Where the items begin: what is before was popped."""
        self.is_sorted = False
        self.laid: Sequence[Ranked] = ()
        """Jobs that somebody else keeps sorted."""
        self.at = 0
        """Which of them is next; outside of them when none is left."""
        self.keeps: Callable[[Job], bool] | None = None
        self.job: Job | None = None
        self.version = 0
        self.amounts = NONE

    @property
    def items_left(self) -> bool:
        return len(self.items) > self.first or 0 <= self.at < len(self.laid)

    def lay(self, jobs: Sequence[Ranked], keeps: Callable[[Job], bool], *, last: bool) -> None:
        self.laid, self.keeps = jobs, keeps
        self.at = len(jobs) if last else -1
        self.step(last=last)

    def step(self, *, last: bool) -> None:
        """Goes on to the next of the laid jobs that is kept."""
        step = -1 if last else 1
        assert self.keeps is not None
        self.at += step
        while 0 <= self.at < len(self.laid) and not self.keeps(self.laid[self.at][1]):
            self.at += step

    def settle(self, depth: int | None, *, last: bool) -> None:
        """Sorts its items once all that came at first are there, and keeps no more than the best so many."""
        self.items.sort()
        self.is_sorted = True
        if depth is not None:
            self.items = self.items[-depth:] if last else self.items[:depth]

    def count(self, depth: int | None, *, last: bool) -> int:
        if not self.is_sorted:
            self.settle(depth, last=last)
        laid = self.laid[: max(0, self.at + 1)] if last else self.laid[self.at :]
        return len(self.items) - self.first + sum(1 for _, job in laid if self.keeps is None or self.keeps(job))

    def add(self, item: _Item, depth: int | None, *, last: bool) -> None:
        if not self.is_sorted:
            self.items.append(item)
            return
        insort(self.items, item, lo=self.first)
        if depth is not None and len(self.items) - self.first > depth:
            self.items.pop(self.first if last else -1)

    def peek(self, depth: int | None, *, last: bool) -> _Item:
        if not self.is_sorted:
            self.settle(depth, last=last)
        if self._is_laid_next(last=last):
            rank, job = self.laid[self.at]
            return rank, 0, job
        return self.items[-1 if last else self.first]

    def _is_laid_next(self, *, last: bool) -> bool:
        if not 0 <= self.at < len(self.laid):
            return False
        if len(self.items) == self.first:
            return True
        own, laid = self.items[-1 if last else self.first][0], self.laid[self.at][0]
        return laid >= own if last else laid <= own

    def take(self, *, last: bool) -> _Item:
        if self._is_laid_next(last=last):
            rank, job = self.laid[self.at]
            self.step(last=last)
            return rank, 0, job
        if last:
            return self.items.pop()
        item = self.items[self.first]
        self.first += 1
        return item


_depth = attrgetter("depth")
