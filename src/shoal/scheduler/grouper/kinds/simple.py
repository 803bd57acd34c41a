"""Kinds whose pods are one flat group, or each a group of its own."""

from __future__ import annotations

from dataclasses import replace

from shoal.api import kai_names
from shoal.scheduler.grouper.base import BUILD, INFERENCE, flat_group, reference_to
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Ungroupable, annotations_of, at, described, group_kind, uid_of, whole
from shoal.scheduler.grouper.pods import SPARK_SELECTOR, as_owner, group_name, is_of_spark
from shoal.scheduler.grouper.wanted import GroupWanted


def anything(case: Case) -> GroupWanted:
    """One group for all pods of an owner, which start one by one; Spark's pods are told apart by its own label."""
    group = flat_group(case)
    return replace(group, name=case.pod.metadata.labels[SPARK_SELECTOR]) if is_of_spark(case.pod) else group


def deployment(case: Case) -> GroupWanted:
    """A group for each pod: servers come and go one by one."""
    return each_by_itself(case, flat_group(case, priority=INFERENCE))


def each_by_itself(case: Case, group: GroupWanted) -> GroupWanted:
    """The group of a single pod, which goes with it."""
    metadata = case.pod.metadata
    owner = reference_to(as_owner(case.pod))
    return replace(group, name=group_name(metadata.name, metadata.uid), owner=owner)


def job(case: Case) -> GroupWanted:
    """One group for a Job; its pods start one by one, unless an annotation says how many start together."""
    return replace(flat_group(case), min_member=_batch_minimum(case))


def cron_job(case: Case) -> GroupWanted:
    """A group for each Job: yesterday's run has nothing to do with today's."""
    below = case.owners[:-1]
    if not any(group_kind(owner) == ("batch", "Job") for owner in below):
        raise Ungroupable(f"no Job lies between the pod and {described(case.top)}: let a Job own the pod")
    return job(replace(case, owners=below))


def notebook(case: Case) -> GroupWanted:
    """One group; somebody sits before it."""
    return flat_group(case, priority=BUILD)


def spot_request(case: Case) -> GroupWanted:
    """One group; somebody waits for its answers."""
    return flat_group(case, priority=INFERENCE)


def azure_ml_job(case: Case) -> GroupWanted:
    """One group of as many pods as the job has nodes."""
    path = ("spec", "job", "options", "envs", "AZUREML_NODE_COUNT")
    nodes = at(case.top, *path)
    if nodes is None:
        raise Ungroupable(f"{described(case.top)} has no {'.'.join(path)}: put the number of nodes there")
    where = f"{'.'.join(path)} of {described(case.top)}"
    return replace(flat_group(case), min_member=whole(str(nodes), where, least=1))


def runai_job(case: Case) -> GroupWanted:
    """One group for the pods whose names differ in their last part alone."""
    stem = case.pod.metadata.name.rpartition("-")[0] or case.pod.metadata.name
    return replace(flat_group(case), name=group_name(stem, uid_of(case.top)))


def _batch_minimum(case: Case) -> int:
    said = annotations_of(case.top).get(kai_names.BATCH_MIN_MEMBER)
    where = f"annotation {kai_names.BATCH_MIN_MEMBER} of {described(case.top)}"
    return 1 if said is None else whole(said, where, least=0)
