"""What switches the Workload API on: named as each version of Kubernetes names it, and only where it is known to."""

from __future__ import annotations

import pytest

from shoal.cluster.kubernetes import flags
from tests.support.clusters.real import StartKube


@pytest.mark.parametrize(("minor", "version"), [(35, "v1alpha1"), (36, "v1alpha2"), (37, "v1alpha3")])
def test_each_version_of_kubernetes_has_its_own_name_for_it(minor: int, version: str) -> None:
    chosen = flags.workloads(minor)
    assert f"--runtime-config=scheduling.k8s.io/{version}=true" in chosen["kube-apiserver"]
    gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    assert all(gates in given for given in chosen.values())


@pytest.mark.parametrize("minor", [None, 30, 34, 38], ids=str)
def test_a_kubernetes_that_is_not_known_to_have_it_is_started_without(minor: int | None) -> None:
    assert flags.workloads(minor) == {}


def test_a_real_server_serves_it_where_it_is_asked_for(start_kube: StartKube) -> None:
    kube = start_kube(workloads=True)
    served = kube.admin.request("GET", "/apis/scheduling.k8s.io/v1alpha2")["resources"]
    assert {"workloads", "podgroups"} <= {resource["name"] for resource in served}
