"""Every JobSet among upstream's own manifests: accepted or refused, by which rule, and what comes of it.

The verdicts were derived by hand from the rules; the counts from the manifests' own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from shoal.api.jobset import JOB_SETS, JobSet
from shoal.api.meta import DecodeError
from shoal.kube.admission import FieldProblem, Warn
from shoal.training.jobset.admission import defaulted, job_set_findings
from shoal.training.jobset.plan import Seen, plan_of
from shoal.training.jobset.settings import JobSetSettings
from tests.support.schemas.corpus import CORPUS, needs_corpus, upstream_samples
from tests.training.jobset.builders import NOW

EVERYTHING_ON = JobSetSettings(restarts_single_jobs=True, restarts_in_place=True)


@dataclass(frozen=True)
class Makes:
    """The JobSet is accepted, and so many Jobs are made at first; ``needs`` is refused where it is not enabled."""

    jobs: int
    needs: str = ""


@dataclass(frozen=True)
class Undecodable:
    """The manifest is no JobSet, by this field."""

    field: str


VERDICTS: dict[str, Makes | Undecodable] = {
    # A scaffold whose specification is empty but for a comment, which YAML reads as null.
    "batch_v1alpha2_jobset: JobSet/jobset-sample": Undecodable("$.spec"),
    # The two initializers; the worker waits for both.
    "depends-on_multiple-depends-on: JobSet/multiple-depends-on": Makes(2),
    "failure-policy_host-maintenance-event-model: JobSet/host-maintenance-event-model": Makes(2),
    "failure-policy_onjobfailurereasons-present: JobSet/onjobfailurereasons-present-example": Makes(2),
    "failure-policy_restartjobandignoremaxrestarts-action: JobSet/js": Makes(
        2, needs="spec.failurePolicy.rules[1].action"
    ),
    "failure-policy_restartjobsetandignoremaxrestarts-action: JobSet/rjimr-action-example": Makes(2),
    "in-place-restart_jobset-sidecar-container-mode: JobSet/js": Makes(2, needs="spec.failurePolicy.restartStrategy"),
    "pytorch_resnet-cifar10_resnet: JobSet/pytorch": Makes(1),
    "simple_exclusive-placement: JobSet/exclusive-placement": Makes(3),
    "simple_group: JobSet/group-example": Makes(2),
    "simple_paralleljobs: JobSet/paralleljobs": Makes(2),
    "simple_ttl-after-finished: JobSet/jobset-with-ttl": Makes(1),
    "tensorflow_mnist: JobSet/tensorflow": Makes(1),
    "tpu-multislice_v6e-jax-workload: JobSet/v6e-multislice": Makes(2),
    "workload-aware-scheduling_dra_jobset: JobSet/training-job": Makes(3),
    "workload-aware-scheduling_preemption_high-priority-jobset: JobSet/hp-js": Makes(2),
    "workload-aware-scheduling_preemption_low-priority-jobset: JobSet/lp-js": Makes(2),
    "workload-aware-scheduling_tas_jobset: JobSet/js": Makes(2),
}


def samples() -> dict[str, dict[str, Any]]:
    if not CORPUS.is_dir():
        return {}
    return {name: body for name, body in upstream_samples("jobset") if body["kind"] == "JobSet"}


SAMPLES = samples()
pytestmark = needs_corpus


def judged(body: dict[str, Any], settings: JobSetSettings) -> list[FieldProblem]:
    found = list(job_set_findings(defaulted(msgspec.convert(body, JobSet)), settings))
    assert not [finding for finding in found if isinstance(finding, Warn)]
    return [finding for finding in found if isinstance(finding, FieldProblem)]


def test_every_manifest_has_its_verdict() -> None:
    assert set(SAMPLES) == set(VERDICTS)


@pytest.mark.parametrize("sample", VERDICTS)
def test_a_manifest_is_judged_by_the_rules(sample: str) -> None:
    body = SAMPLES[sample]
    match VERDICTS[sample]:
        case Undecodable(field):
            with pytest.raises(DecodeError) as refusal:
                JOB_SETS.decode(msgspec.json.encode(body))
            assert f"`{field}`" in str(refusal.value)
        case Makes(jobs, needs):
            assert judged(body, EVERYTHING_ON) == []
            assert [problem.path for problem in judged(body, JobSetSettings())] == ([needs] if needs else [])
            job_set = defaulted(msgspec.convert(body, JobSet))
            plan = plan_of(job_set, Seen(), EVERYTHING_ON, NOW)
            assert len(plan.work.create) == jobs
            assert plan.work.service is not None
