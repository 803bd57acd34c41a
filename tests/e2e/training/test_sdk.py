"""The Kubeflow SDK as it is on PyPI: on simulated nodes of both engines, and on this machine, where functions run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shoal.cluster.kubernetes import AdminApi
from tests.e2e.local_node.conftest import a_local_node
from tests.e2e.training.conftest import (
    FAILS_FAST,
    TRAINER,
    Sdk,
    add_runtime_that_fails_fast,
    condition,
    is_there,
    part,
    simulated,
    use_images,
)
from tests.support.clusters.both_engines import ON_KUBE
from tests.support.clusters.real import namespace_for
from tests.support.programs.ordinary_user import is_root
from tests.support.programs.training_programs import Part
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]

ON_THIS_MACHINE = pytest.param("this machine", marks=[pytest.mark.kube, pytest.mark.slow])
SHIPPED = {"torch-distributed", "jax-distributed", "xgboost-distributed", "deepspeed-distributed", "mlx-distributed"}


@dataclass(frozen=True)
class Cluster:
    """A running Shoal, and the SDK that talks to it."""

    kind: str
    admin: AdminApi
    sdk: Sdk

    @property
    def is_real(self) -> bool:
        """Whether what is submitted runs."""
        return self.kind == "this machine"


@pytest.fixture(scope="module", params=["embedded", ON_KUBE, ON_THIS_MACHINE])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sdk_python: Path
) -> Iterator[Cluster]:
    if request.param == "this machine":
        with a_local_node("root" if is_root() else "user") as node:
            use_images(node, *(one for one in Part if is_there(one)))
            yield Cluster(request.param, node.shoal.admin, Sdk(sdk_python, node.shoal.kubeconfig))
        return
    with simulated(tmp_path_factory.mktemp("sdk"), request, engine=request.param) as shoal:
        yield Cluster(request.param, shoal.admin, Sdk(sdk_python, shoal.kubeconfig))


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    with namespace_for(request.node.originalname, cluster.admin) as name:
        yield name


def test_a_function_is_trained_followed_and_removed_with_the_sdk(cluster: Cluster, namespace: str) -> None:
    resources = {"cpu": 1} if cluster.is_real else {"gpu": 2, "cpu": 4, "memory": "8Gi"}
    told = cluster.sdk.tells(
        "life",
        namespace,
        runtime="jax-distributed",
        resources=resources,
        **({} if cluster.is_real else {"pod annotations": {"shoal.dev/sim-log": "simulated, but here"}}),
    )

    assert set(told["runtimes"]) >= SHIPPED
    assert told["runtimes"]["jax-distributed"] == {
        "framework": "jax",
        "nodes": 1,
        "image": "nvcr.io/nvidia/jax:25.10-py3",
        "kind": "ClusterTrainingRuntime",
    }
    assert (told["name"], told["done"], told["nodes"]) == ("greeting", "Complete", 2)
    assert told["runtime"] == "jax-distributed"
    # The SDK calls one Running by what its pods do; where it lasts a moment it may be complete before it is looked at.
    assert told["running"] in (("Running", "Complete") if cluster.is_real else ("Running",))
    device = ["cpu", "1"] if cluster.is_real else ["gpu", "2"]
    assert told["steps"] == [["node-0", "Succeeded", *device], ["node-1", "Succeeded", *device]]
    if cluster.is_real:
        assert told["followed"] == ["rank 1 says hello, and good morning"]
        assert told["logs"] == ["rank 0 says hello, and good morning"]
    else:
        assert any("simulated, but here" in line for line in told["followed"])
        assert any("simulated, but here" in line for line in told["logs"])
    assert ["Pod", "Scheduled"] in told["events"]
    assert told["listed"] == ["greeting"]
    assert told["of another runtime"] == []
    assert told["after"] == []
    pods = f"/api/v1/namespaces/{namespace}/pods"
    wait_until(lambda: cluster.admin.request("GET", pods)["items"] == [], "the pods to go with their job")


def test_a_container_is_trained_with_options_of_the_sdk(cluster: Cluster, namespace: str) -> None:
    told = cluster.sdk.tells("container", namespace, runtime="jax-distributed", image="busybox")
    assert told["done"] == "Complete"
    assert told["steps"] == [["node-0", "cpu", "1"], ["node-1", "cpu", "1"]]
    if cluster.is_real:
        assert told["logs"] == ["hello, good evening"]
    job = cluster.admin.request("GET", f"{TRAINER}/namespaces/{namespace}/trainjobs/{told['name']}")
    assert job["spec"]["activeDeadlineSeconds"] == 600
    # The SDK sends numbers as 1.0, which the server keeps as they are meant.
    assert job["spec"]["trainer"]["resourcesPerNode"]["requests"] == {"cpu": 1}


def test_a_function_that_fails_is_failed_for_the_sdk_too(cluster: Cluster, namespace: str) -> None:
    add_runtime_that_fails_fast(cluster.admin, namespace, like="jax-distributed")
    told = cluster.sdk.tells(
        "function",
        namespace,
        runtime=FAILS_FAST,
        function="fail",
        name="broken",
        **({} if cluster.is_real else {"pod annotations": {"shoal.dev/sim-outcome": "Failed"}}),
    )
    assert told["done"] == "Failed"
    assert ["JobSet", "FailedJobs"] in told["events"]
    job = cluster.admin.request("GET", f"{TRAINER}/namespaces/{namespace}/trainjobs/broken")
    failed = condition(job, "Failed")
    assert failed is not None
    assert failed["reason"] == "FailedJobs"
    assert failed["message"].endswith("(first failed job: broken-node-0)")


@pytest.mark.parametrize("cluster", [ON_THIS_MACHINE], indirect=True)
@pytest.mark.parametrize(
    ("needed", "function", "runtime", "ranks"),
    [
        pytest.param(Part.TORCH, "torch", None, 1, id="PyTorch, with torchrun"),
        pytest.param(Part.MPI, "mpi", "deepspeed-distributed", 2, id="MPI, with mpirun"),
    ],
)
def test_a_function_is_started_as_its_runtime_starts_it(
    cluster: Cluster, namespace: str, needed: Part, function: str, runtime: str | None, ranks: int
) -> None:
    part(needed)
    told = cluster.sdk.tells("function", namespace, runtime=runtime, function=function, name=function)
    assert told["done"] == "Complete", told
    assert sorted(line for line in told["logs"] if line.startswith("rank")) == [
        f"rank {rank} sum 3" for rank in range(ranks)
    ]
