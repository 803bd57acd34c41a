from __future__ import annotations

from shoal.gangs import plan
from shoal.gangs.settings import GangSettings
from shoal.gangs.startup.container import start_container
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed

SETTINGS = GangSettings(start_image="registry.example.com/grove-initc:1.2")


def test_a_pod_without_parents_waits_for_nobody() -> None:
    assert start_container((), SETTINGS, "web") is None


def test_a_pod_with_parents_gets_the_container_and_its_volumes() -> None:
    pcs = typed(
        a_set(
            "web",
            a_clique_template("db", 3, min_available=2),
            a_clique_template("shard", 1),
            a_clique_template("api", starts_after=["db", "shard"]),
            groups=[a_scaling_group_template("shards", ["shard"], 3, min_available=2)],
            cliqueStartupType="CliqueStartupTypeExplicit",
        )
    )
    api = next(one for one in plan.standalone_cliques(pcs, 1) if one.template.name == "api")
    start_up = start_container(api.parents, SETTINGS, "web")
    assert start_up is not None
    assert start_up.init_container == {
        "name": "grove-initc",
        "image": "registry.example.com/grove-initc:1.2",
        "args": [
            "--podcliques=web-1-db:2",
            "--podcliques=web-1-shards-0-shard:1",
            "--podcliques=web-1-shards-1-shard:1",
        ],
        "volumeMounts": [
            {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
            {
                "name": "sa-token-secret-vol",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "readOnly": True,
            },
        ],
    }
    assert start_up.volumes == [
        {"name": "sa-token-secret-vol", "secret": {"secretName": "web-ic-sat", "defaultMode": 420}},
        {
            "name": "pod-info-vol",
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                    {"path": "podgangname", "fieldRef": {"fieldPath": "metadata.labels['grove.io/podgang']"}},
                ]
            },
        },
    ]
