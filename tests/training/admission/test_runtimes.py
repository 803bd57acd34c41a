"""The rules for runtimes."""

from __future__ import annotations

import pytest

from shoal.api.trainer import TrainingRuntimeSpec
from shoal.training.admission.runtimes import deprecation_warning, is_deprecated
from tests.training.admission.verdicts import TRAINER, problems_of_runtime
from tests.training.builders import a_container, a_job, a_runtime

JOBS = "spec.template.spec.replicatedJobs"

CASES: dict[str, tuple[TrainingRuntimeSpec, list[str]]] = {
    "nodes that train": (a_runtime(TRAINER), []),
    "nodes that train, said to be there once": (a_runtime({**TRAINER, "replicas": 1}), []),
    "nodes that train, twice": (
        a_runtime({**TRAINER, "replicas": 2}),
        [f"{JOBS}[0].replicas: Invalid value: 2: always must be 1"],
    ),
    "no nodes at all": (
        a_runtime({**TRAINER, "replicas": 0}),
        [f"{JOBS}[0].replicas: Invalid value: 0: always must be 1"],
    ),
    "nodes without the container that trains": (
        a_runtime(a_job("node", a_container("main"), ancestor="trainer")),
        [
            f'{JOBS}[0].template.spec.template.spec.containers: Invalid value: ["main"]: must contain the required '
            "container for the ancestor: trainer"
        ],
    ),
    "nodes whose container is an init container": (
        a_runtime(a_job("node", a_container("main"), ancestor="trainer", pod={"initContainers": [a_container()]})),
        [
            f'{JOBS}[0].template.spec.template.spec.containers: Invalid value: ["main"]: must contain the required '
            "container for the ancestor: trainer"
        ],
    ),
    "an initializer of datasets with another container": (
        a_runtime(a_job("dataset-initializer", a_container("fetch"), ancestor="dataset-initializer"), TRAINER),
        [
            f'{JOBS}[0].template.spec.template.spec.containers: Invalid value: ["fetch"]: must contain the required '
            "container for the ancestor: dataset-initializer"
        ],
    ),
    "an initializer of models that is wrong twice": (
        a_runtime(
            TRAINER,
            {**a_job("model-initializer", a_container("fetch"), ancestor="model-initializer"), "replicas": 3},
        ),
        [
            f"{JOBS}[1].replicas: Invalid value: 3: always must be 1",
            f'{JOBS}[1].template.spec.template.spec.containers: Invalid value: ["fetch"]: must contain the required '
            "container for the ancestor: model-initializer",
        ],
    ),
    "a job with no part in TrainJobs, as often as it likes": (a_runtime({**a_job("node"), "replicas": 4}), []),
    "a part that nobody knows": (a_runtime({**a_job("x", ancestor="evaluator"), "replicas": 4}), []),
    "no replicated jobs": (TrainingRuntimeSpec(), []),
}


@pytest.mark.parametrize(("runtime", "expected"), CASES.values(), ids=CASES.keys())
def test_a_runtime_is_judged(runtime: TrainingRuntimeSpec, expected: list[str]) -> None:
    assert problems_of_runtime(runtime) == expected


def test_a_deprecated_runtime_says_so_by_its_label() -> None:
    assert is_deprecated({"trainer.kubeflow.org/support": "deprecated"})
    assert not is_deprecated({"trainer.kubeflow.org/support": "yes"})
    assert not is_deprecated({})


def test_who_uses_a_deprecated_runtime_is_told_where_to_read_on() -> None:
    assert deprecation_warning("old", is_referenced=True) == (
        'Referenced ClusterTrainingRuntime "old" is deprecated and will be removed in a future release of Kubeflow '
        "Trainer. See runtime deprecation policy: "
        "https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
    )
    assert deprecation_warning("old").startswith('ClusterTrainingRuntime "old" is deprecated')
    assert deprecation_warning("old", kind="TrainingRuntime") == 'TrainingRuntime "old" is deprecated: use another one'
