"""The kinds that a story may leave traces in, and where they are served."""

from __future__ import annotations

NAMESPACED = {
    "ConfigMap": "api/v1/configmaps",
    "ControllerRevision": "apis/apps/v1/controllerrevisions",
    "CronJob": "apis/batch/v1/cronjobs",
    "DaemonSet": "apis/apps/v1/daemonsets",
    "Deployment": "apis/apps/v1/deployments",
    "Endpoints": "api/v1/endpoints",
    "EndpointSlice": "apis/discovery.k8s.io/v1/endpointslices",
    "Event": "api/v1/events",
    "HorizontalPodAutoscaler": "apis/autoscaling/v2/horizontalpodautoscalers",
    "Job": "apis/batch/v1/jobs",
    "LimitRange": "api/v1/limitranges",
    "PersistentVolumeClaim": "api/v1/persistentvolumeclaims",
    "Pod": "api/v1/pods",
    "PodDisruptionBudget": "apis/policy/v1/poddisruptionbudgets",
    "ReplicaSet": "apis/apps/v1/replicasets",
    "ReplicationController": "api/v1/replicationcontrollers",
    "ResourceQuota": "api/v1/resourcequotas",
    "Secret": "api/v1/secrets",
    "Service": "api/v1/services",
    "ServiceAccount": "api/v1/serviceaccounts",
    "StatefulSet": "apis/apps/v1/statefulsets",
}
CLUSTER_WIDE = {
    "ClusterRole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "Namespace": "api/v1/namespaces",
    "Node": "api/v1/nodes",
    "PersistentVolume": "api/v1/persistentvolumes",
    "PriorityClass": "apis/scheduling.k8s.io/v1/priorityclasses",
    "StorageClass": "apis/storage.k8s.io/v1/storageclasses",
}
ALL = {**NAMESPACED, **CLUSTER_WIDE}


def collection(kind: str, namespace: str = "") -> str:
    """The path of a kind's collection: of one namespace, or of the whole cluster."""
    prefix, _, plural = ALL[kind].rpartition("/")
    return f"/{prefix}/namespaces/{namespace}/{plural}" if namespace and kind in NAMESPACED else f"/{prefix}/{plural}"
