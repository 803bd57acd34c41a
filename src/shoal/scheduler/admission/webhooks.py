"""The webhooks of queues, gangs, topologies and shards, at the paths and under the names that KAI's own have.

Who knows KAI's configurations by name finds the same ones here: where both are installed, one replaces the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from shoal.api.kai_scheduler import SHARDS, TOPOLOGIES, SchedulingShard, Topology
from shoal.api.scheduling_run_ai import POD_GROUPS, QUEUES, PodGroup, Queue
from shoal.kube.admission import (
    Change,
    FieldProblem,
    Finding,
    Operation,
    ServiceEndpoint,
    UrlEndpoint,
    Webhook,
    Webhooks,
    validating_configuration,
)
from shoal.scheduler.admission.pod_groups import pod_group_findings
from shoal.scheduler.admission.queues import blocked_deletion, queue_problems, queue_warnings, quota_warnings
from shoal.scheduler.admission.settings import AdmissionSettings
from shoal.scheduler.admission.shards import shard_problems
from shoal.scheduler.admission.topologies import topology_problems

QUEUE_PATH: Final = "/validate-scheduling-run-ai-v2-queue"
POD_GROUP_PATH: Final = "/validate-scheduling-run-ai-v2alpha2-podgroup"
TOPOLOGY_PATH: Final = "/validate-kai-scheduler-v1alpha1-topology"
SHARD_PATH: Final = "/validate-kai-scheduler-v1-schedulingshard"

CONFIGURATIONS: Final[Mapping[str, str]] = {
    QUEUE_PATH: "kai-queue-validation-v2",
    POD_GROUP_PATH: "kai-podgroup-validation-v2alpha2",
    TOPOLOGY_PATH: "kai-topology-validation-v1alpha1",
    SHARD_PATH: "kai-schedulingshard-validation-v1",
}
"""The configuration that each webhook is registered by, alone."""


def add_scheduler_webhooks(
    webhooks: Webhooks, settings: AdmissionSettings, known_queues: Callable[[], Iterable[Queue]] = tuple
) -> None:
    """Adds the webhooks of KAI's own kinds. ``known_queues`` gives all queues, and is asked where quotas are checked.

    A picture of the queues that is a little old is good enough: nothing is refused on its account.
    """

    @webhooks.validating(
        QUEUES, path=QUEUE_PATH, name="queue-validation.kai.scheduler", operations=("CREATE", "UPDATE", "DELETE")
    )
    def sound_queue(change: Change[Queue]) -> Iterator[Finding]:
        if change.operation is Operation.DELETE:
            if (denied := blocked_deletion(change.object)) is not None:
                yield denied
            return
        yield from queue_problems(change.object)
        yield from queue_warnings(change.object)
        if settings.warns_of_quotas:
            yield from quota_warnings(change.object, known_queues())

    @webhooks.validating(POD_GROUPS, path=POD_GROUP_PATH, name="podgroup-validation.kai.scheduler")
    def sound_pod_group(change: Change[PodGroup]) -> Iterator[Finding]:
        return pod_group_findings(change.object, is_new=change.operation is Operation.CREATE)

    @webhooks.validating(TOPOLOGIES, path=TOPOLOGY_PATH, name="topology-validation.kai.scheduler")
    def sound_topology(change: Change[Topology]) -> Iterator[FieldProblem]:
        return topology_problems(change.object)

    @webhooks.validating(SHARDS, path=SHARD_PATH, name="schedulingshard-validation.kai.scheduler")
    def sound_shard(change: Change[SchedulingShard]) -> Iterator[FieldProblem]:
        return shard_problems(change.object)


def webhook_configurations(
    webhooks: Iterable[Webhook], endpoint: ServiceEndpoint | UrlEndpoint, *, authorities: bytes = b""
) -> list[dict[str, Any]]:
    """The objects by which an API server learns of these webhooks, one for each; those of others are left to them."""
    return [
        validating_configuration(CONFIGURATIONS[webhook.path], [webhook], endpoint, authorities=authorities)
        for webhook in webhooks
        if webhook.path in CONFIGURATIONS
    ]
