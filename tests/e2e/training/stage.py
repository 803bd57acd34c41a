"""A namespace of a whole cluster in which training runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.cluster.kubernetes import AdminApi, Refused
from tests.e2e.training.conftest import TRAINER, condition
from tests.support.waiting import wait_until

WITHIN = 60.0
GROUPS = {
    "trainjobs": TRAINER,
    "trainingruntimes": TRAINER,
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "jobs": "/apis/batch/v1",
    "podgangs": "/apis/scheduler.grove.io/v1alpha1",
}
"""The API group of each kind that is not of the core."""
Object = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """A namespace in which training runs."""

    admin: AdminApi
    namespace: str

    def path(self, kind: str, name: str = "") -> str:
        return f"{GROUPS.get(kind, '/api/v1')}/namespaces/{self.namespace}/{kind}{f'/{name}' if name else ''}"

    def get(self, kind: str, name: str) -> Object | None:
        try:
            found: Object = self.admin.request("GET", self.path(kind, name))
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
        return found

    def all(self, kind: str) -> list[Object]:
        found: list[Object] = self.admin.request("GET", self.path(kind))["items"]
        return found

    def delete(self, kind: str, name: str) -> None:
        self.admin.request("DELETE", self.path(kind, name))

    def submit(self, name: str, *, run_time: str = "2s", labels: dict[str, str] | None = None, **spec: Any) -> None:
        """A run of two nodes, each of which takes so long."""
        pods = {"metadata": {"annotations": {"shoal.dev/sim-run-time": run_time}}}
        job = {"name": "node", "template": {"spec": {"template": pods}}}
        patch = {
            "manager": "tests.shoal.dev/stage",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
        }
        self.admin.request(
            "POST",
            self.path("trainjobs"),
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": name, "labels": labels or {}},
                "spec": {
                    "runtimeRef": {"name": "torch-distributed"},
                    "trainer": {"numNodes": 2},
                    "runtimePatches": [patch],
                    **spec,
                },
            },
        )

    def job(self, name: str) -> Object:
        found = self.get("trainjobs", name)
        assert found is not None
        return found

    def until(self, name: str, holds: Callable[[Object], object], what: str) -> Object:
        """A TrainJob, as soon as something holds for it."""
        try:
            wait_until(lambda: holds(self.job(name)), what, within=WITHIN)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.job(name).get('status')}\n{self.warnings()}") from None
        return self.job(name)

    def until_complete(self, name: str) -> Object:
        return self.until(name, lambda job: condition(job, "Complete"), f"{name} to be complete")

    def until_told(self, name: str, text: str) -> None:
        """A TrainJob says what is in its way: in its status, and in an event that the Kubeflow SDK shows."""
        self.until(name, lambda job: text in last_error(job), f"{name} to say {text!r}")
        wait_until(
            lambda: any(text in said for said in self.warnings(about=name)), f"an event of {name} to say {text!r}"
        )

    def warnings(self, *, about: str = "") -> list[str]:
        """The messages of events that warn, of a kind that has no need of any other API to be seen."""
        found = [event for event in self.all("events") if event["type"] == "Warning"]
        return [
            event["message"]
            for event in found
            if event.get("firstTimestamp") and about in ("", event["involvedObject"]["name"])
        ]


def last_error(job: Object) -> str:
    return str(job.get("status", {}).get("lastError", {}).get("message", ""))
