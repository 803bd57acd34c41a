"""Views in encoded form: made when somebody asks, kept while somebody goes on asking, and given up after that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from shoal.api.visualizer import ClusterView, JobView, NodeView, QueueView
from shoal.visualizer.compression import Compressor
from shoal.visualizer.pages import Body, Page, listed
from shoal.visualizer.shapes.jobs import TaskEncoder, encoded_head
from shoal.visualizer.shapes.nodes import node_shape
from shoal.visualizer.shapes.queues import encoded_tree, queue_shape
from shoal.visualizer.shapes.summary import NodeSums, job_counts, node_sums, summary_shape
from shoal.visualizer.shelves import Pieces, Shelf
from shoal.visualizer.slices import in_slices

KEPT_FOR = 60.0
"""Seconds for which the encoded form of a large cluster (a hundred megabytes) is kept when nobody asks any more."""
_BODIES = 64

_encode = msgspec.json.Encoder().encode


class Library:
    """Everything encoded that requests and listeners share; belongs to one event loop."""

    def __init__(self, *, kept_for: float = KEPT_FOR) -> None:
        self._kept_for = kept_for
        self._used = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._forget()

    def _forget(self) -> None:
        self._nodes: Shelf[NodeView] = Shelf(_node_pieces, lambda node: (node.name,))
        self._queues: Shelf[QueueView] = Shelf(_queue_pieces, lambda queue: (queue.name,))
        self._jobs: dict[str, Shelf[JobView]] = {}
        self._tasks = TaskEncoder()
        self._sums: tuple[Mapping[str, NodeView], NodeSums] | None = None
        self._counts: dict[str, tuple[Mapping[str, JobView], dict[str, int]]] = {}
        self._tree: tuple[Mapping[str, QueueView], Page] | None = None
        self._bodies: dict[str, tuple[Sequence[Page], Body, Compressor[Page]]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not self._bodies and self._timer is None

    async def summary(self, view: ClusterView) -> Body:
        """The cluster in a few numbers."""
        self._touch()
        if self._sums is None or self._sums[0] is not view.nodes:
            self._sums = (view.nodes, node_sums(view.nodes.values()))
        sums = self._sums[1]
        counts: dict[str, int] = {}
        await in_slices(self._count(view, counts))
        return Body([Page.of(_encode(summary_shape(sums, len(view.queues), counts)))])

    def _count(self, view: ClusterView, counts: dict[str, int]) -> Iterator[None]:
        """Adds up the jobs of all namespaces; in those that stay as they were they are counted once."""
        for gone in self._counts.keys() - view.jobs.keys():
            del self._counts[gone]
        for namespace, jobs in view.jobs.items():
            known = self._counts.get(namespace)
            if known is None or known[0] is not jobs:
                known = self._counts[namespace] = (jobs, job_counts(jobs, *(known or ())))
                yield
            for status, count in known[1].items():
                counts[status] = counts.get(status, 0) + count

    async def queues(self, view: ClusterView) -> Body:
        """The tree of queues."""
        self._touch()
        if self._tree is None or self._tree[0] is not view.queues:
            encoded = await self._queues.encoded(view.queues, list(view.queues))
            shown = {name: queue for name, queue in view.queues.items() if name in encoded}
            self._tree = (view.queues, Page.of(encoded_tree(shown, encoded)))
        return self._body("queues", [self._tree[1]])

    async def nodes(self, view: ClusterView) -> Body:
        """All nodes."""
        return self._body("nodes", listed(await self.node_pages(view)))

    async def jobs(self, view: ClusterView, namespaces: Collection[str] | None = None) -> Body:
        """All jobs, or those of some namespaces."""
        chosen = sorted(view.jobs if namespaces is None else set(namespaces) & view.jobs.keys())
        called = "jobs" if namespaces is None else f"jobs of {','.join(chosen)}"
        return self._body(called, listed(await self._pages_of_jobs(view, chosen)))

    async def node_pages(self, view: ClusterView) -> list[Page]:
        """All nodes, page by page."""
        self._touch()
        return await self._nodes.pages(view.nodes)

    async def queue_pages(self, view: ClusterView) -> list[Page]:
        """All queues in a row, page by page."""
        self._touch()
        return await self._queues.pages(view.queues)

    async def job_pages(self, view: ClusterView) -> list[Page]:
        """All jobs, page by page."""
        return await self._pages_of_jobs(view, sorted(view.jobs))

    async def encoded_nodes(self, view: ClusterView, names: Sequence[str]) -> dict[str, bytes]:
        """Some nodes of a view, by name."""
        self._touch()
        return await self._nodes.encoded(view.nodes, names)

    async def encoded_queues(self, view: ClusterView, names: Sequence[str]) -> dict[str, bytes]:
        """Some queues of a view, by name, without their children."""
        self._touch()
        return await self._queues.encoded(view.queues, names)

    async def encoded_jobs(self, view: ClusterView, namespace: str, uids: Sequence[str]) -> dict[str, bytes]:
        """Some jobs of a namespace that the view has, by uid."""
        self._touch()
        return await self._shelf(namespace).encoded(view.jobs[namespace], uids)

    async def _pages_of_jobs(self, view: ClusterView, namespaces: Sequence[str]) -> list[Page]:
        self._touch()
        for gone in self._jobs.keys() - view.jobs.keys():
            del self._jobs[gone]
        pages: list[Page] = []
        for namespace in namespaces:
            pages += await self._shelf(namespace).pages(view.jobs[namespace])
        return pages

    def _shelf(self, namespace: str) -> Shelf[JobView]:
        if namespace not in self._jobs:
            self._jobs[namespace] = Shelf(self._job_pieces, lambda job: (job.name, job.uid))
        return self._jobs[namespace]

    def _job_pieces(self, job: JobView, was: JobView | None, pieces: Pieces) -> Pieces:
        """A job's head and its pods, which are most of it and often stay."""
        if pieces and was is not None and was.tasks is job.tasks:
            return encoded_head(job), pieces[1]
        return encoded_head(job), self._tasks.encoded(job.tasks)

    def _body(self, called: str, pages: list[Page]) -> Body:
        """A body of pages: the one that was made of the very same before, which may be compressed already."""
        known = self._bodies.pop(called, None)
        if known is None or known[0] != pages:
            compressor: Compressor[Page] = Compressor() if known is None else known[2]
            known = (pages, Body(pages, compressor), compressor)
        self._bodies[called] = known  # behind all others, so that the first is the one unused for longest
        if len(self._bodies) > _BODIES:
            del self._bodies[next(iter(self._bodies))]
        return known[1]

    def _touch(self) -> None:
        self._used = time.monotonic()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._kept_for, self._look)

    def _look(self) -> None:
        """Gives everything up if nobody has asked for a while, and looks again later if somebody has."""
        left = self._used + self._kept_for - time.monotonic()
        if left <= 0:
            self._timer = None
            self._forget()
        else:
            self._timer = asyncio.get_running_loop().call_later(left, self._look)


def _node_pieces(node: NodeView, _was: NodeView | None, _pieces: Pieces) -> Pieces:
    return (_encode(node_shape(node)),)


def _queue_pieces(queue: QueueView, _was: QueueView | None, _pieces: Pieces) -> Pieces:
    return (_encode(queue_shape(queue)),)
