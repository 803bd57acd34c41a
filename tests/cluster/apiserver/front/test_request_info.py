from __future__ import annotations

import pytest

from shoal.cluster.apiserver.front.request_info import RequestInfo, request_info

CASES = {
    "list all": ("GET", "/api/v1/pods", {"verb": "list", "version": "v1", "resource": "pods"}),
    "list one namespace": (
        "GET",
        "/api/v1/namespaces/a/pods",
        {"verb": "list", "version": "v1", "resource": "pods", "namespace": "a"},
    ),
    "get": (
        "GET",
        "/apis/apps/v1/namespaces/a/deployments/web",
        {
            "verb": "get",
            "group": "apps",
            "version": "v1",
            "resource": "deployments",
            "namespace": "a",
            "name": "web",
        },
    ),
    "subresource": (
        "PATCH",
        "/apis/apps/v1/namespaces/a/deployments/web/scale",
        {
            "verb": "patch",
            "group": "apps",
            "version": "v1",
            "resource": "deployments",
            "namespace": "a",
            "name": "web",
            "subresource": "scale",
        },
    ),
    "a namespace is in itself": (
        "DELETE",
        "/api/v1/namespaces/a",
        {"verb": "delete", "version": "v1", "resource": "namespaces", "namespace": "a", "name": "a"},
    ),
    "a namespace's own subresource": (
        "PUT",
        "/api/v1/namespaces/a/finalize",
        {
            "verb": "update",
            "version": "v1",
            "resource": "namespaces",
            "namespace": "a",
            "name": "a",
            "subresource": "finalize",
        },
    ),
    "delete many": (
        "DELETE",
        "/api/v1/namespaces/a/pods",
        {"verb": "deletecollection", "version": "v1", "resource": "pods", "namespace": "a"},
    ),
    "create": (
        "POST",
        "/api/v1/namespaces/a/pods",
        {"verb": "create", "version": "v1", "resource": "pods", "namespace": "a"},
    ),
    "the rest of a proxy's path": (
        "GET",
        "/api/v1/namespaces/a/pods/p/proxy/x/y",
        {
            "verb": "get",
            "version": "v1",
            "resource": "pods",
            "namespace": "a",
            "name": "p",
            "subresource": "proxy",
            "rest": "x/y",
        },
    ),
    "an empty namespace": (
        "GET",
        "/api/v1/namespaces//pods",
        {"verb": "list", "version": "v1", "resource": "pods"},
    ),
    "an empty name": (
        "GET",
        "/api/v1/namespaces/a/pods//p",
        {"verb": "list", "version": "v1", "resource": "pods", "namespace": "a", "subresource": "p"},
    ),
    "slashes at the end": (
        "GET",
        "/api/v1/namespaces/a/pods//",
        {"verb": "list", "version": "v1", "resource": "pods", "namespace": "a"},
    ),
    "an old watch path": (
        "GET",
        "/api/v1/watch/namespaces/a/pods",
        {"verb": "watch", "version": "v1", "resource": "pods", "namespace": "a", "is_watch_path": True},
    ),
}


@pytest.mark.parametrize(("method", "path", "expected"), CASES.values(), ids=CASES)
def test_a_url_names_what_it_is_about(method: str, path: str, expected: dict[str, str]) -> None:
    assert request_info(method, path, watch=False) == RequestInfo(path=path, is_resource=True, **expected)  # type: ignore[arg-type]


def test_a_list_that_goes_on_is_a_watch() -> None:
    assert request_info("GET", "/api/v1/pods", watch=True).verb == "watch"
    assert request_info("GET", "/api/v1/watch/namespaces/a/pods/p", watch=False).verb == "watch"


def test_one_object_is_read_even_where_a_watch_is_asked_for() -> None:
    assert request_info("GET", "/api/v1/namespaces/a/pods/p", watch=True).verb == "get"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/version",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/x/v1/pods",
        "//api/v1/pods",
        "/apis//v1/pods",
    ],
)
def test_what_is_no_resource_is_a_path(path: str) -> None:
    info = request_info("GET", path, watch=False)
    assert (info.is_resource, info.verb, info.path) == (False, "get", path)
