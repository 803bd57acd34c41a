"""What holds for every TrainJob, whatever its runtime's policy."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.training.builders import (
    a_container,
    a_job,
    a_runtime,
    a_train_job,
    a_trainer,
    an_initializer,
    objects_of,
)

POLICIES = ("torch", "mpi", "jax", "xgboost", "flux")
GANGS = ("coscheduling", "volcano", "kai")
variables = st.lists(
    st.builds(lambda name: {"name": name, "value": "v"}, st.sampled_from(["A", "B", "PET_NNODES", "JAX_PROCESS_ID"])),
    unique_by=lambda one: str(one["name"]),
)
resources = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["100m", "1", 2, "3.5"]),
        "nvidia.com/gpu": st.integers(0, 8),
        "memory": st.sampled_from(["1Gi", "1500M"]),
    },
)
trainers = st.fixed_dictionaries(
    {"numNodes": st.integers(0, 5)},
    optional={
        "numProcPerNode": st.integers(1, 8),
        "env": variables,
        "command": st.sampled_from([["python", "x.py"], ["tune", "run"], []]),
        "args": st.lists(st.sampled_from(["a", "model.quantize_base=True", "--b=c"]), max_size=3),
        "resourcesPerNode": st.fixed_dictionaries({}, optional={"requests": resources, "limits": resources}),
    },
)


def runtime_of(policy: str | None, gang: str | None, env: Any, limits: Any) -> Any:
    node = a_container(env=env, resources={"limits": limits}, ports=[{"containerPort": 80, "name": "web"}])
    jobs = [an_initializer("dataset"), a_trainer(node)]
    if policy == "mpi":
        jobs = [a_job("node", node), a_job("launcher", node, ancestor="trainer")]
    ml: Any = None if policy is None else {policy: {}}
    return a_runtime(*jobs, ml=ml, gang=None if gang is None else {gang: {}})


@given(
    trainers,
    st.none() | st.sampled_from(POLICIES),
    st.none() | st.sampled_from(GANGS),
    variables,
    resources,
    st.booleans(),
)
def test_what_is_wanted_is_sound_and_always_the_same(
    trainer: Any, policy: str | None, gang: str | None, env: Any, limits: Any, suspend: bool
) -> None:
    job = a_train_job(runtime="torchtune-llama3.2-1b", trainer=trainer, suspend=suspend)
    runtime = runtime_of(policy, gang, env, limits)
    before = msgspec.json.encode((job, runtime))
    made, again = objects_of(job, runtime), objects_of(job, runtime)
    assert msgspec.json.encode((job, runtime)) == before
    for objects in (made, again):
        objects.pop("Secret/demo-mpi-ssh-auth", None)
    assert made == again
    job_set = made["JobSet/demo"]
    assert job_set["spec"]["suspend"] is suspend
    for one in job_set["spec"]["replicatedJobs"]:
        spec = one["template"]["spec"]
        assert spec["parallelism"] == spec["completions"] >= 0
        pod = spec["template"]["spec"]
        for container in pod["containers"]:
            assert _are_unique(container.get("env", []), "name")
            assert _are_unique(container.get("volumeMounts", []), "mountPath")
            assert _are_unique(container.get("ports", []), "containerPort")
        volumes = pod.get("volumes", [])
        assert _are_unique(volumes, "name")
        mounted = {mount["name"] for one in pod["containers"] for mount in one.get("volumeMounts", [])}
        assert mounted <= {volume["name"] for volume in volumes}


def _are_unique(entries: list[dict[str, Any]], key: str) -> bool:
    found = [entry[key] for entry in entries]
    return len(found) == len(set(found))
