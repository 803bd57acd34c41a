"""Which container of a pod a request means, and on which node the pod is."""

from __future__ import annotations

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import bad_request

_LISTS = ("initContainers", "containers", "ephemeralContainers")


def chosen_container(pod: Object, wanted: str) -> str:
    """The container that is named or, of a pod with a single one, that one; raises Refused.

    A pod's annotation for its default container is kubectl's to read: the server asks for a name all the same.
    """
    spec, name = pod["spec"], pod["metadata"]["name"]
    known = [container["name"] for key in _LISTS for container in spec.get(key) or ()]
    if wanted:
        if wanted not in known:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    main = spec.get("containers") or []
    if len(main) == 1:
        return str(main[0]["name"])
    message = f"a container name must be specified for pod {name}"
    raise bad_request(f"{message}, choose one of: [{' '.join(known)}]" if main else message)


def assigned_node(pod: Object) -> str:
    """The node that the pod runs on; raises Refused where it has none yet."""
    node = pod["spec"].get("nodeName")
    if not node:
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    return str(node)
