"""The real API server and our functions agree on objects and their managers, whatever several writers do to them."""

from __future__ import annotations

import http.client
import itertools
import json
import ssl
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings

from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.kubernetes import RealKubernetes
from tests.cluster.apiserver.apply import subjects
from tests.cluster.apiserver.apply.differential import JSON, Request, Step, Subject, Trial

pytestmark = pytest.mark.slow


@pytest.fixture
def request_real(kube: RealKubernetes) -> Iterator[Request]:
    """Requests to the real server over one connection, with refusals as answers."""
    connection = http.client.HTTPSConnection(
        urlsplit(kube.server).netloc, context=ssl.create_default_context(cafile=str(kube.ca_file)), timeout=20
    )
    connection.connect()

    def request(method: str, path: str, body: Any, content_type: str) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {kube.admin_token}", "Content-Type": content_type}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    yield request
    connection.close()


@pytest.mark.parametrize(
    ("subject_in", "examples"),
    [
        pytest.param(subjects.shapes, 120, id="custom-kind"),
        pytest.param(subjects.config_maps, 60, id="config-map"),
        pytest.param(subjects.pod_templates, 50, id="pod-template"),
        pytest.param(subjects.services, 50, id="service"),
        pytest.param(subjects.deployments, 50, id="deployment"),
    ],
)
def test_objects_and_managers_are_those_of_kubernetes(
    kube: RealKubernetes,
    request_real: Request,
    namespace: str,
    subject_in: Callable[[str], Subject],
    examples: int,
) -> None:
    subject = subject_in(namespace)
    if subject.kind == "Shape":
        kube.admin.define([subjects.DEFINITION])
    names = (f"object-{number}" for number in itertools.count())
    agreed = 0

    @settings(max_examples=examples, derandomize=True, database=None, deadline=None)
    @given(steps=subjects.steps(subject.kind))
    def agree(steps: list[Step]) -> None:
        nonlocal agreed
        trial = Trial(request_real, subject, next(names))
        for step in steps:
            trial.take(step)
        agreed += trial.agreed

    agree()
    assert agreed > 2 * examples


def test_the_oldest_updates_are_thrown_together_as_in_kubernetes(request_real: Request, namespace: str) -> None:
    trial = Trial(request_real, subjects.config_maps(namespace), "many")
    trial.take(Step("put", "m00", {"data": {"k00": "x"}}))
    for number in range(1, 15):
        trial.take(Step("merge", f"m{number:02}", {"data": {f"k{number:02}": "x"}}))
    assert trial.agreed == 15


def test_a_kind_that_holds_itself_is_managed_as_in_kubernetes(request_real: Request) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = type_schema("apiextensions.v1.CustomResourceDefinition")
    subject = Subject(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        path,
        schema,
        defaulted=frozenset({"conversion"}),
        resets={"": (("status",),)},
    )
    spec = {**subjects.DEFINITION["spec"], "group": "managers.shoal.example"}
    trial = Trial(request_real, subject, "shapes.managers.shoal.example")
    try:
        trial.take(Step("put", "ann", {"spec": spec}))
        # The server writes the status meanwhile, and an apply that comes between is refused.
        while trial.agreed < 2 and trial.taken < 50:
            trial.take(Step("apply", "ben", {"spec": spec}))
        assert trial.agreed == 2
    finally:
        request_real("DELETE", f"{path}/{trial.name}", None, JSON)
