"""A set, a scaling group of it, and whoever keeps the pods of its cliques, for the groups controller to play with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, PodCliqueSet, names
from shoal.api.meta import format_time, now, owner_reference
from shoal.gangs.caches import Caches
from shoal.gangs.groups import add_groups
from shoal.gangs.hashes import generation_hash
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

GROUP = "web-0-model"
WELL, BROKEN, PENDING = "well", "broken", "pending"


def controller(manager: Manager) -> None:
    add_groups(manager, Caches(manager), GangSettings())


class Stage:
    """What a test does to the group's surroundings, and sees of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def open(self, *, replicas: int = 1, min_available: int = 1, **fields: Any) -> None:
        """Makes a set of two cliques in one scaling group, and the group as the set's controller would."""
        cliques = [a_clique_template("leader", 1), a_clique_template("worker", 3, min_available=2)]
        template = a_scaling_group_template("model", ["leader", "worker"], replicas, min_available=min_available)
        sharing = fields.pop("sharing", None)
        groups = [{**template, **({"resourceSharing": sharing} if sharing else {})}]
        await self.cluster.make(POD_CLIQUE_SETS, a_set("web", *cliques, groups=groups, **fields))
        pcs = await self._know_templates()
        labels = names.component_labels("web", GROUP, names.SCALING_GROUP_COMPONENT)
        group = {
            "metadata": {
                "name": GROUP,
                "labels": {**labels, names.SET_REPLICA_LABEL: "0"},
                "ownerReferences": [msgspec.to_builtins(owner_reference(pcs, POD_CLIQUE_SETS))],
                "finalizers": [names.SCALING_GROUP_FINALIZER],
            },
            "spec": {"replicas": replicas, "minAvailable": min_available, "cliqueNames": template["cliqueNames"]},
        }
        await self.cluster.make(SCALING_GROUPS, group)

    async def change_templates(self, image: str, *, in_work: int | None = 0) -> None:
        """Changes the set's templates, and tells of an update with a replica in work, as the set's controller would."""
        path = "/spec/template/cliques/{}/spec/podSpec"
        patch = [{"op": "replace", "path": path.format(index), "value": a_pod_spec(hostname=image)} for index in (0, 1)]
        await self.cluster.client.json_patch(POD_CLIQUE_SETS.documents(), "web", patch, "default")
        started = {"updateStartedAt": format_time(now())}
        rolling = {**started, "currentlyUpdating": [] if in_work is None else [{"replicaIndex": in_work}]}
        pcs = await self.pcs()
        closed = {**started, "updateEndedAt": format_time(now())}
        await self._know_templates(updateProgress=closed if pcs.spec.updates_on_delete else rolling)

    async def take_turn(self) -> None:
        """Tells that the update has come to the group's replica of the set."""
        turn = {"currentlyUpdating": [{"replicaIndex": 0}]}
        await self.cluster.set_status(POD_CLIQUE_SETS, "web", {"updateProgress": turn})

    async def pcs(self) -> PodCliqueSet:
        return await self.cluster.client.get(POD_CLIQUE_SETS, "web", "default")

    async def group(self) -> dict[str, Any]:
        found = await self.cluster.read(SCALING_GROUPS, GROUP)
        assert found is not None
        return found

    async def status(self) -> dict[str, Any]:
        status: dict[str, Any] = (await self.group()).get("status", {})
        return status

    async def condition(self, name: str = "MinAvailableBreached") -> dict[str, Any]:
        conditions = (await self.status()).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == name), {})

    async def members(self) -> list[dict[str, Any]]:
        return await self.cluster.all(POD_CLIQUES, labels=f"{names.SCALING_GROUP_LABEL}={GROUP}")

    async def names(self) -> list[str]:
        return [member["metadata"]["name"] for member in await self.members()]

    async def uids(self) -> dict[str, str]:
        return {member["metadata"]["name"]: member["metadata"]["uid"] for member in await self.members()}

    async def wait_for(self, *expected: str) -> None:
        """Waits until the members are these, letting go of those that were deleted."""

        async def are_there() -> bool:
            await self.let_go()
            return sorted(await self.names()) == sorted(expected)

        await until(are_there, within=30)

    async def made_anew(self, before: Mapping[str, str], *members: str) -> None:
        """Waits until members were replaced by others of their names; ``before`` are the uids of the old ones."""

        async def are_anew() -> bool:
            await self.let_go()
            after = await self.uids()
            return all(after.get(name, before[name]) != before[name] for name in members)

        await until(are_anew, within=30)

    async def let_go(self) -> list[str]:
        """Clears the finalizer of members that were deleted, as the controller of cliques would."""
        going = [member for member in await self.members() if member["metadata"].get("deletionTimestamp")]
        for member in going:
            await self.cluster.client.merge_patch(
                POD_CLIQUES.documents(), member["metadata"]["name"], {"metadata": {"finalizers": []}}, "default"
            )
        return [member["metadata"]["name"] for member in going]

    async def play(self, state: str = WELL, only: Callable[[str], bool] = lambda name: True) -> None:
        """Tells of the pods of the members, as the controller of cliques would: all are so."""
        for member in await self.members():
            metadata = member["metadata"]
            if not metadata.get("deletionTimestamp") and only(metadata["name"]):
                status = clique_status(member, state)
                if status != member.get("status"):
                    await self.cluster.set_status(POD_CLIQUES, metadata["name"], status)

    async def played(self, condition: Callable[[], Any], *, within: float = 30.0) -> None:
        """Waits for something while members come and go, and those that are there come to be well."""

        async def goes_on() -> Any:
            await self.let_go()
            await self.play()
            return await condition()

        await until(goes_on, within=within)

    async def _know_templates(self, **status: Any) -> PodCliqueSet:
        pcs = await self.pcs()
        known = {"currentGenerationHash": generation_hash(pcs), "replicas": 1, **status}
        await self.cluster.set_status(POD_CLIQUE_SETS, "web", known)
        return await self.pcs()


def clique_status(member: dict[str, Any], state: str) -> dict[str, Any]:
    """The status of a clique whose pods are all so; times stay where the answers do."""
    count = member["spec"]["replicas"]
    told = {condition["type"]: condition for condition in member.get("status", {}).get("conditions", [])}

    def answer(name: str, value: bool) -> dict[str, Any]:
        status = "True" if value else "False"
        since = told.get(name, {}).get("lastTransitionTime") if told.get(name, {}).get("status") == status else None
        return {
            "type": name,
            "status": status,
            "reason": "ToldByTest",
            "message": "",
            "lastTransitionTime": since or format_time(now()),
        }

    return {
        "observedGeneration": member["metadata"]["generation"],
        "replicas": count,
        "readyReplicas": count if state == WELL else 0,
        "updatedReplicas": count,
        "scheduleGatedReplicas": 0,
        "scheduledReplicas": 0 if state == PENDING else count,
        "currentPodTemplateHash": member["metadata"]["labels"][names.TEMPLATE_HASH_LABEL],
        "conditions": [
            answer("PodCliqueScheduled", state != PENDING),
            answer("MinAvailableBreached", state != WELL),
        ],
    }


def replica(index: int) -> list[str]:
    return [f"{GROUP}-{index}-leader", f"{GROUP}-{index}-worker"]


def replicas(indexes: Iterable[int]) -> list[str]:
    return [name for index in indexes for name in replica(index)]
