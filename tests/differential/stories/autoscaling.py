"""Autoscalers where nobody measures anything: what they say, and the limits that they hold all the same."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.objects import a_deployment, an_object
from tests.differential.story import BY_HAND, Story, Teller


def _autoscaler(target: str = "web", kind: str = "Deployment", **spec: Any) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": target}
    content = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 3, **spec}
    return an_object("autoscaling/v2", "HorizontalPodAutoscaler", "web", spec=content)


def _no_metrics(c: Teller) -> None:
    c.create(a_deployment(replicas=2, pod=BY_HAND))
    c.run(*c.until_pods(2))
    c.until_status("Deployment", "web", readyReplicas=2)
    c.create(_autoscaler())
    c.until_condition("HorizontalPodAutoscaler", "web", "ScalingActive", "False")
    c.snapshot("it cannot know")


def _no_target(c: Teller) -> None:
    c.create(_autoscaler("nobody"))
    c.until_condition("HorizontalPodAutoscaler", "web", "AbleToScale", "False")
    c.snapshot("there is nothing to scale")


def _too_many(c: Teller) -> None:
    c.create(a_deployment(replicas=5))
    c.until_status("Deployment", "web", readyReplicas=5)
    c.create(_autoscaler())
    c.until_status("Deployment", "web", replicas=3)
    c.snapshot("more than the most")


def _too_few(c: Teller) -> None:
    c.create(a_deployment(replicas=1))
    c.until_status("Deployment", "web", readyReplicas=1)
    c.create(_autoscaler(minReplicas=2))
    c.until_status("Deployment", "web", readyReplicas=2)
    c.snapshot("fewer than the least")


def _off(c: Teller) -> None:
    c.create(a_deployment(replicas=0))
    c.until_status("Deployment", "web", observedGeneration=1)
    c.create(_autoscaler())
    c.until_condition("HorizontalPodAutoscaler", "web", "ScalingActive", "False")
    c.snapshot("none at all means that it is off")


def _external(c: Teller) -> None:
    c.create(a_deployment(replicas=1))
    c.until_status("Deployment", "web", readyReplicas=1)
    metric = {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "10"}}
    c.create(_autoscaler(metrics=[{"type": "External", "external": metric}]))
    c.until_condition("HorizontalPodAutoscaler", "web", "ScalingActive", "False")
    c.snapshot("nobody measures this")


STORIES = [
    Story("autoscaler without metrics", _no_metrics),
    Story("autoscaler without a target", _no_target),
    Story("autoscaler above its limit", _too_many),
    Story("autoscaler below its limit", _too_few),
    Story("autoscaler that is off", _off),
    Story("autoscaler of an external metric", _external),
]
