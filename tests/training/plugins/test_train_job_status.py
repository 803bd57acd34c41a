"""TrainJobStatus: where a program reports how far it is."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.training.framework import Framework
from shoal.training.plugins import StatusServer, built_in
from tests.training.builders import (
    a_container,
    a_runtime,
    a_train_job,
    a_trainer,
    an_initializer,
    container_of,
    env_of,
    job_set_of,
    pod_of,
)

SERVER = StatusServer(
    url="https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443", authority=lambda: "PEM"
)
PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/demo/status"
DIRECTORY = "/var/run/secrets/kubeflow/trainer"


def made() -> dict[str, Any]:
    runtime = a_runtime(an_initializer("dataset"), a_trainer(a_container(), a_container("side")))
    wanted = Framework(built_in(SERVER)).objects(a_train_job(), runtime)
    return {f"{one.resource.kind}/{one.name}": msgspec.to_builtins(one.make()) for one in wanted}


def test_every_container_of_a_node_is_told_where_to_report() -> None:
    job_set = made()["JobSet/demo"]
    for name in ("node", "side"):
        container = container_of(job_set, name=name)
        assert env_of(container) == [
            ("KUBEFLOW_TRAINER_SERVER_URL", f"{SERVER.url}{PATH}"),
            ("KUBEFLOW_TRAINER_SERVER_CA_CERT", f"{DIRECTORY}/ca.crt"),
            ("KUBEFLOW_TRAINER_SERVER_TOKEN", f"{DIRECTORY}/token"),
        ]
        mount = {"name": "kubeflow-trainer-token", "mountPath": DIRECTORY, "readOnly": True}
        assert container["volumeMounts"] == [mount]


def test_initializers_are_not() -> None:
    assert "env" not in container_of(made()["JobSet/demo"], "dataset-initializer", "dataset-initializer")


def test_the_token_is_good_for_this_train_job_alone() -> None:
    assert pod_of(made()["JobSet/demo"])["volumes"] == [
        {
            "name": "kubeflow-trainer-token",
            "projected": {
                "sources": [
                    {
                        "serviceAccountToken": {
                            "audience": "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/demo/status",
                            "expirationSeconds": 3600,
                            "path": "token",
                        }
                    },
                    {"configMap": {"name": "demo-tls-config", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                ]
            },
        }
    ]


def test_the_authority_is_handed_on() -> None:
    assert made()["ConfigMap/demo-tls-config"] == {"data": {"ca.crt": "PEM"}}


def test_without_a_server_nobody_is_told() -> None:
    assert "env" not in container_of(job_set_of(a_train_job(), a_runtime()))
