"""The storage group: StorageClass, VolumeAttributesClass, CSIDriver, CSINode, VolumeAttachment."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import outside, qualified_name_problems, subdomain_problems, text_bytes
from shoal.cluster.apiserver.builtin.selectors import label_key_problems, label_selector_problems
from shoal.cluster.apiserver.builtin.values import named, not_negative, not_negative_quantity, one_of
from shoal.cluster.apiserver.builtin.volumes import csi_driver_name_problems
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)

PARAMETERS_SIZE = 256 * 1024
PARAMETERS_COUNT = 512
LIFECYCLE_MODES = ("Persistent", "Ephemeral")


def default_class(new: Object) -> None:
    """Volumes go with their claims, and are bound at once, where nothing else is said."""
    new.setdefault("reclaimPolicy", "Delete")
    new.setdefault("volumeBindingMode", "Immediate")


def class_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a StorageClass."""
    problems = _provisioner_problems(new.get("provisioner", ""), "provisioner")
    problems += _parameters_problems(new.get("parameters") or {})
    if policy := new.get("reclaimPolicy"):
        problems += one_of("reclaimPolicy", policy, ("Delete", "Retain"))
    mode = new.get("volumeBindingMode")
    if mode is None:
        problems.append(required("volumeBindingMode"))
    else:
        problems += one_of("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(new.get("allowedTopologies") or ()):
        here = f"allowedTopologies[{index}].matchLabelExpressions"
        by_key, found = _topology_problems(term, here)
        problems += found
        if by_key in seen:
            problems.append(duplicate(here, ""))
        seen.append(by_key)
    return problems


def validate_class_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change of a StorageClass: all that matters stays."""
    return [
        immutable(field, "" if field == "provisioner" and new.get(field) is None else new.get(field))
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
        if (new.get(field) or None) != (old.get(field) or None)
    ]


def attributes_class_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a VolumeAttributesClass."""
    problems = _provisioner_problems(new.get("driverName", ""), "driverName")
    problems += _parameters_problems(new.get("parameters") or {})
    if not new.get("parameters"):
        problems.append(required("parameters", "must contain at least one key/value pair"))
    return problems


def validate_attributes_class_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change."""
    return [
        forbidden(field, f"updates to {field} are forbidden.")
        for field in ("driverName", "parameters")
        if new.get(field) != old.get(field)
    ]


def default_driver(new: Object) -> None:
    """What drivers are like where they do not say."""
    spec = new.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(field, False)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def prepare_driver(new: Object) -> None:
    """Drops what is not served yet."""
    new["spec"].pop("preventPodSchedulingIfMissing", None)


def prepare_driver_update(new: Object, old: Object) -> None:
    """The same for a change; its generation counts changes only."""
    prepare_driver(new)
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def driver_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a CSIDriver."""
    spec = new.get("spec") or {}
    problems: list[FieldProblem] = []
    if (policy := spec.get("fsGroupPolicy")) is not None:
        problems += one_of("spec.fsGroupPolicy", policy, ("File", "None", "ReadWriteOnceWithFSType"))
    audiences: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        here, audience = f"spec.tokenRequests[{index}]", request.get("audience", "")
        if audience in audiences:
            problems.append(duplicate(f"{here}.audience", audience))
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            words = "may not specify a duration less than 10 minutes"
            problems.append(invalid(f"{here}.expirationSeconds", seconds, words))
        if seconds is not None and seconds > 2**32:
            words = "may not specify a duration larger than 2^32 seconds"
            problems.append(invalid(f"{here}.expirationSeconds", seconds, words))
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in LIFECYCLE_MODES:
            problems.append(not_supported("spec.volumeLifecycleModes", mode, LIFECYCLE_MODES))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        words = "must be greater than or equal to 10 seconds"
        problems.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, words))
    secrets = spec.get("serviceAccountTokenInSecrets")
    if secrets is not None and not spec.get("tokenRequests"):
        words = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        problems.append(invalid("spec.serviceAccountTokenInSecrets", secrets, words))
    return problems


def validate_driver_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change."""
    problems = driver_problems(new)
    for field, path in (("attachRequired", "spec.attachedRequired"), ("volumeLifecycleModes",) * 2):
        if new["spec"].get(field) != old["spec"].get(field):
            place = path if path.startswith("spec.") else f"spec.{path}"
            problems.append(immutable(place, new["spec"].get(field)))
    return problems


def node_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a CSINode."""
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, driver in enumerate((new.get("spec") or {}).get("drivers") or ()):
        here, name, identity = f"spec.drivers[{index}]", driver.get("name", ""), driver.get("nodeID", "")
        problems += csi_driver_name_problems(name, f"{here}.name")
        if not identity:
            problems.append(required(f"{here}.nodeID"))
        if len(identity) > 256:
            problems.append(invalid(f"{here}.nodeID", identity, "must be 256 characters or less"))
        problems += not_negative(f"{here}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
        if name in seen:
            problems.append(duplicate(f"{here}.name", name))
        seen.add(name)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                problems.append(required(here))
            if key in keys:
                problems.append(duplicate(here, key))
            keys.add(key)
            problems += named(here, key, qualified_name_problems)
    return problems


def validate_node_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change: a driver that is there may only change what it can hold."""
    problems = node_problems(new)
    drivers = {each.get("name"): each for each in (old.get("spec") or {}).get("drivers") or ()}
    for driver in (new.get("spec") or {}).get("drivers") or ():
        before = drivers.get(driver.get("name"))
        shown = {
            "Name": driver.get("name", ""),
            "NodeID": driver.get("nodeID", ""),
            "TopologyKeys": driver.get("topologyKeys"),
            "Allocatable": None,
        }
        if before and any(driver.get(each) != before.get(each) for each in ("nodeID", "topologyKeys")):
            problems.append(immutable("spec.drivers", shown))
    return problems


def attachment_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a VolumeAttachment."""
    spec = new.get("spec") or {}
    problems = csi_driver_name_problems(spec.get("attacher", ""), "spec.attacher")
    source = spec.get("source") or {}
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    words = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        problems.append(required("spec.source", words))
    elif name is not None and inline is not None:
        problems.append(forbidden("spec.source", words))
    elif name == "":
        here = "spec.source.persistentVolumeName"
        problems.append(required(here, "must specify non empty persistentVolumeName"))
    problems += named("spec.nodeName", spec.get("nodeName", ""), subdomain_problems)
    problems += validate_attachment_status(new, new)
    if name is not None:
        problems += named("spec.source.persistentVolumeName", name, subdomain_problems)
    return problems


def validate_attachment_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change: what is attached where stays."""
    problems = attachment_problems(new)
    if new.get("spec") != old.get("spec"):
        spec = new.get("spec") or {}
        source = spec.get("source") or {}
        shown = {
            "Attacher": spec.get("attacher", ""),
            "Source": {
                "PersistentVolumeName": source.get("persistentVolumeName"),
                "InlineVolumeSpec": source.get("inlineVolumeSpec"),
            },
            "NodeName": spec.get("nodeName", ""),
        }
        problems.append(immutable("spec", shown))
    return problems


def validate_attachment_status(new: Object, _old: Object) -> list[FieldProblem]:
    """What is wrong with what its driver reports."""
    status = new.get("status") or {}
    problems: list[FieldProblem] = []
    size = sum(text_bytes(key) + text_bytes(value) for key, value in (status.get("attachmentMetadata") or {}).items())
    if size > PARAMETERS_SIZE:
        problems.append(too_long("status.attachmentMetadata", PARAMETERS_SIZE))
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if text_bytes(error.get("message", "")) > 1024:
            problems.append(too_long(f"status.{field}.message", PARAMETERS_SIZE))
        if (error.get("errorCode") or 0) < 0:
            words = outside(0, 2**31 - 1)
            problems.append(invalid(f"status.{field}.errorCode", error["errorCode"], words))
    return problems


def capacity_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a CSIStorageCapacity."""
    problems = label_selector_problems(new.get("nodeTopology"), "nodeTopology")
    problems += named("storageClassName", new.get("storageClassName", ""), subdomain_problems)
    if new.get("capacity") is not None:
        problems += not_negative_quantity("capacity", new["capacity"])
    return problems


def validate_capacity_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change."""
    fields = ("nodeTopology", "storageClassName")
    return [immutable(field, new.get(field)) for field in fields if new.get(field) != old.get(field)]


def _provisioner_problems(name: str, path: str) -> list[FieldProblem]:
    return named(path, name.lower(), qualified_name_problems) if name else [required(path)]


def _parameters_problems(parameters: dict[str, str]) -> list[FieldProblem]:
    if len(parameters) > PARAMETERS_COUNT:
        return [too_long("parameters", PARAMETERS_COUNT)]
    problems = [invalid("parameters", "", "field can not be empty.") for key in parameters if not key]
    if sum(text_bytes(key) + text_bytes(value) for key, value in parameters.items()) > PARAMETERS_SIZE:
        problems.append(too_long("parameters", PARAMETERS_SIZE))
    return problems


def _topology_problems(term: dict[str, Any], path: str) -> tuple[dict[str, set[str]], list[FieldProblem]]:
    problems: list[FieldProblem] = []
    by_key: dict[str, set[str]] = {}
    for index, requirement in enumerate(term.get("matchLabelExpressions") or ()):
        here, key, values = f"{path}[{index}]", requirement.get("key", ""), requirement.get("values") or []
        if not values:
            problems.append(required(f"{here}.values"))
        for place, value in enumerate(values):
            if value in values[:place]:
                problems.append(duplicate(f"{here}.values[{place}]", value))
        problems += label_key_problems(key, f"{here}.key")
        if key in by_key:
            problems.append(duplicate(f"{here}.key", key))
        by_key[key] = set(values)
    return by_key, problems


GROUP = "storage.k8s.io"
RULES = {
    (GROUP, "StorageClass"): Rules(
        name_problems=subdomain_problems,
        defaults=default_class,
        validate_create=class_problems,
        validate_update=validate_class_update,
        has_generation=False,
    ),
    (GROUP, "VolumeAttributesClass"): Rules(
        name_problems=subdomain_problems,
        validate_create=attributes_class_problems,
        validate_update=validate_attributes_class_update,
        has_generation=False,
    ),
    (GROUP, "CSIDriver"): Rules(
        name_problems=subdomain_problems,
        defaults=default_driver,
        prepare_create=prepare_driver,
        prepare_update=prepare_driver_update,
        validate_create=driver_problems,
        validate_update=validate_driver_update,
        has_generation=False,
        unconditional_update=False,
    ),
    (GROUP, "CSINode"): Rules(
        name_problems=subdomain_problems,
        validate_create=node_problems,
        validate_update=validate_node_update,
        has_generation=False,
        unconditional_update=False,
    ),
    (GROUP, "VolumeAttachment"): Rules(
        name_problems=subdomain_problems,
        validate_create=attachment_problems,
        validate_update=validate_attachment_update,
        validate_status=validate_attachment_status,
        has_generation=False,
        unconditional_update=False,
        resets={"": (("status",),), "status": (("metadata",), ("spec",))},
    ),
    (GROUP, "CSIStorageCapacity"): Rules(
        name_problems=subdomain_problems,
        validate_create=capacity_problems,
        validate_update=validate_capacity_update,
        has_generation=False,
        unconditional_update=False,
    ),
}
