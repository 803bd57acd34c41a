"""Carries out what a plan says: makes, mends and deletes pods and their claims, and tells of it in Events."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.api.apps import STATEFUL_SETS, StatefulSet
from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, Pod
from shoal.api.meta import owner_reference
from shoal.cluster.controllers.batches import slow_start
from shoal.cluster.controllers.stateful_sets.identity import (
    identity_labels,
    missing_volumes,
    pod_name,
    wanted_ordinals,
    wanted_pod,
)
from shoal.cluster.controllers.stateful_sets.plan import (
    CompleteClaims,
    Create,
    Mend,
    Plan,
    Remove,
    SettleClaims,
    Step,
)
from shoal.cluster.controllers.stateful_sets.volumes import (
    ClaimOf,
    changed_owners,
    claim_names,
    is_conflicting,
    wanted_claims,
)
from shoal.kube import About, AlreadyExists, ApiError, Client, Recorder, Writer


class ClaimOnItsWayOut(Exception):
    """A claim that a pod needs is being deleted: the pod waits until it is gone, which is told by its own event."""


class StatefulPods:
    """Writes the pods and claims of StatefulSets."""

    def __init__(self, client: Client, writer: Writer, events: Recorder) -> None:
        self._client = client
        self._writer = writer
        self._events = events

    async def carry_out(self, stateful_set: StatefulSet, plan: Plan, claim_of: ClaimOf) -> Exception | None:
        """Takes the steps of a plan, stage by stage; the first failure, if any, ends it and is given."""
        for steps in plan.stages:
            failure = await self._stage(stateful_set, steps, claim_of, at_once=plan.at_once)
            if failure is not None:
                return failure
        return None

    async def _stage(
        self, stateful_set: StatefulSet, steps: Sequence[Step], claim_of: ClaimOf, *, at_once: bool
    ) -> Exception | None:
        if at_once:
            _, failure = await slow_start(len(steps), lambda i: self._take(stateful_set, steps[i], claim_of))
            return failure
        for step in steps:
            try:
                await self._take(stateful_set, step, claim_of)
            except ApiError as error:
                return error
        return None

    async def _take(self, stateful_set: StatefulSet, step: Step, claim_of: ClaimOf) -> None:
        try:
            match step:
                case Create():
                    await self._create(stateful_set, step, claim_of)
                case Remove(pod):
                    await self._remove(stateful_set, pod)
                case CompleteClaims(pod, ordinal):
                    await self._make_claims(stateful_set, pod.metadata.name, ordinal, claim_of)
                    await self._settle_claims(stateful_set, pod, ordinal, claim_of)
                case Mend(pod, ordinal):
                    await self._mend(stateful_set, pod, ordinal, claim_of)
                case SettleClaims(pod, ordinal):
                    await self._settle_claims(stateful_set, pod, ordinal, claim_of)
        except ClaimOnItsWayOut:
            return

    async def _create(self, stateful_set: StatefulSet, step: Create, claim_of: ClaimOf) -> None:
        name = pod_name(stateful_set, step.ordinal)
        body = wanted_pod(stateful_set, step.version.template, step.ordinal, step.version.name)
        try:
            await self._make_claims(stateful_set, name, step.ordinal, claim_of)
            pod = await self._writer.create(PODS, body, owner=owner_reference(stateful_set, STATEFUL_SETS))
        except AlreadyExists:
            raise  # somebody else's pod has the name: nothing to tell, and worth another try later
        except (ApiError, ClaimOnItsWayOut) as error:
            self._tell(stateful_set, "Create", name, error)
            raise
        for claim in map(claim_of, claim_names(stateful_set, step.ordinal).values()):
            if claim is not None and is_conflicting(claim, stateful_set, pod):
                self._events.warning(
                    About.of(STATEFUL_SETS, stateful_set),
                    "ConflictingController",
                    f"PersistentVolumeClaim {claim.metadata.name} has a conflicting OwnerReference that acts as a "
                    "manging controller, the retention policy is ignored for this claim",
                )
        self._tell(stateful_set, "Create", name)

    async def _remove(self, stateful_set: StatefulSet, pod: Pod) -> None:
        try:
            await self._writer.delete(PODS, pod, propagation=None)
        except ApiError as error:
            self._tell(stateful_set, "Delete", pod.metadata.name, error)
            raise
        self._tell(stateful_set, "Delete", pod.metadata.name)

    async def _mend(self, stateful_set: StatefulSet, pod: Pod, ordinal: int, claim_of: ClaimOf) -> None:
        metadata = pod.metadata
        try:
            patch: dict[str, object] = {}
            labels = identity_labels(metadata.name, ordinal)
            if not labels.items() <= metadata.labels.items():
                patch["metadata"] = {"labels": labels}
            if volumes := missing_volumes(stateful_set, pod, ordinal):
                await self._make_claims(stateful_set, metadata.name, ordinal, claim_of)
                patch["spec"] = {"volumes": volumes}
            await self._settle_claims(stateful_set, pod, ordinal, claim_of)
            if patch:
                await self._client.strategic_patch(
                    PODS, metadata.name, patch, metadata.namespace, field_manager=self._writer.manager
                )
        except (ApiError, ClaimOnItsWayOut) as error:
            self._tell(stateful_set, "Update", metadata.name, error)
            raise
        self._tell(stateful_set, "Update", metadata.name)

    async def _make_claims(self, stateful_set: StatefulSet, pod: str, ordinal: int, claim_of: ClaimOf) -> None:
        for body in wanted_claims(stateful_set, ordinal):
            name = body["metadata"]["name"]
            known = claim_of(name)
            if known is not None:
                if known.metadata.is_deleting:
                    raise ClaimOnItsWayOut(f"pvc {name} is being deleted")
                continue
            about = About.of(STATEFUL_SETS, stateful_set)
            where = f"Pod {pod} in StatefulSet {stateful_set.metadata.name}"
            try:
                await self._writer.create(PERSISTENT_VOLUME_CLAIMS, body, owner=None)
            except AlreadyExists:
                continue
            except ApiError as error:
                told = f"Create Claim {name} for {where} failed error: {error.message}"
                self._events.warning(about, "FailedCreate", told)
                raise
            self._events.normal(about, "SuccessfulCreate", f"Create Claim {name} {where} success")

    async def _settle_claims(self, stateful_set: StatefulSet, pod: Pod, ordinal: int, claim_of: ClaimOf) -> None:
        is_wanted = ordinal in wanted_ordinals(stateful_set)
        for name in claim_names(stateful_set, ordinal).values():
            claim = claim_of(name)
            if claim is None:
                continue
            owners = changed_owners(claim, stateful_set, pod, is_wanted=is_wanted)
            if owners is not None:
                metadata = claim.metadata
                patch = {
                    "metadata": {
                        "resourceVersion": metadata.resource_version,
                        "ownerReferences": [msgspec.to_builtins(owner) for owner in owners],
                    }
                }
                await self._client.merge_patch(
                    PERSISTENT_VOLUME_CLAIMS,
                    name,
                    patch,
                    metadata.namespace,
                    field_manager=self._writer.manager,
                )

    def _tell(self, stateful_set: StatefulSet, verb: str, pod: str, error: Exception | None = None) -> None:
        about = About.of(STATEFUL_SETS, stateful_set)
        what = f"{verb} Pod {pod} in StatefulSet {stateful_set.metadata.name}"
        if error is None:
            self._events.normal(about, f"Successful{verb}", f"{what} successful")
        else:
            words = error.message if isinstance(error, ApiError) else str(error)
            self._events.warning(about, f"Failed{verb}", f"{what} failed error: {words}")
