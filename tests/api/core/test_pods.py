"""What is kept of a pod by those who hold many, and by those who run it."""

from __future__ import annotations

import msgspec

from shoal.api.core import PODS
from shoal.api.core.pod_details import POD_DETAILS

POD = msgspec.json.encode(
    {
        "metadata": {"name": "web"},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "env": [
                        {"name": "PLAIN", "value": "text"},
                        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                        {"name": "SETTING", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}},
                    ],
                }
            ]
        },
    }
)


def test_of_variables_only_those_from_config_maps_are_kept_where_many_pods_are_held() -> None:
    [container] = PODS.decode(POD).spec.containers
    [variable] = container.env
    assert variable.value_from is not None
    assert variable.value_from.config_map_key_ref is not None
    assert variable.value_from.config_map_key_ref.name == "settings"


def test_who_runs_a_pod_has_all_of_them() -> None:
    [container] = POD_DETAILS.decode(POD).spec.containers
    assert [variable.name for variable in container.env] == ["PLAIN", "SECRET", "SETTING"]
    assert container.env[0].value == "text"
