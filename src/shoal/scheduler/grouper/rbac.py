"""What the grouper must be allowed to do in a cluster: rules of a ClusterRole, as data.

A workload of another kind is grouped too; where the grouper may not read it, the object below it counts as topmost. Who
describes a kind by a Karta definition lets the grouper read its objects.
"""

from __future__ import annotations

from typing import Final

from shoal.kube.rights import rule

_FOLLOW: Final = ("list", "watch")
_READ: Final = ("get", *_FOLLOW)

_OWNERS: Final = {
    "apps": ("deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
    "amlarc.azureml.com": ("amljobs",),
    "argoproj.io": ("workflows",),
    "egx.nvidia.io": ("spotrequests",),
    "grove.io": ("podcliques", "podcliquescalinggroups", "podcliquesets", "podgangsets"),
    "jobset.x-k8s.io": ("jobsets",),
    "kubeflow.org": ("jaxjobs", "mpijobs", "notebooks", "pytorchjobs", "scheduledworkflows", "tfjobs", "xgboostjobs"),
    "kubevirt.io": ("virtualmachineinstances", "virtualmachines"),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "machinelearning.seldon.io": ("seldondeployments",),
    "nvidia.com": ("dynamographdeployments",),
    "ray.io": ("rayclusters", "rayjobs", "rayservices"),
    "run.ai": (
        "distributedinferenceworkloads",
        "distributedworkloads",
        "inferenceworkloads",
        "interactiveworkloads",
        "runaijobs",
        "trainingworkloads",
    ),
    "scheduler.grove.io": ("podgangs",),
    "serving.knative.dev": ("configurations", "revisions", "services"),
    "sparkoperator.k8s.io": ("sparkapplications",),
    "tekton.dev": ("pipelineruns", "taskruns"),
    "trainer.kubeflow.org": ("trainjobs",),
    "workspace.devfile.io": ("devworkspaces",),
}
"""What may lie above a pod."""


RULES: Final[tuple[dict[str, list[str]], ...]] = (
    rule("", ("pods",), (*_READ, "patch")),
    rule("", ("configmaps",), _FOLLOW),
    rule("", ("events",), ("create", "patch")),
    rule("run.ai", ("kartas",), _FOLLOW),
    rule("scheduling.k8s.io", ("priorityclasses",), _FOLLOW),
    rule("scheduling.run.ai", ("podgroups",), (*_READ, "create", "patch")),
    *(rule(group, plurals, _READ) for group, plurals in _OWNERS.items()),
)
