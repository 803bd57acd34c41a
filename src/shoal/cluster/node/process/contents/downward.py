"""What a pod may know of itself: fields of its own object, and the resources of its containers."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.core.pod_details import ContainerDetails, PodDetails, ResourceFieldSelector
from shoal.api.meta import Quantity, QuantityString, parse_quantity
from shoal.cluster.node.process.contents.problems import Missing

_ESCAPES = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\"",
}  # fmt: skip
_DEFAULTED = ("cpu", "memory", "ephemeral-storage")


def field_of(pod: PodDetails, path: str) -> str:
    """A field of the pod's metadata; Missing where it is none that can be asked for."""
    metadata = pod.metadata
    if path.endswith("']") and "['" in path:
        where, key = path.removesuffix("']").split("['", 1)
        if where == "metadata.labels":
            return metadata.labels.get(key, "")
        if where == "metadata.annotations":
            return metadata.annotations.get(key, "")
        raise Missing(f'fieldPath "{path}" does not support subscript')
    match path:
        case "metadata.name":
            return metadata.name
        case "metadata.namespace":
            return metadata.namespace
        case "metadata.uid":
            return metadata.uid
        case "metadata.labels":
            return _lines(metadata.labels)
        case "metadata.annotations":
            return _lines(metadata.annotations)
    raise Missing(f"unsupported fieldPath: {path}")


def running_field_of(pod: PodDetails, path: str, *, address: str, node_address: str) -> str:
    """A field for a variable, which may also be one that is known only once the pod has a place."""
    match path:
        case "spec.nodeName":
            return pod.spec.node_name
        case "spec.serviceAccountName":
            return pod.spec.service_account_name
        case "status.hostIP" | "status.hostIPs":
            return node_address
        case "status.podIP" | "status.podIPs":
            return address
    return field_of(pod, path)


def resource_of(
    pod: PodDetails,
    chosen: ResourceFieldSelector,
    allocatable: Mapping[str, QuantityString],
    container: ContainerDetails | None = None,
) -> str:
    """A request or limit in units of the divisor, rounded up; a limit that is not set is what the node has."""
    if chosen.container_name:
        container = _container(pod, chosen.container_name)
    if container is None:
        raise Missing(f"{chosen.resource} of no container is asked for: name one")
    kind, _, resource = chosen.resource.partition(".")
    if kind not in ("limits", "requests") or not (resource in _DEFAULTED or resource.startswith("hugepages-")):
        raise Missing(f"unsupported container resource : {chosen.resource}")
    resources = container.resources
    amount = _amount(resources.limits if kind == "limits" else resources.requests, resource)
    if kind == "limits" and amount.is_zero and resource in _DEFAULTED:
        shared = pod.spec.resources.limits if pod.spec.resources is not None else {}
        amount = _amount(shared, resource)
        if amount.is_zero:
            amount = _amount(allocatable, resource)
    divisor = parse_quantity(chosen.divisor) if chosen.divisor is not None else Quantity.of(1)
    if divisor.is_zero:
        divisor = Quantity.of(1)
    if resource == "cpu":
        return str(-(-amount.milli_value() // divisor.milli_value()))
    return str(-(-amount.value() // divisor.value()))


def _container(pod: PodDetails, name: str) -> ContainerDetails:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            return container
    raise Missing(f"container {name} not found")


def _amount(amounts: Mapping[str, QuantityString], resource: str) -> Quantity:
    return parse_quantity(amounts.get(resource, 0))


def _lines(values: Mapping[str, str]) -> str:
    """``key="value"``, one on each line, in the order of the keys."""
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    """A text as Go quotes it: printable letters stay, the rest is escaped."""
    return f'"{"".join(_ESCAPES.get(letter) or _shown(letter) for letter in text)}"'


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
