"""Nodes that fall ill or silent: their taints, and what becomes of their pods. Only the story runs these nodes."""

from __future__ import annotations

from tests.differential.mirror import Object
from tests.differential.objects import a_bare_pod
from tests.differential.story import Story, Teller

HEALTHY = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}


def _say(c: Teller, ready: str, **others: str) -> None:
    """Lets the story's node report how it is."""
    conditions = [
        {"type": kind, "status": value, "reason": "Said", "message": "by the story", "lastHeartbeatTime": c.time()}
        | {"lastTransitionTime": c.time()}
        for kind, value in {**HEALTHY, **others, "Ready": ready}.items()
    ]
    c.replace_status("Node", f"{c.namespace}.n", {"conditions": conditions})


def _alone(c: Teller) -> dict[str, str]:
    """Labels that put a node into a zone of its own: where many fail at once, pods are left where they are."""
    return {"topology.kubernetes.io/zone": c.namespace}


def _tolerating(seconds: int) -> list[Object]:
    return [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for name in ("not-ready", "unreachable")
    ]


def _taints(c: Teller, *names: str, within: float = 30) -> None:
    """Waits until the node has exactly these taints."""

    def holds() -> bool:
        found = c.get("Node", f"{c.namespace}.n")["spec"].get("taints", [])
        return sorted(one["key"].rpartition("/")[2] + ":" + one["effect"] for one in found) == sorted(names)

    c.until(holds, f"the node has taints {names}", within=within)


def _not_ready(c: Teller) -> None:
    node = c.a_silent_node(**_alone(c))
    _say(c, "True")
    _taints(c)
    c.create(a_bare_pod("short", tolerations=_tolerating(1), **node), a_bare_pod("long", **node))
    c.run(*c.pods())
    _say(c, "False")
    _taints(c, "not-ready:NoSchedule", "not-ready:NoExecute")
    c.until(lambda: "deletionTimestamp" in c.get("Pod", "short")["metadata"])
    c.snapshot("not ready")
    _say(c, "True")
    _taints(c)
    c.snapshot("ready again")


def _unknown(c: Teller) -> None:
    node = c.a_silent_node(**_alone(c))
    _say(c, "True")
    _taints(c)
    c.create(a_bare_pod("short", tolerations=_tolerating(1), **node), a_bare_pod("long", **node))
    c.run(*c.pods())
    _say(c, "Unknown")
    _taints(c, "unreachable:NoSchedule", "unreachable:NoExecute")
    c.until(lambda: "deletionTimestamp" in c.get("Pod", "short")["metadata"])
    c.snapshot("unreachable")


def _silent(c: Teller) -> None:
    node = c.a_silent_node(**_alone(c))
    _say(c, "True")
    _taints(c)
    c.create(a_bare_pod("short", tolerations=_tolerating(1), **node), a_bare_pod("long", **node))
    c.run(*c.pods())
    _taints(c, "unreachable:NoSchedule", "unreachable:NoExecute", within=90)
    c.until(lambda: "deletionTimestamp" in c.get("Pod", "short")["metadata"])
    c.snapshot("nothing was heard of it for a while")
    _say(c, "True")
    _taints(c)
    c.snapshot("it is back")


def _pressure(c: Teller) -> None:
    c.a_silent_node()
    _say(c, "True", MemoryPressure="True", DiskPressure="True", NetworkUnavailable="True")
    _taints(c, "memory-pressure:NoSchedule", "disk-pressure:NoSchedule", "network-unavailable:NoSchedule")
    c.snapshot("under pressure")
    _say(c, "True")
    _taints(c)
    c.snapshot("relieved")


def _tainted(c: Teller) -> None:
    node = c.a_silent_node()
    _say(c, "True")
    _taints(c)
    tolerated = {"key": "drain", "operator": "Exists", "effect": "NoExecute"}
    c.create(a_bare_pod("goes", **node), a_bare_pod("stays", tolerations=[tolerated], **node))
    c.create(a_bare_pod("later", tolerations=[{**tolerated, "tolerationSeconds": 1}], **node))
    c.patch("Node", f"{c.namespace}.n", {"spec": {"taints": [{"key": "drain", "effect": "NoExecute"}]}})
    c.until(lambda: all("deletionTimestamp" in c.get("Pod", name)["metadata"] for name in ("goes", "later")))
    c.snapshot("those that do not tolerate it go")


def _cordoned(c: Teller) -> None:
    c.a_silent_node()
    _say(c, "True")
    _taints(c)
    c.patch("Node", f"{c.namespace}.n", {"spec": {"unschedulable": True}})
    _taints(c, "unschedulable:NoSchedule")
    c.snapshot("cordoned")
    c.patch("Node", f"{c.namespace}.n", {"spec": {"unschedulable": None}})
    _taints(c)
    c.snapshot("and not")


def _new(c: Teller) -> None:
    c.a_silent_node()
    c.later()
    c.snapshot("it has said nothing yet")


def _labels(c: Teller) -> None:
    c.a_silent_node()
    c.patch(
        "Node", f"{c.namespace}.n", {"metadata": {"labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "x"}}}
    )
    _say(c, "True")
    c.until(lambda: "beta.kubernetes.io/os" in c.get("Node", f"{c.namespace}.n")["metadata"]["labels"])
    c.snapshot("old names of labels are kept up")


def _gone(c: Teller) -> None:
    c.create(a_bare_pod("lost", {"finalizers": ["example.com/hold"]}, nodeName=f"{c.namespace}.nowhere"))
    c.until(lambda: "deletionTimestamp" in c.get("Pod", "lost")["metadata"], "the pod is collected", within=120)
    c.snapshot("a pod on a node that is not there")


STORIES = [
    Story("node not ready", _not_ready),
    Story("node unreachable", _unknown),
    Story("node falls silent", _silent, slow=True),
    Story("node under pressure", _pressure),
    Story("node tainted", _tainted),
    Story("node cordoned", _cordoned),
    Story("node new", _new),
    Story("node labels", _labels),
    Story("node that is not there", _gone, slow=True),
]
