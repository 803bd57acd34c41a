"""What must be true of every cycle, said again in the plainest words and reckoned anew from the tasks themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.resources import GPU, PODS
from shoal.scheduler.model.statuses import ACTIVE_ALLOCATED, ALLOCATED, Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.session import Bind, Eviction, Promise, Session
from shoal.scheduler.session.statement import Verb
from shoal.scheduler.shares.tree import Share
from tests.scheduler.actions.watched_cycles import Committed, WatchedSession

DUST = 1e-6
_MOVES = {Verb.EVICT, Verb.REVOKE}


def all_tasks(session: Session) -> Iterator[Task]:
    return (task for job in session.cluster.jobs.values() for task in job.tasks.values())


def check_all(session: WatchedSession) -> None:
    """All of them, at the end of a cycle that is not closed yet."""
    check_nodes(session)
    check_devices(session)
    check_counters(session)
    check_queues(session)
    check_gangs(session)
    check_decisions(session)
    check_evictions(session)
    check_effort(session)


def check_nodes(session: Session) -> None:
    """Nothing is given twice: what is free is what nobody has, now, and when all that ends has ended."""
    nodes = session.nodes
    idle, later = nodes.allocatable.copy(), nodes.allocatable.copy()
    groups: set[tuple[int, str]] = set()
    groups_later: set[tuple[int, str]] = set()
    unreserved: set[tuple[int, str]] = set()
    for task in all_tasks(session):
        hold = task.hold
        while hold is not None:
            vector = task.request.vector
            unreserved |= {(hold.node, group) for group in hold.new_groups}
            if hold.status is not Status.PIPELINED:
                idle[hold.node, : len(vector)] -= vector
                groups |= {(hold.node, group) for group in hold.gpu_groups}
            if hold.status is not Status.RELEASING:
                later[hold.node, : len(vector)] -= vector
                groups_later |= {(hold.node, group) for group in hold.gpu_groups}
            hold = hold.left
    for given, taken in ((idle, groups), (later, groups_later)):
        for row, group in taken:
            given[row, GPU] -= 1
            given[row, PODS] -= (row, group) in unreserved
    assert idle.min(initial=0.0) >= -DUST, f"given twice: {idle}"
    assert later.min(initial=0.0) >= -DUST, f"promised twice: {later}"
    np.testing.assert_allclose(nodes.idle, idle, atol=DUST)
    np.testing.assert_allclose(nodes.idle + nodes.releasing, later, atol=DUST)


def check_devices(session: Session) -> None:
    """No device has more on it than it has memory, now, and when all that ends has ended."""
    now: defaultdict[tuple[int, str], int] = defaultdict(int)
    later: defaultdict[tuple[int, str], int] = defaultdict(int)
    for task in all_tasks(session):
        hold = task.hold
        while hold is not None:
            for group in hold.gpu_groups:
                memory = task.request.memory_on(session.nodes.nodes[hold.node].gpu_memory)
                now[hold.node, group] += memory if hold.status is not Status.PIPELINED else 0
                later[hold.node, group] += memory if hold.status is not Status.RELEASING else 0
            hold = hold.left
    for (row, group), memory in [*now.items(), *later.items()]:
        assert memory <= session.nodes.nodes[row].gpu_memory, f"{memory} MiB on {group} of {session.nodes.nodes[row]}"


def check_counters(session: Session) -> None:
    """What pod sets and queues count is what there is to count."""
    held: defaultdict[str, Amounts] = defaultdict(lambda: NONE)
    for job in session.cluster.jobs.values():
        for pod_set in job.pod_sets.values():
            statuses = [task.status for task in pod_set.tasks.values()]
            assert pod_set.pending == statuses.count(Status.PENDING)
            assert pod_set.pipelined == statuses.count(Status.PIPELINED)
            assert pod_set.active_allocated == sum(status in ACTIVE_ALLOCATED for status in statuses)
        for task in job.tasks.values():
            if task.status in ACTIVE_ALLOCATED and job.queue in session.shares:
                for share in session.shares[job.queue].path:
                    held[share.name] = held[share.name].plus(task.accepted)
    for share in session.shares:
        np.testing.assert_allclose(share.allocated, held[share.name], atol=DUST, err_msg=share.name)


def check_queues(session: WatchedSession) -> None:
    """No queue grows beyond its limit, nor what cannot be evicted beyond its quota."""
    for share in session.shares:
        before = session.at_first[share.name]
        for resource, limit in enumerate(share.queue.limit):
            bound = max(limit, before.allocated[resource])
            assert share.allocated[resource] <= bound + DUST, f"{share.name} has {share.allocated}, limit {limit}"
        for resource, quota in enumerate(share.queue.quota):
            bound = max(quota, before.allocated_non_preemptible[resource])
            held = share.allocated_non_preemptible[resource]
            assert held <= bound + DUST, f"{share.name} has {held} that cannot be evicted, quota {quota}"


def check_gangs(session: WatchedSession) -> None:
    """A gang starts with all that it needs, and where it loses something it needs, it loses all.

    One that had only a part before, since the rest was ending, may go on with it.
    """
    bound = {one.task.job.key for one in session.decisions if isinstance(one, Bind)}
    before = statuses_before(session)
    now = {task.uid: task.status for task in all_tasks(session)}
    for key, job in session.cluster.jobs.items():
        if key in bound:
            assert has_what_it_needs(job.root, ALLOCATED, now), f"half of {job.name} is bound"
        had = sum(before[uid] in ACTIVE_ALLOCATED for uid in job.tasks)
        if not had or has_what_it_needs(job.root, ACTIVE_ALLOCATED, before):
            whole = has_what_it_needs(job.root, ACTIVE_ALLOCATED, now)
            assert whole or not job.active_allocated, f"half of {job.name} is left"


def statuses_before(session: WatchedSession) -> dict[str, Status]:
    """What every task was before the cycle, by uid."""
    statuses = {task.uid: task.status for task in all_tasks(session)}
    for committed in reversed(session.committed):
        for operation in reversed(committed.operations):
            statuses[operation.task.uid] = operation.before.status
    return statuses


def has_what_it_needs(place: SubGroup | PodSet, counted: frozenset[Status], statuses: Mapping[str, Status]) -> bool:
    """Whether enough of its tasks have one of these statuses."""
    if isinstance(place, PodSet):
        return sum(statuses[uid] in counted for uid in place.tasks) >= place.min_member
    children: list[SubGroup | PodSet] = [*place.groups, *place.pod_sets]
    needed = len(children) if place.min_children is None else min(place.min_children, len(children))
    return sum(has_what_it_needs(child, counted, statuses) for child in children) >= needed


def check_decisions(session: WatchedSession) -> None:
    """Decisions say what tasks are at the end: nobody is bound and evicted, and only who had a place is evicted."""
    before = statuses_before(session)
    evicted = {one.task.uid for one in session.decisions if isinstance(one, Eviction)}
    bound = {one.task.uid: one for one in session.decisions if isinstance(one, Bind)}
    promised = {one.task.uid: one for one in session.decisions if isinstance(one, Promise)}
    assert len(session.decisions) == len(evicted) + len(bound) + len(promised), "decided upon twice"
    assert not evicted & bound.keys()
    for task in all_tasks(session):
        assert (task.uid in bound) == (task.status is Status.BINDING), f"{task.name} is {task.status.word}"
        assert (task.uid in promised) == (task.status is Status.PIPELINED), f"{task.name} is {task.status.word}"
        was_placed = before[task.uid] in ACTIVE_ALLOCATED
        assert (task.uid in evicted) == (was_placed and task.status is not before[task.uid])
        for one in (bound.get(task.uid), promised.get(task.uid)):
            assert one is None or one.node == task.node


def check_evictions(session: WatchedSession) -> None:
    """Whoever is evicted had to be: by the rules of the action that did it."""
    for committed in session.committed:
        victims = [op for op in committed.operations if op.verb in _MOVES]
        ended = [op for op in victims if op.task.status in (Status.RELEASING, Status.PENDING)]
        for operation in victims:
            assert operation.reason is not None
            assert operation.task.job.is_preemptible or operation.reason.action == "stalegangeviction"
        if not victims or victims[0].reason is None or victims[0].reason.evictor is None:
            continue
        action, evictor = victims[0].reason.action, session.cluster.jobs[victims[0].reason.evictor]
        if action == "consolidation":
            assert not ended_in(committed), "consolidation has ended somebody"
        elif action == "preempt":
            for operation in ended:
                assert operation.task.job.queue == evictor.queue
                assert operation.task.job.priority < evictor.priority
        elif action == "reclaim":
            check_reclaim(session, committed, evictor)


def ended_in(committed: Committed) -> list[Task]:
    """The tasks that lost their place in a statement and were given no other in it."""
    last = {op.task.uid: op for op in committed.operations}
    return [op.task for op in last.values() if op.verb in _MOVES]


def check_reclaim(session: WatchedSession, committed: Committed, evictor: Job) -> None:
    """Who reclaims stays within his share; who loses had more than his, or than his quota if the other had less."""
    own = session.shares[evictor.queue]
    after = committed.after[own.name].allocated
    assert after.is_within(with_dust(own.fair_share)), f"{own.name} reclaims beyond its share: {after}"
    for task in ended_in(committed):
        other = session.shares[task.job.queue]
        assert other is not own
        mine, theirs = parting(own, other)
        had = committed.before[theirs.name].allocated
        mine_after = committed.before[mine.name].allocated.plus(gained(committed, evictor))
        is_for_quota = mine_after.is_within(with_dust(mine.queue.quota)) and exceeds(had, theirs.queue.quota)
        assert exceeds(had, theirs.allocatable) or is_for_quota, f"{theirs.name} had {had} and lost {task.name}"


def gained(committed: Committed, job: Job) -> Amounts:
    """What a job has by a statement."""
    total = NONE
    for uid in {op.task.uid for op in committed.operations if op.task.job is job}:
        total = total.plus(job.tasks[uid].accepted)
    return total


def parting(left: Share, right: Share) -> tuple[Share, Share]:
    """The two siblings below the last ancestor that two queues have in common."""
    ancestors = {share.name for share in right.path}
    mine = [share for share in left.path if share.name not in ancestors][-1]
    ancestors = {share.name for share in left.path}
    return mine, [share for share in right.path if share.name not in ancestors][-1]


def exceeds(held: Amounts, bound: Amounts) -> bool:
    return any(amount > most for amount, most in zip(held, bound, strict=True))


def with_dust(amounts: Amounts) -> Amounts:
    return Amounts(*(amount + DUST for amount in amounts))


def check_effort(session: WatchedSession) -> None:
    """A search ends: for each step of each job no more simulations than batches of victims, and nodes, there are."""
    tasks = sum(1 for _ in all_tasks(session))
    steps = tasks.bit_length() + 1
    most = len(session.cluster.jobs) * steps * (tasks + len(session.nodes) + 1)
    assert all(count <= most for count in session.effort.values()), session.effort
