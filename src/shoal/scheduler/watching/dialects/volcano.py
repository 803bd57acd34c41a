"""Volcano's PodGroups: so many pods together, and of each task, or of each group within the group, so many.

Groups within a group are pods that a selector selects, one group for each value of some labels; so many of them are
needed. Where a PodGroup asks for more pods than its parts need, the rest is asked of parts that have pods to spare, in
the order of their names: a narrower wish than Volcano's, which takes them from anywhere, and never a wider one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shoal.api.core.pods import Pod, is_finished
from shoal.api.meta.selector import InvalidSelector, Selector
from shoal.api.scheduling_volcano_sh import GROUP, NetworkTopology, PodGroup, SubGroupPolicy
from shoal.scheduler.watching.dialects.plans import Branch, Facts, Leaf, Nearness, Plan, alone, missing, planned
from shoal.scheduler.watching.groups import Dialect, GangKey, Seat

TASK: Final = "volcano.sh/task-spec"
"""The annotation that names the task of a pod."""
OTHERS: Final = "others"
"""The pod set of pods that are in no part."""


@dataclass(frozen=True, slots=True)
class ByTask:
    """Pods by the task that they are of."""

    tasks: frozenset[str]

    def __call__(self, pod: Pod) -> str:
        """The pod set of a pod."""
        task = pod.metadata.annotations.get(TASK, "")
        return f"task {task}" if task in self.tasks else OTHERS


class ByPolicy:
    """Pods by the first policy that selects them, and their values of its labels."""

    def __init__(self, policies: Sequence[SubGroupPolicy]) -> None:
        self.policies = tuple(policies)
        self._selectors = [_selector(policy) for policy in policies]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByPolicy) and self.policies == other.policies

    def __hash__(self) -> int:
        return hash(tuple(policy.name for policy in self.policies))

    def __call__(self, pod: Pod) -> str:
        """The pod set of a pod."""
        found = self.place(pod)
        return OTHERS if found is None else found[1]

    def place(self, pod: Pod) -> tuple[int, str] | None:
        """Which policy a pod is under, and its group there."""
        labels = pod.metadata.labels
        for number, (policy, selector) in enumerate(zip(self.policies, self._selectors, strict=True)):
            if selector.matches(labels) and all(key in labels for key in policy.match_label_keys):
                return number, "/".join([policy.name, *(labels[key] for key in policy.match_label_keys)])
        return None


def seat_of(group: PodGroup) -> Seat:
    """Where the pods of a PodGroup are."""
    gang = GangKey(Dialect.VOLCANO, group.metadata.namespace, group.metadata.name)
    spec = group.spec
    if spec.sub_group_policy:
        return Seat(gang=gang, rule=ByPolicy(spec.sub_group_policy))
    if _counts_tasks(group):
        return Seat(gang=gang, rule=ByTask(frozenset(spec.min_task_member)))
    return Seat(gang=gang)


def plan_of(group: PodGroup, pods: Iterable[Pod], facts: Facts) -> Plan:
    """The gang of a PodGroup."""
    pods = list(pods)
    spec = group.spec
    near = _near(spec.network_topology, facts)
    alive = [pod for pod in pods if not is_finished(pod)]
    if spec.sub_group_policy:
        root = _by_policy(spec.sub_group_policy, _minimum(group), alive, near, facts)
    elif _counts_tasks(group):
        root = _by_task(spec.min_task_member, _minimum(group), alive, near)
    else:
        root = alone(_minimum(group), near)
    return planned(
        facts,
        f"podgroup.{GROUP}/{group.metadata.name}",
        [group],
        pods,
        root,
        namespace=group.metadata.namespace,
        queue=spec.queue,
        priority_class=spec.priority_class_name,
    )


def _minimum(group: PodGroup) -> int:
    return 1 if group.spec.min_member is None else group.spec.min_member


def _counts_tasks(group: PodGroup) -> bool:
    """Whether the tasks' own minimums count: Volcano passes over them where together they are more than the gang's."""
    tasks = group.spec.min_task_member
    return bool(tasks) and sum(tasks.values()) <= _minimum(group)


def _by_task(tasks: Mapping[str, int], minimum: int, pods: Sequence[Pod], near: Nearness | None) -> Branch:
    rule = ByTask(frozenset(tasks))
    needed = {f"task {task}": count for task, count in sorted(tasks.items())} | {OTHERS: 0}
    counts = _counts(map(rule, pods))
    more = minimum - sum(needed.values())
    leaves = []
    for name, count in needed.items():
        spare = min(max(0, counts.get(name, 0) - count), more) if name != OTHERS else more
        more -= spare
        leaves.append(Leaf(name=name, min_member=count + spare))
    return Branch(near=near, leaves=tuple(leaves))


def _by_policy(
    policies: Sequence[SubGroupPolicy], minimum: int, pods: Sequence[Pod], near: Nearness | None, facts: Facts
) -> Branch:
    rule = ByPolicy(policies)
    places = [rule.place(pod) for pod in pods]
    counts = _counts(place[1] for place in places if place is not None)
    branches = []
    for number, policy in enumerate(policies):
        own = sorted({place[1] for place in places if place is not None and place[0] == number})
        needed = policy.min_sub_groups or 0
        size = policy.sub_group_size or 1
        each = _near(policy.network_topology, facts)
        leaves = tuple(Leaf(name=name, min_member=size, near=each) for name in own)
        absent = tuple(replace(leaf, min_member=size) for leaf in missing(needed - len(own)))
        absent = tuple(replace(leaf, name=f"{policy.name} {leaf.name}") for leaf in absent)
        branches.append(Branch(name=policy.name, min_children=needed, leaves=leaves + absent))
    more = minimum - sum((branch.min_children or 0) * _size(branch) for branch in branches)
    branches, more = _with_spare_pods(branches, counts, more)
    branches, more = _with_more_groups(branches, counts, more)
    return Branch(near=near, branches=tuple(branches), leaves=(Leaf(name=OTHERS, min_member=max(0, more)),))


def _with_spare_pods(branches: Sequence[Branch], counts: Mapping[str, int], more: int) -> tuple[list[Branch], int]:
    """Asks parts that are needed in any case for the pods that they have beyond their need."""
    made = []
    for branch in branches:
        leaves = list(branch.leaves)
        if branch.min_children == len(leaves):
            for place, leaf in enumerate(leaves):
                spare = min(max(0, counts.get(leaf.name, 0) - leaf.min_member), max(0, more))
                more -= spare
                leaves[place] = replace(leaf, min_member=leaf.min_member + spare)
        made.append(replace(branch, leaves=tuple(leaves)))
    return made, more


def _with_more_groups(branches: Sequence[Branch], counts: Mapping[str, int], more: int) -> tuple[list[Branch], int]:
    """Asks for more of the groups that are whole."""
    made = []
    for branch in branches:
        whole = sum(counts.get(leaf.name, 0) >= leaf.min_member for leaf in branch.leaves)
        needed = branch.min_children or 0
        while more > 0 and needed < whole:
            needed += 1
            more -= _size(branch)
        made.append(replace(branch, min_children=needed))
    return made, more


def _size(branch: Branch) -> int:
    return branch.leaves[0].min_member if branch.leaves else 0


def _counts(found: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in found:
        counts[one] = counts.get(one, 0) + 1
    return counts


def _selector(policy: SubGroupPolicy) -> Selector:
    """Which pods are meant; a policy without a selector means all, one whose selector makes no sense none."""
    if policy.label_selector is None:
        return Selector.parse("")
    try:
        return Selector.of(policy.label_selector)
    except InvalidSelector:
        return Selector.of(None)


def _near(topology: NetworkTopology | None, facts: Facts) -> Nearness | None:
    """A tier by its name, where a level of a Topology is called so. What must be shared and is unknown is nowhere."""
    if topology is None or (topology.highest_tier_allowed is None and not topology.highest_tier_name):
        return None
    is_hard = topology.mode != "soft"
    tier = topology.highest_tier_name or str(topology.highest_tier_allowed)
    found = facts.level(topology.highest_tier_name) if topology.highest_tier_name else None
    if found is None:
        return Nearness(topology=f"Volcano's tier {tier}", required=tier) if is_hard else None
    name, label = found
    return Nearness(topology=name, required=label) if is_hard else Nearness(topology=name, preferred=label)
