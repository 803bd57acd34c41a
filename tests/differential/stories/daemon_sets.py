"""DaemonSets: a pod on every node that fits. The nodes belong to the story, and only its pods go there."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.objects import a_bare_pod, a_daemon_set, image
from tests.differential.story import Story, Teller
from tests.differential.worlds import a_fake_node


def _node(c: Teller, name: str, taints: Any = (), **labels: str) -> None:
    """A node of this story; no other story's pods tolerate it."""
    own = {"key": "story", "value": c.namespace, "effect": "NoSchedule"}
    metadata = {"labels": {"story": c.namespace, **labels}}
    c.create(a_fake_node(f"{c.namespace}.{name}", metadata=metadata, spec={"taints": [own, *taints]}))
    c.until(lambda: c.get("Node", f"{c.namespace}.{name}")["spec"]["taints"] == [own, *taints], "the node is ready")


def _pods(c: Teller, **more: Any) -> Object:
    """What the pods of a story's DaemonSet want: its nodes."""
    toleration = {"key": "story", "value": c.namespace, "effect": "NoSchedule"}
    selector = {"story": c.namespace, **more.pop("nodeSelector", {})}
    return {"nodeSelector": selector, "tolerations": [toleration, *more.pop("tolerations", [])], **more}


def _settled(c: Teller, count: int, **more: Any) -> None:
    c.until_status("DaemonSet", "agent", desiredNumberScheduled=count, numberReady=count, **more)


def _every_node(c: Teller) -> None:
    _node(c, "a")
    _node(c, "b")
    c.create(a_daemon_set(pod=_pods(c)))
    _settled(c, 2, numberAvailable=2)
    c.snapshot("on both")
    _node(c, "c")
    _settled(c, 3, numberAvailable=3)
    c.snapshot("on the new one too")


def _selected(c: Teller) -> None:
    _node(c, "a", disk="ssd")
    _node(c, "b")
    c.create(a_daemon_set(pod=_pods(c, nodeSelector={"disk": "ssd"})))
    _settled(c, 1)
    c.snapshot("on the one with the label")
    c.patch("Node", f"{c.namespace}.b", {"metadata": {"labels": {"disk": "ssd"}}})
    _settled(c, 2)
    c.patch("Node", f"{c.namespace}.a", {"metadata": {"labels": {"disk": None}}})
    _settled(c, 1)
    c.until_pods(1)
    c.snapshot("labels have moved")


def _tainted(c: Teller) -> None:
    dedicated = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    _node(c, "a", taints=[dedicated])
    _node(c, "b")
    c.create(a_daemon_set(pod=_pods(c)))
    _settled(c, 1)
    c.snapshot("not on the one that is dedicated")
    patch = {"spec": {"template": {"spec": _pods(c, tolerations=[{"operator": "Exists"}])}}}
    c.patch("DaemonSet", "agent", patch)
    _settled(c, 2, updatedNumberScheduled=2)
    c.snapshot("now tolerated")


def _tainted_later(c: Teller) -> None:
    _node(c, "a")
    c.create(a_daemon_set(pod=_pods(c)))
    _settled(c, 1)
    own = c.get("Node", f"{c.namespace}.a")["spec"]["taints"]
    c.patch("Node", f"{c.namespace}.a", {"spec": {"taints": [*own, {"key": "full", "effect": "NoSchedule"}]}})
    c.patch("DaemonSet", "agent", {"metadata": {"labels": {"look": "again"}}})
    c.until_status("DaemonSet", "agent", numberMisscheduled=1)
    c.snapshot("it stays where it would not be put any more")
    c.delete("Pod", c.pods()[0]["metadata"]["name"])
    c.until_pods(0)
    _settled(c, 0, numberMisscheduled=0)
    c.snapshot("it does not come back")


def _unschedulable(c: Teller) -> None:
    _node(c, "a")
    c.patch("Node", f"{c.namespace}.a", {"spec": {"unschedulable": True}})
    c.create(a_daemon_set(pod=_pods(c)))
    _settled(c, 1)
    c.snapshot("cordoned nodes have daemons all the same")


def _rolling(c: Teller) -> None:
    _node(c, "a")
    _node(c, "b")
    c.create(a_daemon_set(pod=_pods(c)))
    _settled(c, 2, numberAvailable=2)
    c.patch("DaemonSet", "agent", image("2"))
    _settled(c, 2, updatedNumberScheduled=2, numberAvailable=2)
    c.snapshot("rolled out")
    c.patch("DaemonSet", "agent", image("1"))
    _settled(c, 2, updatedNumberScheduled=2, numberAvailable=2)
    c.snapshot("rolled back to a revision that is known")


def _surge(c: Teller) -> None:
    _node(c, "a")
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    c.create(a_daemon_set(updateStrategy=update, pod=_pods(c)))
    _settled(c, 1, numberAvailable=1)
    c.patch("DaemonSet", "agent", image("2"))
    _settled(c, 1, updatedNumberScheduled=1, numberAvailable=1)
    c.until_pods(1)
    c.snapshot("replaced with a surge")


def _on_delete(c: Teller) -> None:
    _node(c, "a")
    c.create(a_daemon_set(updateStrategy={"type": "OnDelete"}, pod=_pods(c)))
    _settled(c, 1)
    c.patch("DaemonSet", "agent", image("2"))
    _settled(c, 1)
    c.snapshot("nothing happens")
    c.delete("Pod", c.pods()[0]["metadata"]["name"])
    _settled(c, 1, updatedNumberScheduled=1)
    c.until_pods(1)
    c.snapshot("the deleted one is new")


def _failed(c: Teller) -> None:
    _node(c, "a")
    c.create(a_daemon_set(pod=_pods(c)))
    _settled(c, 1)
    (pod,) = c.pods()
    c.finish(pod, exit_code=1)
    c.until(lambda: len(c.pods()) == 1 and c.pods()[0]["metadata"]["uid"] != pod["metadata"]["uid"])
    _settled(c, 1)
    c.snapshot("a pod that failed is replaced")


def _adopts(c: Teller) -> None:
    _node(c, "a")
    pod = _pods(c)
    c.create(a_bare_pod("early", {"labels": {"app": "agent"}}, nodeName=f"{c.namespace}.a", **pod))
    c.create(a_daemon_set(updateStrategy={"type": "OnDelete"}, pod=pod))
    _settled(c, 1)
    c.snapshot("a pod that is there is adopted")


def _deleted(policy: str) -> Story:
    def tell(c: Teller) -> None:
        _node(c, "a")
        c.create(a_daemon_set(pod=_pods(c)))
        _settled(c, 1)
        c.delete("DaemonSet", "agent", policy=policy)
        c.until_gone("DaemonSet", "agent")
        if policy != "Orphan":
            c.until_pods(0)
        c.snapshot("deleted")

    return Story(f"daemon set deleted {policy}", tell)


def _nowhere(c: Teller) -> None:
    c.create(a_daemon_set(pod=_pods(c)))
    _settled(c, 0)
    c.snapshot("there is no node for it")


STORIES = [
    Story("daemon set on every node", _every_node),
    Story("daemon set on chosen nodes", _selected),
    Story("daemon set and taints", _tainted),
    Story("daemon set on a node tainted later", _tainted_later),
    Story("daemon set on cordoned nodes", _unschedulable),
    Story("daemon set rolls out", _rolling),
    Story("daemon set rolls out with a surge", _surge),
    Story("daemon set updates on delete", _on_delete),
    Story("daemon set replaces a pod that failed", _failed),
    Story("daemon set adopts", _adopts),
    *(_deleted(policy) for policy in ("Background", "Foreground", "Orphan")),
    Story("daemon set nowhere", _nowhere),
]
