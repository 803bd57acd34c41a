"""What holds for any cluster and any history of it."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from shoal.api.visualizer import Amounts, ClusterView, JobView, NodeView, QueueView, TaskStatus
from shoal.visualizer.library import Library
from shoal.visualizer.moments import Moments
from tests.visualizer.builders import NOON, a_job_view, a_node_view, a_queue_view, a_task_view, alone
from tests.visualizer.conftest import Visualizer, running
from tests.visualizer.listening import Listener

EMPTY = ClusterView(cycle=0, at=NOON)
words = some.sampled_from(["a", "b", "c", "d", "e"])
tasks = some.lists(
    some.builds(
        a_task_view,
        words,
        some.sampled_from(TaskStatus),
        node=words,
        requested=some.builds(Amounts, gpus=some.sampled_from([0, 0.5, 1])),
    ),
    max_size=3,
)


def _job(name: str, namespace: str, of: list[Any], position: int | None) -> JobView:
    return a_job_view(name, *of, namespace=namespace, position=position)


jobs = some.lists(some.builds(_job, words, words, tasks, some.none() | some.integers(1, 3)), max_size=6)
nodes = some.lists(
    some.builds(
        a_node_view,
        words,
        gpus=some.integers(0, 3),
        ready=some.booleans(),
        whole_gpus=some.lists(some.builds(alone, words), max_size=2).map(tuple),
    ),
    max_size=4,
)
# A parent is a name before one's own: no circles, which a page that puts the tree together need not see through.
queues = some.lists(
    some.builds(
        lambda name, parent, priority: a_queue_view(name, parent if parent < name else "", priority=priority),
        words,
        some.sampled_from(["", "a", "b", "c"]),
        some.integers(1, 2),
    ),
    max_size=5,
)


class Step(msgspec.Struct):
    """What one cycle changes, and whether the listener is there when it does."""

    nodes: list[NodeView]
    gone_nodes: list[str]
    queues: list[QueueView]
    gone_queues: list[str]
    jobs: list[JobView]
    gone_jobs: list[tuple[str, str]]
    is_heard: bool


gone_jobs = some.lists(some.builds(lambda name, space: (space, f"uid-{space}-{name}"), words, words), max_size=4)
gone = some.lists(words, max_size=3)
steps = some.lists(some.builds(Step, nodes, gone, queues, gone, jobs, gone_jobs, some.booleans()), max_size=6)


def after(view: ClusterView, step: Step) -> ClusterView:
    return view.followed_by(
        cycle=view.cycle + 1,
        at=NOON,
        nodes=step.nodes,
        gone_nodes=step.gone_nodes,
        queues=step.queues,
        gone_queues=step.gone_queues,
        jobs=step.jobs,
        gone_jobs=step.gone_jobs,
    )


@settings(max_examples=60)
@given(steps=steps, remembered=some.integers(1, 4))
async def test_whoever_applies_what_they_hear_knows_what_the_routes_say(steps: list[Step], remembered: int) -> None:
    async with running(Visualizer(moments=Moments(moments=remembered))) as visualizer:
        view = EMPTY
        visualizer.publish(view)
        known: Listener | None = None
        for number, step in enumerate([*steps, Step([], [], [], [], [], [], is_heard=True)]):
            view = after(view, step)
            visualizer.publish(view)
            if step.is_heard:
                async with visualizer.listening(after=known) as listener:
                    # Something that surely changes, so that there is something to wait for.
                    view = view.followed_by(cycle=view.cycle + 1, at=NOON, nodes=[a_node_view("z", pods=number + 1)])
                    visualizer.publish(view)
                    while not (last := await listener.cycle()) or last[-1].data["cycle"] != view.cycle:
                        pass
                    known = listener
        assert known is not None
        for name in ("summary", "queues", "jobs", "nodes"):
            assert getattr(known, name) == await visualizer.json(name)


@given(steps=steps, seed=some.randoms())
async def test_an_answer_depends_on_the_view_alone_and_not_on_what_was_asked_before(
    steps: list[Step], seed: Any
) -> None:
    library = Library()
    view = EMPTY
    for step in steps:
        view = after(view, step)
        if step.is_heard:
            await library.jobs(view)
            await library.nodes(view)
    shuffled = ClusterView.of(
        cycle=99,
        at=NOON,
        nodes=seed.sample(list(view.nodes.values()), len(view.nodes)),
        queues=seed.sample(list(view.queues.values()), len(view.queues)),
        jobs=[job for of in seed.sample(list(view.jobs.values()), len(view.jobs)) for job in of.values()],
    )
    for shown, anew in [
        (await library.summary(view), await Library().summary(shuffled)),
        (await library.queues(view), await Library().queues(shuffled)),
        (await library.jobs(view), await Library().jobs(shuffled)),
        (await library.jobs(view, {"a", "c"}), await Library().jobs(shuffled, {"c", "a"})),
        (await library.nodes(view), await Library().nodes(shuffled)),
    ]:
        said = shown.whole
        assert said == b"".join(anew.chunks())
        assert shown.etag == anew.etag
        assert gzip.decompress(b"".join(shown.gzipped().pieces)) == said
        assert msgspec.json.decode(said) is not None


@given(steps=steps)
def test_a_view_shares_with_the_one_before_it_what_has_not_changed(steps: list[Step]) -> None:
    view = EMPTY
    for step in steps:
        following = after(view, step)
        for name, node in following.nodes.items():
            assert node is view.nodes.get(name) or node != view.nodes.get(name)
        for namespace, of in following.jobs.items():
            assert of, "a namespace without jobs is not there"
            before = view.jobs.get(namespace, {})
            assert of is before or of != before
            for uid, job in of.items():
                assert (job.namespace, job.uid) == (namespace, uid)
                assert job is before.get(uid) or job != before.get(uid)
        assert following.jobs is view.jobs or following.jobs != view.jobs
        assert after(following, Step([], [], [], [], [], [], is_heard=True)).jobs is following.jobs
        view = following
