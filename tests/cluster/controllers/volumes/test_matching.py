from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec
from shoal.api.core.pods import ClaimSource, EphemeralSource, PodVolume, ResourceRequirements
from shoal.api.core.volumes import ClaimSpec, ClaimStatus, VolumeSpec, VolumeStatus
from shoal.api.meta import LabelSelector, ObjectMeta, OwnerReference
from shoal.cluster.controllers.volumes.binding import claim_status
from shoal.cluster.controllers.volumes.local_path import NotOurs, folder_of, remove_folder
from shoal.cluster.controllers.volumes.matching import best_match, mismatch
from shoal.cluster.controllers.volumes.protection import uses

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RWO, ROX, RWX = "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"


def a_claim(
    size: str = "5Gi",
    *,
    modes: tuple[str, ...] = (RWO,),
    storage_class: str | None = "",
    mode: str = "",
    selector: dict[str, str] | None = None,
    attributes: str | None = None,
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name="c", namespace="ns", uid="c-uid"),
        spec=ClaimSpec(
            access_modes=list(modes),
            resources=ResourceRequirements(requests={"storage": size}),
            storage_class_name=storage_class,
            volume_mode=mode,
            selector=LabelSelector(match_labels=selector) if selector is not None else None,
            volume_attributes_class_name=attributes,
        ),
    )


def a_volume(
    name: str,
    size: str = "10Gi",
    *,
    modes: tuple[str, ...] = (RWO,),
    storage_class: str = "",
    phase: str = "Available",
    mode: str = "",
    claim: tuple[str, str] | None = None,
    labels: dict[str, str] | None = None,
    zone: str = "",
    deleting: bool = False,
) -> PersistentVolume:
    affinity: dict[str, Any] | None = None
    if zone:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        affinity = {"required": {"nodeSelectorTerms": [term]}}
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=labels or {}, deletion_timestamp=NOW if deleting else None),
        spec=VolumeSpec(
            capacity={"storage": size},
            access_modes=list(modes),
            storage_class_name=storage_class,
            volume_mode=mode,
            claim_ref=ObjectReference(namespace="ns", name=claim[0], uid=claim[1]) if claim else None,
            node_affinity=affinity,
        ),
        status=VolumeStatus(phase=phase),
    )


@pytest.mark.parametrize(
    ("claim", "volumes", "expected"),
    [
        pytest.param(a_claim(), [], None, id="none there"),
        pytest.param(a_claim(), [a_volume("v")], "v", id="one that is larger"),
        pytest.param(a_claim("20Gi"), [a_volume("v")], None, id="one that is too small"),
        pytest.param(
            a_claim(), [a_volume("l", "100Gi"), a_volume("s", "6Gi"), a_volume("m", "10Gi")], "s", id="the smallest"
        ),
        pytest.param(
            a_claim("1Gi"),
            [a_volume("many", "1Gi", modes=(RWO, ROX)), a_volume("few", "9Gi")],
            "few",
            id="few access modes before a better size",
        ),
        pytest.param(a_claim(modes=(RWX,)), [a_volume("v")], None, id="an access mode is missing"),
        pytest.param(
            a_claim(modes=(RWX, RWO)), [a_volume("v", modes=(RWO, ROX, RWX))], "v", id="more modes than asked"
        ),
        pytest.param(a_claim(storage_class="gold"), [a_volume("v")], None, id="another class"),
        pytest.param(
            a_claim(storage_class="gold"), [a_volume("v"), a_volume("g", storage_class="gold")], "g", id="its class"
        ),
        pytest.param(a_claim(mode="Block"), [a_volume("v")], None, id="a file system for a block device"),
        pytest.param(a_claim(), [a_volume("v", mode="Filesystem")], "v", id="no mode means a file system"),
        pytest.param(a_claim(), [a_volume("v", phase="Pending")], None, id="not available yet"),
        pytest.param(a_claim(), [a_volume("v", deleting=True)], None, id="on its way out"),
        pytest.param(a_claim(selector={"a": "b"}), [a_volume("v")], None, id="not selected"),
        pytest.param(
            a_claim(selector={"a": "b"}), [a_volume("v"), a_volume("w", labels={"a": "b"})], "w", id="the selected one"
        ),
        pytest.param(
            a_claim(),
            [a_volume("small", "5Gi"), a_volume("mine", "99Gi", claim=("c", ""))],
            "mine",
            id="a reserved one",
        ),
        pytest.param(
            a_claim(storage_class="gold"),
            [a_volume("mine", claim=("c", "c-uid"), phase="Pending")],
            "mine",
            id="what was made for it, whatever its class and phase",
        ),
        pytest.param(a_claim("20Gi"), [a_volume("mine", claim=("c", ""))], None, id="a reserved one that is too small"),
        pytest.param(a_claim(), [a_volume("v", claim=("c", "older"))], None, id="that of an older claim of its name"),
        pytest.param(a_claim(), [a_volume("v", claim=("other", ""))], None, id="that of another claim"),
        pytest.param(a_claim(attributes="fast"), [a_volume("v")], None, id="other attributes"),
    ],
)
def test_a_claim_gets_the_volume_that_suits_it_best(
    claim: PersistentVolumeClaim, volumes: list[PersistentVolume], expected: str | None
) -> None:
    found = best_match(claim, volumes)
    assert (found.metadata.name if found else None) == expected


def test_while_its_user_has_no_node_a_claim_gets_only_what_is_reserved() -> None:
    free, reserved = a_volume("free"), a_volume("mine", claim=("c", ""))
    assert best_match(a_claim(), [free], takes_unclaimed=False) is None
    assert best_match(a_claim(), [free, reserved], takes_unclaimed=False) is reserved


def test_a_volume_must_be_usable_where_the_user_is() -> None:
    node = Node(metadata=ObjectMeta(name="n", labels={"zone": "b"}))
    there, here = a_volume("there", zone="a"), a_volume("here", "99Gi", zone="b")
    assert best_match(a_claim(), [there, here], node=node) is here


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(a_volume("v"), None, id="fits"),
        pytest.param(a_volume("v", deleting=True), 'the volume is marked for deletion "v"', id="deleting"),
        pytest.param(a_volume("v", "1Gi"), "requested PV is too small", id="small"),
        pytest.param(a_volume("v", storage_class="x"), "storageClassName does not match", id="class"),
        pytest.param(a_volume("v", mode="Block"), "incompatible volumeMode", id="mode"),
        pytest.param(a_volume("v", modes=(ROX,)), "incompatible accessMode", id="access"),
    ],
)
def test_a_mismatch_is_told_in_the_words_of_kubernetes(volume: PersistentVolume, expected: str | None) -> None:
    assert mismatch(volume, a_claim()) == expected


def test_the_capacity_of_a_claim_is_set_when_it_is_bound_and_then_left_alone() -> None:
    volume = a_volume("v", "10Gi")
    bound = claim_status(a_claim(), "Bound", volume)
    assert (bound.phase, bound.capacity, bound.access_modes) == ("Bound", {"storage": "10Gi"}, [RWO])
    grown = PersistentVolumeClaim(status=ClaimStatus(phase="Bound", capacity={"storage": "8Gi"}))
    assert claim_status(grown, "Bound", volume).capacity == {"storage": "8Gi"}
    assert claim_status(grown, "Lost", None).capacity == {}


def a_user(*, node: str = "n", ephemeral: bool = False, over: bool = False, name: str = "p") -> Pod:
    volume = (
        PodVolume(name="v", ephemeral=EphemeralSource())
        if ephemeral
        else PodVolume(name="v", persistent_volume_claim=ClaimSource(claim_name="p-v"))
    )
    metadata = ObjectMeta(
        name=name,
        namespace="ns",
        uid="p-uid",
        deletion_timestamp=NOW if over else None,
        deletion_grace_period_seconds=0 if over else None,
    )
    return Pod(metadata=metadata, spec=PodSpec(node_name=node, volumes=[volume]))


@pytest.mark.parametrize(
    ("pod", "owner", "expected"),
    [
        pytest.param(a_user(), "", True, id="a pod on a node"),
        pytest.param(a_user(node=""), "", False, id="a pod without a node"),
        pytest.param(a_user(over=True), "", True, id="a pod that is not gone yet"),
        pytest.param(a_user(ephemeral=True), "p-uid", True, id="the pod that it was made for"),
        pytest.param(a_user(ephemeral=True, over=True), "p-uid", False, id="which the node is done with"),
        pytest.param(a_user(ephemeral=True), "other", False, id="made for another pod"),
    ],
)
def test_who_uses_a_claim(pod: Pod, owner: str, expected: bool) -> None:
    owners = [OwnerReference(api_version="v1", kind="Pod", name="p", uid=owner, controller=True)] if owner else []
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="p-v", namespace="ns", owner_references=owners))
    assert uses(pod, claim) is expected


def at_path(name: str, path: str) -> PersistentVolume:
    return PersistentVolume(metadata=ObjectMeta(name=name), spec=VolumeSpec(host_path={"path": path}))


def test_only_a_path_that_was_given_out_is_a_place_of_ours(tmp_path: Path) -> None:
    assert folder_of(at_path("pvc-1", f"{tmp_path}/pvc-1"), tmp_path) == tmp_path / "pvc-1"
    for name, path in [
        ("pvc-1", "/"),
        ("pvc-1", str(tmp_path)),
        ("pvc-1", f"{tmp_path}/pvc-2"),
        ("pvc-1", f"{tmp_path}/../pvc-1"),
        ("..", f"{tmp_path}/.."),
        ("a/b", f"{tmp_path}/a/b"),
        ("pvc-1", ""),
    ]:
        with pytest.raises(NotOurs):
            folder_of(at_path(name, path), tmp_path)


def test_what_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "link").symlink_to(kept)
    (tmp_path / "linked").symlink_to(kept)
    remove_folder(volume)
    remove_folder(tmp_path / "linked")
    remove_folder(tmp_path / "never-made")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (kept / "file").exists()
