"""The webhooks of gangs, at the paths and under the names that Grove's own have.

Who knows Grove's configurations by name finds the same ones here: where both are installed, one replaces the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.api.grove import POD_CLIQUE_SETS, TOPOLOGY_BINDINGS, ClusterTopologyBinding, PodCliqueSet, names
from shoal.gangs.admission.authorizer import managed_by, managed_kinds, verdict_with_set, verdict_without_set
from shoal.gangs.admission.defaults import defaulted
from shoal.gangs.admission.lookups import Lookups
from shoal.gangs.admission.topology_bindings import binding_problems
from shoal.gangs.admission.validation import set_findings
from shoal.gangs.backends import Backends
from shoal.gangs.settings import GangSettings
from shoal.gangs.topologies import topology_name
from shoal.gangs.topologies.controller import SCHEDULERS
from shoal.kube.admission import (
    AdmissionRequest,
    Change,
    FieldProblem,
    Finding,
    Operation,
    ServiceEndpoint,
    UrlEndpoint,
    Verdict,
    Webhook,
    Webhooks,
    mutating_configuration,
    validating_configuration,
)

DEFAULT_SET_PATH: Final = "/webhooks/default-podcliqueset"
VALIDATE_SET_PATH: Final = "/webhooks/validate-podcliqueset"
VALIDATE_TOPOLOGY_PATH: Final = "/webhooks/validate-clustertopology"
AUTHORIZER_PATH: Final = "/webhooks/authorizer-webhook"

CONFIGURATIONS: Final = {
    DEFAULT_SET_PATH: "podcliqueset-defaulting-webhook",
    VALIDATE_SET_PATH: "podcliqueset-validating-webhook",
    VALIDATE_TOPOLOGY_PATH: "clustertopology-validating-webhook",
    AUTHORIZER_PATH: "authorizer-webhook",
}
"""The configuration that each webhook is registered by, alone."""

TOPOLOGY_SCHEDULERS: Final = frozenset(scheduler.name for scheduler in SCHEDULERS)
"""Schedulers that have a topology of their own to compare with."""


def gang_webhooks(lookups: Lookups, settings: GangSettings, backends: Backends) -> Webhooks:
    """All webhooks of gangs; the authorizer is among them where it is enabled."""
    webhooks = Webhooks()
    webhooks.defaulting(
        POD_CLIQUE_SETS, path=DEFAULT_SET_PATH, name="pcs.defaulting.webhooks.grove.io", match_policy="Exact"
    )(defaulted)

    @webhooks.validating(
        POD_CLIQUE_SETS, path=VALIDATE_SET_PATH, name="pcs.validating.webhooks.grove.io", match_policy="Exact"
    )
    async def sound_set(change: Change[PodCliqueSet]) -> Iterable[Finding]:
        is_new = change.operation is Operation.CREATE
        name = topology_name(change.object) if is_new and settings.has_topologies else ""
        return set_findings(
            change.object,
            change.old,
            is_new=is_new,
            binding=await lookups.topology(name) if name else None,
            settings=settings,
            backends=backends,
        )

    @webhooks.validating(
        TOPOLOGY_BINDINGS,
        path=VALIDATE_TOPOLOGY_PATH,
        name="clustertopology.validating.webhooks.grove.io",
        match_policy="Exact",
    )
    def sound_binding(change: Change[ClusterTopologyBinding]) -> Iterable[FieldProblem]:
        return binding_problems(change.object, TOPOLOGY_SCHEDULERS)

    if settings.authorizing.is_enabled:

        @webhooks.reviewing(
            "validating",
            *managed_kinds(),
            path=AUTHORIZER_PATH,
            name="authorizer.webhooks.grove.io",
            match_policy="Exact",
            operations=("CREATE", "UPDATE", "DELETE"),
            object_selector={"matchLabels": {names.MANAGED_BY_LABEL: names.MANAGER}},
        )
        async def authorized(request: AdmissionRequest) -> Verdict:
            verdict = verdict_without_set(request, settings.authorizing)
            if verdict is None:
                owner = await lookups.pod_clique_set(request.namespace, managed_by(request))
                verdict = verdict_with_set(request, owner)
            return verdict

    return webhooks


def unregistered(configurations: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names under which nothing is registered now, and was if the authorizer was enabled before."""
    present = {body["metadata"]["name"] for body in configurations}
    return [name for name in CONFIGURATIONS.values() if name not in present]


def webhook_configurations(
    webhooks: Iterable[Webhook], endpoint: ServiceEndpoint | UrlEndpoint, *, authorities: bytes = b""
) -> list[dict[str, Any]]:
    """The objects by which an API server learns of these webhooks, one for each."""
    built = {"mutating": mutating_configuration, "validating": validating_configuration}
    return [
        built[webhook.kind](CONFIGURATIONS[webhook.path], [webhook], endpoint, authorities=authorities)
        for webhook in webhooks
    ]
