"""The objects that run Shoal on a Kubernetes cluster, as plain manifests: the operator, the scheduler, their webhooks.

``make manifests`` writes them to ``deploy/`` (``python -m shoal.cli.deployment operator`` prints one file); a test
holds the two equal. The image is named without a registry: whoever installs knows where theirs is.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from shoal.api import kai_names
from shoal.gangs import rbac
from shoal.scheduler import rbac as scheduler_rbac
from shoal.training import rbac as training_rbac

NAMESPACE: Final = "shoal-system"
IMAGE: Final = "shoal:latest"
OPERATOR: Final = rbac.ACCOUNT
"""The Deployment of the operator is called as Grove's is, so that people find its log."""
WEBHOOKS: Final = rbac.WEBHOOKS_ACCOUNT
SCHEDULER: Final = "kai-scheduler-default"
"""The Deployment of the scheduler, its Service and its ConfigMap are called as KAI's are for its default shard."""
SCHEDULER_WEBHOOKS: Final = scheduler_rbac.WEBHOOKS_ACCOUNT
TRAINING: Final = training_rbac.ACCOUNT
TRAINING_NAMESPACE: Final = "kubeflow-system"
TRAINING_WEBHOOKS: Final = training_rbac.WEBHOOKS_ACCOUNT

_METRICS, _HEALTH, _PLUGINS, _WEBHOOKS, _PROGRESS = 8080, 8081, 8081, 9443, 10443
_CONFIGURATION, _CONFIGURATION_AT = "config.yaml", "/etc/kai-scheduler"
_HEADERS: Final = {
    "operator": """\
# Shoal's operator and webhooks. Made by `make manifests` from src/shoal/cli/deployment.py and src/shoal/gangs/rbac.py:
# change those instead of this file.
#
#   shoal crds | kubectl apply --server-side -f -
#   kubectl apply -f deploy/operator.yaml
""",
    "training": """\
# Shoal's controllers of TrainJobs, their runtimes and JobSets, and their webhooks. Made by `make manifests` from
# src/shoal/cli/deployment.py and src/shoal/training/rbac.py: change those instead of this file.
#
#   shoal crds | kubectl apply --server-side -f -
#   kubectl apply -f deploy/training.yaml
#   shoal runtimes install
""",
    "scheduler": """\
# Shoal's scheduler, with the grouper, the binder, the controllers of queues and PodGroups, and its webhooks. Made by
# `make manifests` from src/shoal/cli/deployment.py and src/shoal/scheduler/rbac.py: change those instead of this file.
#
#   shoal crds | kubectl apply --server-side -f -
#   kubectl apply -f deploy/scheduler.yaml
#
# Pods that share GPUs get the RuntimeClass nvidia, as KAI's do: where there is none, give `shoal webhooks` another one
# by --gpu-runtime-class, or an empty one.
""",
}


def manifests(namespace: str = NAMESPACE, image: str = IMAGE) -> list[dict[str, Any]]:
    """The namespace, the operator's account and rights, its Deployment, and the webhooks behind their Service."""
    environment = {"GROVE_OPERATOR_SERVICE_ACCOUNT_NAME": rbac.ACCOUNT}
    operator = _container(
        "operator",
        image,
        ["shoal", "operator", "--enable", "gangs", "--leader-elect"],
        ports={"metrics": _METRICS, "health": _HEALTH},
        environment=environment,
    )
    webhooks = _container(
        "webhooks",
        image,
        ["shoal", "webhooks", "--only", "gangs", "--service", WEBHOOKS],
        ports={"https": _WEBHOOKS, "health": _HEALTH},
        environment=environment,
    )
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *rbac.manifests(namespace),
        # One works at a time, and its log is the one that `kubectl logs deployment/…` shows.
        _deployment(OPERATOR, namespace, _pod(rbac.ACCOUNT, operator), replicas=1),
        # Asked at every write of our kinds, which are refused where nobody answers.
        _deployment(WEBHOOKS, namespace, _pod(rbac.WEBHOOKS_ACCOUNT, webhooks), replicas=2),
        _service(WEBHOOKS, namespace, {"https": 443}),
    ]


def training_manifests(namespace: str = TRAINING_NAMESPACE, image: str = IMAGE) -> list[dict[str, Any]]:
    """The namespace, the account and rights of training's controllers, their Deployment, and their webhooks."""
    operator = _container(
        "operator",
        image,
        ["shoal", "operator", "--enable", "training", "--leader-elect", "--feature-gates", "TrainJobStatus=true"],
        ports={"metrics": _METRICS, "health": _HEALTH, "status": _PROGRESS},
    )
    webhooks = _container(
        "webhooks",
        image,
        ["shoal", "webhooks", "--only", "training", "--service", TRAINING_WEBHOOKS],
        ports={"https": _WEBHOOKS, "health": _HEALTH},
    )
    account = training_rbac.ACCOUNT
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *training_rbac.manifests(namespace),
        _deployment(TRAINING, namespace, _pod(account, operator), replicas=1),
        _service(TRAINING, namespace, {"status": _PROGRESS}),
        # Asked at every write of our kinds, which are refused where nobody answers.
        _deployment(TRAINING_WEBHOOKS, namespace, _pod(training_rbac.WEBHOOKS_ACCOUNT, webhooks), replicas=2),
        _service(TRAINING_WEBHOOKS, namespace, {"https": 443}),
    ]


def scheduler_manifests(namespace: str = kai_names.NAMESPACE, image: str = IMAGE) -> list[dict[str, Any]]:
    """The namespace, the scheduler's account and rights, its configuration and Deployment, and its webhooks."""
    from shoal.cli.output import to_yaml  # noqa: PLC0415 - only here
    from shoal.scheduler.configuration import configuration_of  # noqa: PLC0415
    from shoal.scheduler.snapshots import configuration_document  # noqa: PLC0415

    account = scheduler_rbac.ACCOUNT
    command = [
        "shoal",
        "scheduler",
        f"--scheduler-name={kai_names.SCHEDULER}",
        f"--namespace={namespace}",
        f"--scheduler-conf={_CONFIGURATION_AT}/{_CONFIGURATION}",
        f"--listen-address=:{_METRICS}",
        f"--plugin-server-port={_PLUGINS}",
        "--plugin-server-host=0.0.0.0",
        "--leader-elect",
    ]
    scheduler = _container(
        "scheduler",
        image,
        command,
        ports={"metrics": _METRICS, "visualizer": _PLUGINS},
        # A large cluster is held in memory as a whole, and cycles take what they get.
        resources={"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "8Gi"}},
        probe={"path": "/metrics", "port": "metrics"},
    )
    scheduler["volumeMounts"] = [{"name": "configuration", "mountPath": _CONFIGURATION_AT, "readOnly": True}]
    pod = _pod(account, scheduler) | {"volumes": [{"name": "configuration", "configMap": {"name": SCHEDULER}}]}
    webhooks = _container(
        "webhooks",
        image,
        ["shoal", "webhooks", "--only", "scheduler", "--service", SCHEDULER_WEBHOOKS, "--gpu-sharing-enabled"],
        ports={"https": _WEBHOOKS, "health": _HEALTH},
    )
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *scheduler_rbac.manifests(namespace),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": SCHEDULER, "namespace": namespace, "labels": _labels(SCHEDULER)},
            "data": {_CONFIGURATION: to_yaml([configuration_document(configuration_of({}, source=SCHEDULER))])},
        },
        # One works at a time: others would wait for its lease.
        _deployment(SCHEDULER, namespace, pod, replicas=1),
        _service(SCHEDULER, namespace, {"metrics": _METRICS, "visualizer": _PLUGINS}),
        # Asked at every write of our kinds, and for pods that share GPUs; these are refused where nobody answers.
        _deployment(SCHEDULER_WEBHOOKS, namespace, _pod(scheduler_rbac.WEBHOOKS_ACCOUNT, webhooks), replicas=2),
        _service(SCHEDULER_WEBHOOKS, namespace, {"https": 443}),
    ]


def text(name: str) -> str:
    """A whole file of ``deploy/``."""
    from shoal.cli.output import to_yaml  # noqa: PLC0415 - only here

    made = {"operator": manifests, "scheduler": scheduler_manifests, "training": training_manifests}
    return _HEADERS[name] + to_yaml(made[name]())


def _pod(account: str, container: dict[str, Any]) -> dict[str, Any]:
    return {
        "serviceAccountName": account,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }


def _deployment(name: str, namespace: str, pod: dict[str, Any], *, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": _labels(name)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _selector(name)},
            "template": {"metadata": {"labels": _labels(name)}, "spec": pod},
        },
    }


def _service(name: str, namespace: str, ports: dict[str, int]) -> dict[str, Any]:
    """In front of the pods of a Deployment, to whose ports it leads by their names."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": _labels(name)},
        "spec": {
            "selector": _selector(name),
            "ports": [{"name": port, "port": number, "targetPort": port} for port, number in ports.items()],
        },
    }


def _container(
    name: str,
    image: str,
    command: list[str],
    *,
    ports: dict[str, int],
    environment: dict[str, str] | None = None,
    resources: dict[str, Any] | None = None,
    probe: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A container; ``probe`` is what shows that it lives where it has no port for health."""
    alive = {"httpGet": probe or {"path": "/healthz", "port": "health"}, "periodSeconds": 10}
    ready = {"httpGet": probe or {"path": "/readyz", "port": "health"}, "periodSeconds": 5}
    return {
        "name": name,
        "image": image,
        "command": command,
        **({"env": [{"name": key, "value": value} for key, value in environment.items()]} if environment else {}),
        "ports": [{"name": port, "containerPort": number} for port, number in ports.items()],
        "livenessProbe": alive,
        "readinessProbe": ready,
        "resources": resources or {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _labels(name: str) -> dict[str, str]:
    return {**_selector(name), "app.kubernetes.io/part-of": "shoal"}


def _selector(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name}


if __name__ == "__main__":
    from shoal.cli.output import write

    write(text(sys.argv[1]))
