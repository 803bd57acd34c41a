"""A runtime's template with the patches of a TrainJob."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.trainer import RuntimePatch, RuntimeTemplate
from shoal.training.patches import patched_template
from tests.training.builders import a_job_patch, a_patch


def a_template(*jobs: dict[str, Any], **metadata: Any) -> RuntimeTemplate:
    body: dict[str, Any] = {"spec": {"replicatedJobs": list(jobs)}}
    if metadata:
        body["metadata"] = metadata
    return msgspec.convert(body, RuntimeTemplate)


def a_typed_patch(*jobs: dict[str, Any], **given: Any) -> RuntimePatch:
    return msgspec.convert(a_patch(*jobs, **given), RuntimePatch)


def pod_spec(template: RuntimeTemplate, name: str) -> dict[str, Any]:
    [found] = [job for job in template.spec["replicatedJobs"] if job["name"] == name]
    spec: dict[str, Any] = found["template"]["spec"]["template"]["spec"]
    return spec


NODE = a_job_patch("node", containers=[{"name": "node", "image": "i"}], nodeSelector={"zone": "a"})
DATASET = a_job_patch("dataset-initializer", containers=[{"name": "dataset-initializer", "image": "d"}])


def test_without_patches_a_template_stays_itself() -> None:
    template = a_template(NODE, labels={"a": "1"})
    assert patched_template(template, []) == template


def test_replicated_jobs_keep_the_runtimes_order() -> None:
    """A merge alone would put those first that the patch names."""
    patched = patched_template(a_template(DATASET, NODE), [a_typed_patch(a_job_patch("node", serviceAccountName="s"))])
    both = patched_template(
        a_template(DATASET, NODE),
        [
            a_typed_patch(
                a_job_patch("node", serviceAccountName="s"), a_job_patch("dataset-initializer", serviceAccountName="t")
            )
        ],
    )
    for found in (patched, both):
        assert [job["name"] for job in found.spec["replicatedJobs"]] == ["dataset-initializer", "node"]
    assert pod_spec(both, "dataset-initializer")["serviceAccountName"] == "t"


def test_a_later_patch_is_laid_over_an_earlier_one() -> None:
    first = a_typed_patch(
        a_job_patch("node", nodeSelector={"zone": "b", "disk": "ssd"}), labels={"team": "x", "kept": "1"}
    )
    second = a_typed_patch(a_job_patch("node", nodeSelector={"zone": "c"}), manager="acme.io/b", labels={"team": "y"})
    patched = patched_template(a_template(NODE), [first, second])
    assert pod_spec(patched, "node")["nodeSelector"] == {"zone": "c", "disk": "ssd"}
    assert patched.metadata is not None
    assert patched.metadata.labels == {"team": "y", "kept": "1"}


def test_labels_and_annotations_are_laid_over_the_runtimes_and_nothing_else_of_metadata() -> None:
    template = a_template(NODE, name="kept", labels={"a": "1", "b": "1"}, annotations={"c": "1"})
    patched = patched_template(template, [a_typed_patch(labels={"b": "2"}, annotations={"d": "2"}, name="other")])
    assert patched.metadata is not None
    assert (patched.metadata.name, patched.metadata.labels) == ("kept", {"a": "1", "b": "2"})
    assert patched.metadata.annotations == {"c": "1", "d": "2"}
    assert patched.spec == template.spec


def test_what_a_patch_leaves_empty_takes_nothing_away() -> None:
    runtime = a_template(a_job_patch("node", tolerations=[{"key": "gpu"}], volumes=[{"name": "v"}]))
    patch = a_typed_patch(
        {**a_job_patch("node", tolerations=[], volumes=[{"name": "w", "emptyDir": {}}], affinity=None)}
    )
    found = pod_spec(patched_template(runtime, [patch]), "node")
    assert found == {
        "tolerations": [{"key": "gpu"}],
        "volumes": [{"name": "w", "emptyDir": {}}, {"name": "v"}],
    }


def test_a_patch_that_says_nothing_changes_nothing() -> None:
    template = a_template(DATASET, NODE)
    nothing = [
        msgspec.convert(body, RuntimePatch)
        for body in (
            {"manager": "acme.io/a"},
            {"manager": "acme.io/b", "trainingRuntimeSpec": {}},
            {"manager": "acme.io/c", "trainingRuntimeSpec": {"template": {}}},
        )
    ]
    assert patched_template(template, nothing) == template


def test_neither_the_runtime_nor_the_patch_is_changed() -> None:
    template, patch = (
        a_template(NODE),
        a_typed_patch(a_job_patch("node", containers=[{"name": "node", "env": [{"name": "A"}]}])),
    )
    before = copy.deepcopy((template, patch))
    patched_template(template, [patch])
    assert (template, patch) == before


JOBS = ("dataset-initializer", "model-initializer", "node", "launcher")
job_lists = st.lists(st.sampled_from(JOBS), unique=True, max_size=4)


@given(runtime=job_lists, data=st.data())
def test_whatever_patches_name_the_jobs_are_the_runtimes_in_its_order(runtime: list[str], data: st.DataObject) -> None:
    named = data.draw(st.lists(st.permutations(runtime).flatmap(lambda order: st.just(list(order[:2]))), max_size=3))
    patches = [
        a_typed_patch(*(a_job_patch(name, nodeSelector={"of": str(at)}) for name in names))
        for at, names in enumerate(named)
    ]
    patched = patched_template(a_template(*(a_job_patch(name) for name in runtime)), patches)
    assert [job["name"] for job in patched.spec["replicatedJobs"]] == runtime
    last = {name: str(at) for at, names in enumerate(named) for name in names}
    for name in runtime:
        assert pod_spec(patched, name).get("nodeSelector", {}).get("of") == last.get(name)
