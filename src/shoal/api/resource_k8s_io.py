"""resource.k8s.io: claims of devices and their templates, and the parts of them that other kinds embed.

An allocation says which devices a claim was given and where they can be reached; a device request says what was asked
for. The shapes are those of v1.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from shoal.api.crd import Int64, field_schema, struct_schema
from shoal.api.meta import Document, Object, Resource
from shoal.api.meta.objects import Wire
from shoal.api.meta.quantity import ResourceList

GROUP = "resource.k8s.io"


class NodeSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One condition on a node's label or field."""

    key: Annotated[str, field_schema("The label or field.")]
    operator: Annotated[str, field_schema("In, NotIn, Exists, DoesNotExist, Gt or Lt.")]
    values: Annotated[
        list[str], field_schema("What the operator compares with; Gt and Lt take one integer.", list_type="atomic")
    ] = []


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    """Conditions that a node must meet all of; without any it matches no node."""

    SCHEMA = struct_schema(map_type="atomic")

    match_expressions: Annotated[
        list[NodeSelectorRequirement], field_schema("Conditions on labels.", list_type="atomic")
    ] = []
    match_fields: Annotated[
        list[NodeSelectorRequirement], field_schema("Conditions on fields.", list_type="atomic")
    ] = []


class NodeSelector(Wire, frozen=True, kw_only=True):
    """Nodes that match at least one of the terms."""

    SCHEMA = struct_schema(map_type="atomic")

    node_selector_terms: Annotated[
        list[NodeSelectorTerm], field_schema("The terms, any of which may match.", list_type="atomic")
    ]


class CelDeviceSelector(Wire, frozen=True, kw_only=True):
    """Selects devices by an expression."""

    expression: Annotated[str, field_schema("A CEL expression on the variable device; true selects it.")]


class DeviceSelector(Wire, frozen=True, kw_only=True):
    """One condition on devices."""

    cel: Annotated[CelDeviceSelector | None, field_schema("The condition as a CEL expression.")] = None


class DeviceToleration(Wire, frozen=True, kw_only=True):
    """A taint on devices that a request accepts."""

    key: Annotated[str, field_schema("The taint's key; empty with operator Exists accepts every taint.")] = ""
    operator: Annotated[str, field_schema("Equal or Exists.", default="Equal")] = ""
    value: Annotated[str, field_schema("The taint's value, for operator Equal.")] = ""
    effect: Annotated[str, field_schema("NoSchedule or NoExecute; empty accepts both.")] = ""
    toleration_seconds: Annotated[
        Int64 | None, field_schema("How long a NoExecute taint is accepted; unset is for ever, 0 and less not at all.")
    ] = None


class CapacityRequirements(Wire, frozen=True, kw_only=True):
    """How much of a shareable device is asked for."""

    requests: Annotated[ResourceList, field_schema("Amounts by the name of the capacity.")] = {}


class ExactDeviceRequest(Wire, frozen=True, kw_only=True):
    """Devices of one class."""

    device_class_name: Annotated[str, field_schema("The DeviceClass.")]
    selectors: Annotated[
        list[DeviceSelector], field_schema("Conditions that a device must meet all of.", list_type="atomic")
    ] = []
    allocation_mode: Annotated[str, field_schema("ExactCount, which is the default, or All.")] = ""
    count: Annotated[Int64 | None, field_schema("How many, with ExactCount; 1 when unset.")] = None
    admin_access: Annotated[bool | None, field_schema("Look at the devices without taking them.")] = None
    tolerations: Annotated[
        list[DeviceToleration], field_schema("Taints on devices that are accepted.", list_type="atomic")
    ] = []
    capacity: Annotated[CapacityRequirements | None, field_schema("How much of each device is needed.")] = None


class DeviceSubRequest(Wire, frozen=True, kw_only=True):
    """One of several ways to satisfy a request."""

    name: Annotated[str, field_schema("Unique among the alternatives.")]
    device_class_name: Annotated[str, field_schema("The DeviceClass.")]
    selectors: Annotated[
        list[DeviceSelector], field_schema("Conditions that a device must meet all of.", list_type="atomic")
    ] = []
    allocation_mode: Annotated[str, field_schema("ExactCount, which is the default, or All.")] = ""
    count: Annotated[Int64 | None, field_schema("How many, with ExactCount; 1 when unset.")] = None
    tolerations: Annotated[
        list[DeviceToleration], field_schema("Taints on devices that are accepted.", list_type="atomic")
    ] = []
    capacity: Annotated[CapacityRequirements | None, field_schema("How much of each device is needed.")] = None


class DeviceRequest(Wire, frozen=True, kw_only=True):
    """What a claim asks for: one kind of device, or the first of several that can be had."""

    name: Annotated[str, field_schema("What containers refer to this request by.")]
    exactly: Annotated[ExactDeviceRequest | None, field_schema("The one way to satisfy the request.")] = None
    first_available: Annotated[
        list[DeviceSubRequest], field_schema("Ways to satisfy it, best first.", list_type="atomic")
    ] = []


class OpaqueDeviceConfiguration(Wire, frozen=True, kw_only=True):
    """Settings that only the driver understands."""

    driver: Annotated[str, field_schema("The driver that they are for.")]
    parameters: Annotated[dict[str, Any], field_schema("The settings, in the driver's own form.")]


class DeviceAllocationConfiguration(Wire, frozen=True, kw_only=True):
    """Settings that came with an allocation."""

    source: Annotated[str, field_schema("FromClass or FromClaim.")]
    requests: Annotated[
        list[str], field_schema("The requests that they apply to; empty is all.", list_type="atomic")
    ] = []
    opaque: Annotated[OpaqueDeviceConfiguration | None, field_schema("The settings.")] = None


class DeviceRequestAllocationResult(Wire, frozen=True, kw_only=True):
    """One device, given to one request."""

    request: Annotated[str, field_schema("The request, with a slash and the alternative where there were several.")]
    driver: Annotated[str, field_schema("The driver of the device.")]
    pool: Annotated[str, field_schema("The pool that the device is in.")]
    device: Annotated[str, field_schema("The device's name in its pool.")]
    admin_access: Annotated[bool | None, field_schema("Given for looking only; others may have it too.")] = None
    tolerations: Annotated[
        list[DeviceToleration], field_schema("The taints that the request accepted.", list_type="atomic")
    ] = []
    binding_conditions: Annotated[
        list[str], field_schema("Conditions of the device that must hold before pods are bound.", list_type="atomic")
    ] = []
    binding_failure_conditions: Annotated[
        list[str], field_schema("Conditions of the device that call the binding off.", list_type="atomic")
    ] = []
    share_id: Annotated[str, field_schema("Tells the shares of one device apart.")] = msgspec.field(
        name="shareID", default=""
    )
    consumed_capacity: Annotated[ResourceList, field_schema("What was taken of a shareable device.")] = {}


class DeviceAllocationResult(Wire, frozen=True, kw_only=True):
    """The devices of an allocation and their settings."""

    results: Annotated[list[DeviceRequestAllocationResult], field_schema("The devices given.", list_type="atomic")] = []
    config: Annotated[
        list[DeviceAllocationConfiguration],
        field_schema("Settings of classes first, then of the claim; later ones win.", list_type="atomic"),
    ] = []


class AllocationResult(Wire, frozen=True, kw_only=True):
    """What a claim was given."""

    devices: Annotated[DeviceAllocationResult, field_schema("The devices.")] = DeviceAllocationResult()
    node_selector: Annotated[
        NodeSelector | None, field_schema("Where the devices are reachable; unset is anywhere.")
    ] = None
    allocation_timestamp: Annotated[datetime | None, field_schema("When it was given.")] = None


RESOURCE_CLAIMS = Resource(type=Document, group=GROUP, version="v1", kind="ResourceClaim", plural="resourceclaims")
RESOURCE_CLAIM_TEMPLATES = Resource(
    type=Document, group=GROUP, version="v1", kind="ResourceClaimTemplate", plural="resourceclaimtemplates"
)


# What schedulers read of claims and of the devices that there are


class DeviceConstraint(Wire, frozen=True, kw_only=True):
    """What the devices of several requests must have in common."""

    requests: list[str] = []
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceClaimDevices(Wire, frozen=True, kw_only=True):
    """The devices that a claim asks for."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[dict[str, Any]] = []


class DeviceClaimSpec(Wire, frozen=True, kw_only=True):
    """What a claim asks for."""

    devices: DeviceClaimDevices = DeviceClaimDevices()


class DeviceConsumer(Wire, frozen=True, kw_only=True):
    """Who uses a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceClaimStatus(Wire, frozen=True, kw_only=True):
    """What a claim was given, and who uses it."""

    allocation: AllocationResult | None = None
    reserved_for: list[DeviceConsumer] = []


class DeviceClaim(Object, frozen=True, kw_only=True):
    """A claim of devices."""

    spec: DeviceClaimSpec = DeviceClaimSpec()
    status: DeviceClaimStatus = DeviceClaimStatus()


class DeviceClassSpec(Wire, frozen=True, kw_only=True):
    """Which devices a class is made of, and how they are set up."""

    selectors: list[DeviceSelector] = []
    config: list[dict[str, Any]] = []


class DeviceClass(Object, frozen=True, kw_only=True):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()


class Device(Wire, frozen=True, kw_only=True):
    """One device."""

    name: str = ""
    attributes: dict[str, dict[str, Any]] = {}
    """By name, with the driver's domain where it has another: one value under its type."""
    node_name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None
    taints: list[dict[str, Any]] = []
    allow_multiple_allocations: bool = False
    consumes_counters: list[dict[str, Any]] = []


class DevicePool(Wire, frozen=True, kw_only=True):
    """Which devices belong together; of its slices only those of the latest generation count."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire, frozen=True, kw_only=True):
    """Devices of one driver, and the nodes that reach them."""

    driver: str = ""
    pool: DevicePool = DevicePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[Device] = []


class ResourceSlice(Object, frozen=True, kw_only=True):
    """Some of the devices of a pool."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


DEVICE_CLAIMS: Resource[DeviceClaim] = RESOURCE_CLAIMS.view(DeviceClaim)
"""ResourceClaims as those read them who give devices away."""
DEVICE_CLASSES = Resource(
    type=DeviceClass, group=GROUP, version="v1", kind="DeviceClass", plural="deviceclasses", namespaced=False
)
RESOURCE_SLICES = Resource(
    type=ResourceSlice, group=GROUP, version="v1", kind="ResourceSlice", plural="resourceslices", namespaced=False
)
