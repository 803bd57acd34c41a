"""Deployments and ReplicaSets in a few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.apps import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    ROLLING_UPDATE,
    Deployment,
    DeploymentCondition,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdate,
)
from shoal.api.meta import IntOrString, LabelSelector, ObjectMeta

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "a"}]}}


def a_deployment(
    replicas: int = 3,
    *,
    surge: IntOrString | None = None,
    unavailable: IntOrString | None = None,
    strategy: str = ROLLING_UPDATE,
    template: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    conditions: list[DeploymentCondition] | None = None,
    status: DeploymentStatus | None = None,
    name: str = "web",
    **spec: Any,
) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name=name, namespace="a", uid="u", generation=1, annotations=annotations or {}),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=template or TEMPLATE,
            strategy=DeploymentStrategy(
                type=strategy, rolling_update=RollingUpdate(max_surge=surge, max_unavailable=unavailable)
            ),
            **spec,
        ),
        status=status or DeploymentStatus(conditions=conditions or []),
    )


def a_set(
    replicas: int,
    *,
    name: str = "web-1",
    age: int = 0,
    available: int = 0,
    actual: int | None = None,
    of: int | None = None,
    at_most: int | None = None,
    revision: str | None = None,
    template: dict[str, Any] | None = None,
    **status: Any,
) -> ReplicaSet:
    """``of`` and ``at_most`` are the sizes of the Deployment that it was told of."""
    told = {DESIRED_REPLICAS: of, MAX_REPLICAS: at_most, REVISION: revision}
    return ReplicaSet(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            creation_timestamp=NOW - timedelta(hours=age),
            annotations={key: str(value) for key, value in told.items() if value is not None},
        ),
        spec=ReplicaSetSpec(replicas=replicas, template=template or TEMPLATE),
        status=ReplicaSetStatus(
            replicas=actual if actual is not None else replicas, available_replicas=available, **status
        ),
    )
