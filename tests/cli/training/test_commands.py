"""``shoal get``, ``shoal logs`` and ``shoal runtimes`` on a running Shoal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.command import SHOAL, environment
from tests.support.programs.command import shoal as command
from tests.support.waiting import wait_until

JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
TOO_MANY_GPUS = {"limits": {"nvidia.com/gpu": 80}}


@pytest.fixture(scope="module")
def shoal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    shoal = Shoal(tmp_path_factory.mktemp("training") / ".shoal", "--sim=1x8:H100")
    with shoal.foreground():
        yield shoal
        shoal("down")


@pytest.fixture
def train(shoal: Shoal) -> Iterator[Any]:
    """Makes a TrainJob, which goes with the test; ``simulated`` are annotations that say how its pods live."""
    made = []

    def make(
        name: str, *, simulated: dict[str, str] | None = None, runtime: str = "jax-distributed", **spec: object
    ) -> None:
        body: dict[str, Any] = {"metadata": {"name": name}, "spec": {"runtimeRef": {"name": runtime}, **spec}}
        body |= {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
        if simulated:
            body["spec"] |= {"runtimePatches": [_annotated(simulated)]}
        shoal.admin.request("POST", JOBS, body)
        made.append(name)

    yield make
    for name in made:
        shoal.admin.request("DELETE", f"{JOBS}/{name}")
    wait_until(lambda: not shoal.objects("/api/v1/namespaces/default/pods"), "its pods to go")


def _annotated(simulated: dict[str, str]) -> dict[str, Any]:
    annotations = {f"shoal.dev/sim-{key.replace('_', '-')}": value for key, value in simulated.items()}
    pods = {"template": {"metadata": {"annotations": annotations}}}
    jobs = [{"name": "node", "template": {"spec": pods}}]
    return {"manager": "tests.shoal.dev/sim", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def state_of(shoal: Shoal, name: str) -> str:
    (_, row) = shoal("get", "trainjob", name).stdout.splitlines()
    return row.split()[2]


def test_a_run_is_followed_from_before_its_first_pod_to_its_end(shoal: Shoal, train: Any) -> None:
    train("two", trainer={"numNodes": 2, "command": ["train"]})
    followed = shoal("logs", "trainjob/two", "--follow")
    assert followed.returncode == 0, followed.stderr
    lines = followed.stdout.splitlines()
    for rank in range(2):
        assert any(line.startswith(f"node-{rank} | ") for line in lines)
    alone = shoal("logs", "trainjob/two", "--rank=1", "--tail=1").stdout
    assert alone.splitlines() == ["simulated: ended with exit code 0 (Completed)"]
    listed = shoal("get", "trainjobs").stdout
    assert listed.splitlines()[1].split()[:4] == ["two", "jax-distributed", "Complete", "100%"]
    (found,) = json.loads(shoal("get", "trainjobs", "-A", "-o", "json").stdout)["items"]
    assert (found["kind"], found["status"]["conditions"][0]["type"]) == ("TrainJob", "Complete")
    assert "managedFields" not in found["metadata"]
    assert json.loads(shoal("get", "trainjob", "two", "-o", "json").stdout) == found
    whole = json.loads(shoal("get", "trainjob", "two", "-o", "json", "--show-managed-fields").stdout)
    assert whole["metadata"]["managedFields"]


def test_the_launcher_of_mpi_is_rank_0_though_its_pod_comes_last(shoal: Shoal, train: Any) -> None:
    train("mpi", runtime="deepspeed-distributed", trainer={"numNodes": 2, "command": ["train"]})
    followed = shoal("logs", "trainjob/mpi", "--follow")
    ranks = {line.partition(" | ")[0] for line in followed.stdout.splitlines() if "pod default/mpi-node" in line}
    assert ranks == {"node-1"}, followed.stdout
    ranks = {line.partition(" | ")[0] for line in followed.stdout.splitlines() if "pod default/mpi-launcher" in line}
    assert ranks == {"node-0"}, followed.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("logs", "trainjob/none"), "there is no trainjob none in default"),
        (("get", "trainjob", "none"), "there is no trainjob none in default"),
        (("get", "runtime", "none"), "there is no runtime none, neither in default nor for all namespaces"),
        (("get", "trainjob", "none", "-A"), "a name is of one namespace"),
        (("get", "trainjobs", "-n", "nowhere"), "there is no namespace nowhere"),
        (("get", "trainjobs", "-w", "-o", "json"), "rows can be watched, not documents"),
        (("get", "nothings"), "nothings is unknown here, choose from trainjobs, runtimes"),
        (("logs", "pod/x"), "pod/x is no training run: write trainjob/NAME"),
        (("logs", "trainjob/x", "--rank=1", "--step=node-1"), "a step has no ranks"),
        (("logs", "trainjob/x", "--rank=first"), "Invalid value for --rank: first is not a node's rank, such as 0"),
        (("logs", "trainjob/x", "--rank=-1"), "Invalid value for --rank: -1 is not a node's rank, such as 0"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(shoal: Shoal, arguments: tuple[str, ...], said: str) -> None:
    refused = shoal(*arguments)
    assert refused.returncode != 0
    assert said in " ".join(refused.stderr.replace("│", " ").split())
    assert "Traceback" not in refused.stderr


def test_a_rank_or_a_step_that_will_never_be_is_refused_at_once(shoal: Shoal, train: Any) -> None:
    train("long", simulated={"run_time": "1h"}, trainer={"numNodes": 2, "command": ["train"]})
    wait_until(lambda: state_of(shoal, "long") == "Running", "it to run")
    for follow in ((), ("--follow",)):
        refused = shoal("logs", "trainjob/long", "--rank=9", *follow)
        assert (refused.returncode, refused.stderr) == (1, "shoal: trainjob long has no rank 9: there are 0 to 1\n")
        refused = shoal("logs", "trainjob/long", "--step=nope", *follow)
        assert refused.stderr == "shoal: trainjob long has no step nope: there are node-0 to node-1\n"


def test_a_run_that_was_stopped_says_why_there_are_no_logs(shoal: Shoal, train: Any) -> None:
    train("late", simulated={"run_time": "1h"}, activeDeadlineSeconds=1, trainer={"command": ["train"]})
    wait_until(lambda: state_of(shoal, "late") == "Failed", "its deadline to pass")
    wait_until(lambda: not shoal.objects("/api/v1/namespaces/default/pods"), "its pods to go")
    for follow in ((), ("--follow",)):
        refused = shoal("logs", "trainjob/late", *follow)
        why = "DeadlineExceeded: TrainJob exceeded its active deadline"
        assert refused.stderr == f"shoal: trainjob late failed ({why}), and its pods are gone\n"
        assert (refused.returncode, refused.stdout) == (1, "")
    assert why in shoal("get", "trainjobs", "-o", "wide").stdout


def test_a_run_that_fails_while_it_is_followed_says_so(shoal: Shoal, train: Any) -> None:
    train("late", simulated={"run_time": "1h"}, activeDeadlineSeconds=3, trainer={"command": ["train"]})
    followed = shoal("logs", "trainjob/late", "--follow")
    assert "nothing runs here" in followed.stdout
    assert "shoal: trainjob late failed (DeadlineExceeded: " in followed.stderr


def test_a_suspended_run_says_so(shoal: Shoal, train: Any) -> None:
    train("waiting", suspend=True, trainer={"command": ["train"]})
    wait_until(lambda: state_of(shoal, "waiting") == "Suspended", "it to be suspended")
    refused = shoal("logs", "trainjob/waiting")
    said = "trainjob waiting is suspended and has no pods: it begins when its spec.suspend is false"
    assert (refused.returncode, refused.stderr) == (1, f"shoal: {said}\n")


def test_a_program_that_crashes_again_and_again_shows_it(shoal: Shoal, train: Any) -> None:
    life = {"run_time": "100ms", "outcome": "Failed", "exit_code": "3"}
    train("crash", simulated=life, trainer={"command": ["train"]})
    wait_until(lambda: state_of(shoal, "crash") == "CrashLoopBackOff", "it to crash")
    listed = shoal("get", "trainjobs", "-o", "wide").stdout
    assert "node-0: exit code 3, restarted " in listed
    assert shoal("get", "trainjobs").stderr == "shoal: -o wide says what is wrong with crash\n"


def test_a_run_without_room_says_so_and_whom_to_ask(shoal: Shoal, train: Any) -> None:
    train("huge", trainer={"command": ["train"], "resourcesPerNode": TOO_MANY_GPUS})
    wait_until(lambda: "Insufficient" in shoal("get", "trainjobs", "-o", "wide").stdout, "no room to be found")
    listed = shoal("get", "trainjobs")
    assert listed.stdout.splitlines()[1].split()[2] == "Pending"
    assert listed.stderr == (
        f"shoal: huge waits for room: ask shoal explain trainjob/huge --data-dir {shoal.data_dir}\n"
    )
    refused = shoal("logs", "trainjob/huge")
    assert refused.returncode == 1
    assert refused.stderr.startswith("shoal: node-0 of trainjob huge has no node yet: 0/1 nodes are available")
    assert refused.stderr.endswith("(ask shoal explain trainjob/huge)\n")
    line = [*SHOAL, "logs", "trainjob/huge", "-f", f"--data-dir={shoal.data_dir}"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as following:
        assert following.stderr is not None
        assert "has no node yet: 0/1 nodes are available" in following.stderr.readline()
        following.terminate()


def test_changes_are_watched_as_rows(shoal: Shoal, train: Any) -> None:
    line = [*SHOAL, "get", "trainjobs", "--watch", f"--data-dir={shoal.data_dir}"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            train("seen", trainer={"command": ["train"]})
            assert watching.stdout.readline().split()[:3] == ["NAME", "RUNTIME", "STATE"]
            states = []
            while "Complete" not in states:
                states.append(watching.stdout.readline().split()[2])
        finally:
            watching.kill()
    assert "Running" in states
    assert all(before != after for before, after in pairwise(states))


def test_all_namespaces_fit_a_terminal(shoal: Shoal, train: Any) -> None:
    train("a-name-of-thirty-letters-or-so", suspend=True, runtime="torch-distributed-with-cache")
    wait_until(lambda: state_of(shoal, "a-name-of-thirty-letters-or-so") == "Suspended", "it to be suspended")
    ours, theirs = pty.openpty()
    line = [*SHOAL, "get", "trainjobs", "-A", f"--data-dir={shoal.data_dir}"]
    done = subprocess.run(line, stdout=theirs, env=environment(), check=True, timeout=60)
    os.close(theirs)
    heading, row = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert done.returncode == 0
    assert max(len(heading), len(row)) <= 80
    assert "a-name-of-thirty-letters-or-so" in row
    assert "torch-distributed-with-cache" in shoal("get", "trainjobs", "-A").stdout


def test_a_kubeconfig_in_the_environment_wins_over_the_shoal_of_this_folder(shoal: Shoal) -> None:
    def asked(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        line = [*SHOAL, *arguments]
        env = {"HOME": "/nonexistent"} | {
            key: value for key, value in environment().items() if not key.startswith(("KUBE", "HOME"))
        }
        return subprocess.run(
            line,
            cwd=shoal.data_dir.parent,
            env=env | environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert asked("get", "runtimes").returncode == 0
    for refused in (
        asked("get", "runtimes", KUBECONFIG="/nonexistent/config"),
        asked("runtimes", "install", KUBECONFIG="/nonexistent/config"),
    ):
        assert refused.returncode == 1
        assert "/nonexistent/config does not exist" in refused.stderr


def test_a_runtime_that_was_deleted_is_installed_again(shoal: Shoal) -> None:
    shoal.admin.request("DELETE", f"{RUNTIMES}/flux-distributed")
    installed = command("runtimes", "install", "flux-distributed", f"--data-dir={shoal.data_dir}")
    assert installed.stdout == "clustertrainingruntime/flux-distributed installed\n"
    assert "flux-distributed" in shoal("get", "runtimes").stdout


def test_the_runtimes_that_come_with_it_are_listed_without_a_cluster() -> None:
    listed = command("runtimes", "list").stdout
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [
        "deepspeed-distributed",
        "flux-distributed",
        "jax-distributed",
        "mlx-distributed",
        "torch-distributed",
        "torch-distributed-with-cache",
        "torchtune-llama3.2-1b",
        "torchtune-llama3.2-3b",
        "torchtune-qwen2.5-1.5b",
        "xgboost-distributed",
    ]
    refused = command("runtimes", "install", "none")
    assert refused.returncode == 2
    assert "there is no built-in runtime 'none'" in refused.stderr
    assert "kind: ClusterTrainingRuntime" in command("runtimes", "install", "-o", "yaml").stdout


def test_runtimes_alone_shows_its_help_and_nothing_else() -> None:
    alone = command("runtimes")
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout.strip() == command("runtimes", "--help").stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [(("get",), "{KIND} [NAME]"), (("runtimes", "install"), "[NAME]...")],
)
def test_usage_has_each_argument_in_one_pair_of_brackets(arguments: tuple[str, ...], usage: str) -> None:
    printed = command(*arguments, "--help").stdout
    assert f"Usage: shoal {' '.join(arguments)} [OPTIONS] {usage}\n" in "".join(
        f"{line.strip()}\n" for line in printed.splitlines()
    )
