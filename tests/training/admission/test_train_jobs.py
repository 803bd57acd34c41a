"""The rules for TrainJobs: each told in the words that users read. Those for torch are in a file of their own."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob, names
from shoal.training.admission import Surroundings
from tests.training.admission.verdicts import MOUNT, TRAINER, Case, env, problems, unfit
from tests.training.builders import (
    a_container,
    a_job,
    a_job_patch,
    a_patch,
    a_runtime,
    a_train_job,
    an_initializer,
)

TORCH = a_runtime(ml={"torch": {}})
URI = {"storageUri": "hf://a/b"}
INITIALIZERS: dict[str, Case] = {
    "a dataset and nobody to fetch it": (
        a_train_job(initializer={"dataset": URI}),
        a_runtime(),
        [unfit("must have dataset-initializer job when trainJob is configured with input datasetConfig")],
    ),
    "a model and nobody to fetch it": (
        a_train_job(initializer={"model": URI}),
        a_runtime(),
        [unfit("must have model-initializer job when trainJob is configured with input modelConfig")],
    ),
    "another container than fetches datasets": (
        a_train_job(initializer={"dataset": URI}),
        a_runtime(a_job("dataset-initializer", a_container("fetch"))),
        [unfit("must have container with name - dataset-initializer in the dataset-initializer job")],
    ),
    "no volume to put a dataset on": (
        a_train_job(initializer={"dataset": URI}),
        a_runtime(an_initializer("dataset")),
        [
            unfit(
                "must have volumeMount with name - initializer in container dataset-initializer of the "
                "dataset-initializer job"
            )
        ],
    ),
    "another volume than that of initializers": (
        a_train_job(initializer={"model": URI}),
        a_runtime(an_initializer("model", mounts=[{**MOUNT, "name": "other"}])),
        [
            unfit(
                "must have volumeMount with name - initializer in container model-initializer of the "
                "model-initializer job"
            )
        ],
    ),
    "both, and neither can be": (
        a_train_job(initializer={"dataset": {}, "model": {}}),
        a_runtime(),
        [
            unfit("must have dataset-initializer job when trainJob is configured with input datasetConfig"),
            unfit("must have model-initializer job when trainJob is configured with input modelConfig"),
        ],
    ),
    "both, as it should be": (
        a_train_job(initializer={"dataset": URI, "model": URI}),
        a_runtime(an_initializer("dataset", mounts=[MOUNT]), an_initializer("model", mounts=[MOUNT]), TRAINER),
        [],
    ),
    "an initializer of nothing": (a_train_job(initializer={}), a_runtime(), []),
}

SIDE = a_runtime(
    a_job("node", a_container(), a_container("side"), pod={"initContainers": [a_container("first")]}), ml={"torch": {}}
)
PATCHED = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"
POD = f"{PATCHED}.template.spec.template.spec"


def patched(*jobs: dict[str, Any], manager: str = "acme.io/tuner") -> TrainJob:
    return a_train_job(runtimePatches=[a_patch(*jobs, manager=manager)])


RUNTIME_PATCHES: dict[str, Case] = {
    "a manager by a domain and a path": (patched(manager="trainer.kubeflow.org/kubeflow-sdk"), TORCH, []),
    "a manager by a longer path": (patched(manager="acme.io/a/b~c"), TORCH, []),
    "a manager by a mere name": (
        patched(manager="tuner"),
        TORCH,
        [
            'spec.runtimePatches[0].manager: Invalid value: "tuner": must be a domain-prefixed path '
            '(such as "acme.io/foo")'
        ],
    ),
    "a manager by a mere domain": (
        patched(manager="acme.io/"),
        TORCH,
        [
            'spec.runtimePatches[0].manager: Invalid value: "acme.io/": must be a domain-prefixed path '
            '(such as "acme.io/foo")'
        ],
    ),
    "a manager without a name": (
        patched(manager=""),
        TORCH,
        ['spec.runtimePatches[0].manager: Required value: name who makes the changes, such as "acme.io/foo"'],
    ),
    "a manager by no domain": (
        patched(manager="Acme_/foo"),
        TORCH,
        [
            "spec.runtimePatches[0].manager: Invalid value: \"Acme_\": must consist of lower case letters, digits, '-' "
            "and '.', and each part between dots must start and end with a letter or digit (for example 'example.com')"
        ],
    ),
    "a manager by no path": (
        patched(manager="acme.io/a b"),
        TORCH,
        [
            'spec.runtimePatches[0].manager: Invalid value: "a b": must be a path of letters, digits and any of '
            "/-._~%!$&'()*+,;=:"
        ],
    ),
    "a job that the runtime has not": (
        patched(a_job_patch("nodes")),
        TORCH,
        [
            f'{PATCHED}.name: Invalid value: "nodes": must not have replicated job that doesn\'t exist in the runtime '
            "job template"
        ],
    ),
    "a container that the runtime has not": (
        patched(a_job_patch("node", containers=[{"name": "extra"}])),
        SIDE,
        [
            f'{POD}.containers[0].name: Invalid value: "extra": must not have container that doesn\'t exist in the '
            "runtime job node"
        ],
    ),
    "an init container that the runtime has not": (
        patched(a_job_patch("node", initContainers=[{"name": "extra"}])),
        SIDE,
        [
            f'{POD}.initContainers[0].name: Invalid value: "extra": must not have initContainer that doesn\'t exist '
            "in the runtime job node"
        ],
    ),
    "variables of the container that trains": (
        patched(a_job_patch("node", containers=[{"name": "node", **env("A")}])),
        SIDE,
        [
            f'{POD}.containers[0].env: Invalid value: ["A"]: must not have envs for the dataset-initializer, '
            "model-initializer, node containers"
        ],
    ),
    "variables of other containers": (
        patched(a_job_patch("node", containers=[{"name": "side", **env("A")}], initContainers=[{"name": "first"}])),
        SIDE,
        [],
    ),
    "a volume for the container that trains": (
        patched(
            a_job_patch(
                "node",
                volumes=[{"name": "v", "emptyDir": {}}],
                containers=[{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            )
        ),
        SIDE,
        [],
    ),
    "a patch without changes": (a_train_job(runtimePatches=[{"manager": "acme.io/a"}]), TORCH, []),
}

LAUNCHED = {"runLauncherAsNode": True}
FLUX = a_runtime(ml={"flux": {}})

OTHERS: dict[str, Case] = {
    "variables that mpirun reads": (
        a_train_job(trainer=env("OMPI_MCA_plm_rsh_args", "OMPI_MCA_other")),
        a_runtime(ml={"mpi": {}}),
        [
            'spec.trainer.env: Invalid value: ["OMPI_MCA_plm_rsh_args"]: must not have reserved envs, invalid envs '
            "configured: [OMPI_MCA_plm_rsh_args]"
        ],
    ),
    "a launcher that trains alone": (a_train_job(trainer={"numNodes": 1}), a_runtime(ml={"mpi": LAUNCHED}), []),
    "a launcher that trains with nobody to launch on": (
        a_train_job(trainer={"numNodes": 2}),
        a_runtime(a_job("launcher"), ml={"mpi": LAUNCHED}),
        [
            "spec.trainer.numNodes: Invalid value: 2: must have 1 when MPI trainingRuntime with enabled "
            "runLauncherAsNode does not have either launcher and node"
        ],
    ),
    "a launcher that trains with nodes": (
        a_train_job(trainer={"numNodes": 2}),
        a_runtime(a_job("launcher"), a_job("node"), ml={"mpi": LAUNCHED}),
        [],
    ),
    "a launcher that only launches": (
        a_train_job(trainer={"numNodes": 2}),
        a_runtime(a_job("node"), ml={"mpi": {}}),
        [],
    ),
    "variables that XGBoost reads": (
        a_train_job(trainer=env("A", "DMLC_TASK_ID", "DMLC_TRACKER_URI")),
        a_runtime(ml={"xgboost": {}}),
        [
            "spec.trainer.env[1]: Forbidden: DMLC_TASK_ID is reserved for the XGBoost runtime",
            "spec.trainer.env[2]: Forbidden: DMLC_TRACKER_URI is reserved for the XGBoost runtime",
        ],
    ),
    "XGBoost without a trainer": (a_train_job(), a_runtime(ml={"xgboost": {}}), []),
    "JAX's own variables, which may be set": (
        a_train_job(trainer=env("JAX_PROCESS_ID")),
        a_runtime(ml={"jax": {}}),
        [],
    ),
    "Flux on so many nodes": (a_train_job(trainer={"numNodes": 2}), FLUX, []),
    "Flux on nobody knows how many nodes": (
        a_train_job(trainer={"image": "i"}),
        FLUX,
        ["spec.trainer.numNodes: Required value: a Flux runtime needs to know its nodes beforehand: say how many"],
    ),
    "Flux with its installer's name taken": (
        a_train_job(trainer={"numNodes": 2}),
        a_runtime(a_job("node", pod={"initContainers": [a_container("flux-installer")]}), ml={"flux": {}}),
        [unfit("InitContainer 'flux-installer' is reserved")],
    ),
    "that name elsewhere": (
        a_train_job(trainer={"numNodes": 2}),
        a_runtime(a_job("other", pod={"initContainers": [a_container("flux-installer")]}), TRAINER, ml={"flux": {}}),
        [],
    ),
}

QUEUE = names.VOLCANO_QUEUE_ANNOTATION
GANGS: dict[str, Case] = {
    "a queue of Volcano": (a_train_job(), a_runtime(metadata={"annotations": {QUEUE: "q"}}, gang={"volcano": {}}), []),
    "a queue without a name": (
        a_train_job(),
        a_runtime(metadata={"annotations": {QUEUE: ""}}, gang={"volcano": {}}),
        [unfit(f"Volcano queue name must not be empty: see annotation {QUEUE}")],
    ),
    "a queue that a patch takes the name of": (
        a_train_job(runtimePatches=[a_patch(annotations={QUEUE: ""})]),
        a_runtime(metadata={"annotations": {QUEUE: "q"}}, gang={"volcano": {}}),
        [unfit(f"Volcano queue name must not be empty: see annotation {QUEUE}")],
    ),
    "the same without Volcano": (
        a_train_job(),
        a_runtime(metadata={"annotations": {QUEUE: ""}}, gang={"coscheduling": {}}),
        [],
    ),
    "a priority that does not exist": (
        a_train_job(),
        a_runtime(a_job("node", pod={"priorityClassName": "missing"}), gang={"volcano": {}}),
        [unfit('PriorityClass "missing" doesn\'t exist')],
    ),
    "the same for another scheduler": (
        a_train_job(),
        a_runtime(a_job("node", pod={"priorityClassName": "missing"}), gang={"kai": {}}),
        [],
    ),
    "a priority of the system's, and one that does not exist": (
        a_train_job(),
        a_runtime(
            a_job("first", pod={"priorityClassName": "system-node-critical"}),
            a_job("node", pod={"priorityClassName": "missing"}),
            gang={"volcano": {}},
        ),
        [unfit('PriorityClass "missing" doesn\'t exist')],
    ),
}

ALL = {**INITIALIZERS, **RUNTIME_PATCHES, **OTHERS, **GANGS}
NOTHING_THERE = Surroundings(missing_priority_classes=frozenset({"missing", "system-node-critical"}))


@pytest.mark.parametrize(("train_job", "runtime", "expected"), ALL.values(), ids=ALL.keys())
def test_a_train_job_is_judged(train_job: TrainJob, runtime: TrainingRuntimeSpec, expected: list[str]) -> None:
    assert problems(train_job, runtime, around=NOTHING_THERE) == expected


def selecting(zone: str) -> dict[str, Any]:
    return {"runtimePatches": [a_patch(a_job_patch("node", nodeSelector={"zone": zone}))]}


NORTH, SOUTH = selecting("north"), selecting("south")
BUSY = Surroundings(active_jobs=("node", "launcher"))
STAYS_AWAKE = (
    "spec.runtimePatches: Forbidden: RuntimePatches can only be modified when the TrainJob is suspended before or "
    "after the update"
)

CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], Surroundings, list[str]]] = {
    "nothing, while it runs": (NORTH, NORTH, BUSY, []),
    "whether it waits": ({**NORTH, "suspend": True}, NORTH, BUSY, []),
    "patches while it runs": (NORTH, SOUTH, Surroundings(), [STAYS_AWAKE]),
    "patches taken away while it runs": (NORTH, {}, Surroundings(), [STAYS_AWAKE]),
    "patches while it waits": (
        {**NORTH, "suspend": True},
        {**SOUTH, "suspend": True},
        Surroundings(),
        [],
    ),
    "patches as it is resumed": ({**NORTH, "suspend": True}, SOUTH, Surroundings(), []),
    "patches as it is suspended": (NORTH, {**SOUTH, "suspend": True}, Surroundings(), []),
    "patches while pods still go": (
        {**NORTH, "suspend": True},
        {**SOUTH, "suspend": True},
        BUSY,
        [
            "spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's ReplicatedJob node is "
            "still active",
            "spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's ReplicatedJob "
            "launcher is still active",
        ],
    ),
}


@pytest.mark.parametrize(("before", "after", "around", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_judged(
    before: dict[str, Any], after: dict[str, Any], around: Surroundings, expected: list[str]
) -> None:
    assert problems(a_train_job(**after), TORCH, old=a_train_job(**before), around=around) == expected


LENGTHS: dict[str, tuple[TrainJob, TrainingRuntimeSpec, int | None]] = {
    "just short enough": (a_train_job("n" * 48), TORCH, None),
    "a character too long": (a_train_job("n" * 49), TORCH, 48),
    "short enough for ten nodes": (a_train_job("n" * 48, trainer={"numNodes": 10}), TORCH, None),
    "too long for eleven": (a_train_job("n" * 48, trainer={"numNodes": 11}), TORCH, 47),
    "a launcher has the longer name, and is one": (
        a_train_job("n" * 45, trainer={"numNodes": 11}),
        a_runtime(a_job("launcher", ancestor="trainer"), a_job("node"), ml={"mpi": {}}),
        44,
    ),
}


@pytest.mark.parametrize(("train_job", "runtime", "most"), LENGTHS.values(), ids=LENGTHS.keys())
def test_a_name_leaves_room_for_those_of_pods(
    train_job: TrainJob, runtime: TrainingRuntimeSpec, most: int | None
) -> None:
    said = problems(train_job, runtime)
    if most is None:
        assert said == []
        return
    [problem] = said
    assert problem.startswith("metadata.name: Invalid value: ")
    assert f"must be no more than {most} characters with this runtime: its last pod would be called nnn" in problem
    assert problems(train_job, runtime, old=train_job) == []


def test_a_job_whose_runtime_is_gone_is_held_to_what_can_be_known() -> None:
    """It can be suspended and resumed, and its patches are still its managers'."""
    wrong = a_train_job(initializer={"dataset": URI}, trainer=env("PET_NNODES"), **NORTH)
    assert problems(wrong, None, old=wrong) == []
    assert problems(a_train_job(**SOUTH), None, old=a_train_job(**NORTH)) == [STAYS_AWAKE]
    assert problems(patched(manager="tuner"), None)[0].startswith("spec.runtimePatches[0].manager: Invalid value")


def test_a_message_shows_no_value_of_a_variable() -> None:
    said = problems(a_train_job(trainer=env("PET_NNODES")), TORCH)
    said += problems(patched(a_job_patch("node", containers=[{"name": "node", **env("A")}])), TORCH)
    assert len(said) == 2
    assert not any("secret" in each for each in said)
