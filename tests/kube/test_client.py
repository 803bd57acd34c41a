"""The client: which requests are sent, which are tried again, and what a refusal becomes."""

import msgspec
import pytest

from shoal.api.meta.objects import Object, ObjectMeta, Wire
from shoal.api.meta.resource import Resource
from shoal.kube.backoff import Backoff, TokenBucket
from shoal.kube.client import Client, Retry, retry_on_conflict
from shoal.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    ConnectionFault,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from tests.support.network.scripted import Answer, ScriptedTransport, refusal


class BookSpec(Wire, frozen=True, kw_only=True):
    pages: int = 0


class Book(Object, frozen=True, kw_only=True):
    spec: BookSpec = BookSpec()


BOOKS = Resource(type=Book, group="library.example", version="v1", kind="Book", plural="books")
QUICK = Retry(backoff=Backoff(initial=0.001, cap=0.001), within=1)


def client_of(*answers: Answer | Exception) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport.of(*answers)
    return Client(transport, retry=QUICK), transport


def book(name: str = "moby", version: str = "1", pages: int = 0) -> Answer:
    return Answer({"metadata": {"name": name, "resourceVersion": version}, "spec": {"pages": pages}})


async def test_a_get_is_typed_by_its_resource() -> None:
    client, transport = client_of(book(pages=635))
    found = await client.get(BOOKS, "moby", "library")
    assert found.spec.pages == 635
    assert str(transport.requests[0]) == "GET /apis/library.example/v1/namespaces/library/books/moby"


async def test_a_list_follows_its_pages_and_sets_apart_what_does_not_decode() -> None:
    good = {"metadata": {"name": "a"}, "spec": {"pages": 1}}
    bad = {"metadata": {"name": "b"}, "spec": {"pages": "many"}}
    client, transport = client_of(
        Answer({"metadata": {"resourceVersion": "9", "continue": "token"}, "items": [good, bad]}),
        Answer({"metadata": {"resourceVersion": "9"}, "items": [good]}),
    )
    listing = await client.list(BOOKS, label_selector="shelf=1")
    assert [found.metadata.name for found in listing.items] == ["a", "a"]
    assert listing.resource_version == "9"
    assert [str(problem) for problem in listing.undecodable] == [
        "Book b does not decode: Expected `int`, got `str` - at `$.spec.pages`"
    ]
    assert [dict(request.query) for request in transport.requests] == [
        {"labelSelector": "shelf=1", "limit": "500"},
        {"labelSelector": "shelf=1", "limit": "500", "continue": "token"},
    ]


async def test_a_name_without_its_namespace_is_a_mistake_of_the_caller() -> None:
    client, transport = client_of(book())
    with pytest.raises(ValueError, match="Book moby lives in a namespace"):
        await client.get(BOOKS, "moby")
    assert transport.requests == []


async def test_a_list_of_null_is_empty() -> None:
    client, _ = client_of(Answer({"metadata": {"resourceVersion": "9"}, "items": None}))
    assert (await client.list(BOOKS)).items == []


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        pytest.param(401, "Unauthorized", Unauthorized, id="401"),
        pytest.param(403, "Forbidden", Forbidden, id="403"),
        pytest.param(404, "NotFound", NotFound, id="404"),
        pytest.param(409, "Conflict", Conflict, id="409 of a version"),
        pytest.param(409, "AlreadyExists", AlreadyExists, id="409 of a name"),
        pytest.param(410, "Expired", Expired, id="410"),
        pytest.param(422, "Invalid", Invalid, id="422"),
        pytest.param(418, "Teapot", ApiError, id="a code that nobody knows"),
    ],
)
async def test_a_refusal_is_raised_as_what_it_means(code: int, reason: str, expected: type[ApiError]) -> None:
    client, transport = client_of(refusal(code, reason))
    with pytest.raises(expected) as raised:
        await client.get(BOOKS, "moby", "library")
    assert type(raised.value) is expected
    assert (raised.value.code, raised.value.reason) == (code, reason)
    assert len(transport.requests) == 1, "what will not pass by itself is not tried again"


async def test_an_answer_that_is_no_status_is_still_told() -> None:
    client, _ = client_of(Answer(b"upstream is sleeping", status=404))
    with pytest.raises(NotFound, match="upstream is sleeping"):
        await client.get(BOOKS, "moby", "library")


async def test_a_redirect_to_a_login_page_is_no_answer() -> None:
    client, _ = client_of(Answer(b"<html>sign in</html>", status=302))
    with pytest.raises(ApiError, match="sign in"):
        await client.get(BOOKS, "moby", "library")


@pytest.mark.parametrize("failure", [refusal(500, "InternalError"), refusal(503, "ServiceUnavailable")])
async def test_a_read_is_tried_again_after_a_server_fault(failure: Answer) -> None:
    client, transport = client_of(failure, failure, book())
    assert (await client.get(BOOKS, "moby", "library")).metadata.name == "moby"
    assert len(transport.requests) == 3


async def test_a_create_is_not_tried_again_when_it_may_have_arrived() -> None:
    client, transport = client_of(ConnectionFault("reset"), book())
    with pytest.raises(ConnectionFault):
        await client.create(BOOKS, {"metadata": {"generateName": "book-"}}, "library")
    assert len(transport.requests) == 1


async def test_a_delete_is_sent_twice_only_where_it_names_the_very_object() -> None:
    client, transport = client_of(ConnectionFault("reset"), ConnectionFault("reset"), Answer({}))
    with pytest.raises(ConnectionFault):
        await client.delete(BOOKS, "moby", "library")
    assert len(transport.requests) == 1
    await client.delete(BOOKS, "moby", "library", uid="u1")
    assert len(transport.requests) == 3


async def test_a_create_is_tried_again_when_it_surely_never_left() -> None:
    client, transport = client_of(ConnectionFault("refused", sent=False), book())
    await client.create(BOOKS, {"metadata": {"generateName": "book-"}}, "library")
    assert len(transport.requests) == 2


async def test_a_json_patch_is_not_sent_twice_but_an_apply_is() -> None:
    client, transport = client_of(ConnectionFault("reset"), ConnectionFault("reset"), book())
    with pytest.raises(ConnectionFault):
        await client.json_patch(BOOKS, "moby", [{"op": "add", "path": "/x/-", "value": 1}], "library")
    await client.apply(BOOKS, {"metadata": {"name": "moby"}}, "library", name="moby", field_manager="test")
    assert [request.content_type for request in transport.requests] == [
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "application/apply-patch+yaml",
    ]


async def test_a_plea_to_slow_down_is_heeded_even_for_a_create() -> None:
    client, transport = client_of(refusal(429, "TooManyRequests", headers={"Retry-After": "0"}), book())
    await client.create(BOOKS, {"metadata": {"name": "moby"}}, "library")
    assert len(transport.requests) == 2


async def test_waiting_longer_than_allowed_is_not_even_begun() -> None:
    client, transport = client_of(refusal(429, "TooManyRequests", headers={"Retry-After": "60"}), book())
    with pytest.raises(TooManyRequests) as raised:
        await client.get(BOOKS, "moby", "library")
    assert raised.value.retry_after == 60
    assert len(transport.requests) == 1


async def test_an_eviction_that_a_budget_forbids_is_told_at_once() -> None:
    client, transport = client_of(refusal(429, "TooManyRequests", headers={"Retry-After": "0"}))
    with pytest.raises(TooManyRequests):
        await client.evict(BOOKS, "pod", "library")
    assert len(transport.requests) == 1


async def test_a_typed_object_is_written_with_its_kind_and_without_defaults() -> None:
    client, transport = client_of(book())
    await client.create(BOOKS, Book(metadata=ObjectMeta(name="moby"), spec=BookSpec(pages=3)), "library")
    assert msgspec.json.decode(transport.requests[0].body or b"") == {
        "apiVersion": "library.example/v1",
        "kind": "Book",
        "metadata": {"name": "moby"},
        "spec": {"pages": 3},
    }


async def test_a_delete_carries_its_preconditions_and_propagation() -> None:
    client, transport = client_of(Answer({}))
    await client.delete(BOOKS, "moby", "library", uid="u1", propagation="Foreground", grace_seconds=0)
    assert msgspec.json.decode(transport.requests[0].body or b"") == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u1"},
    }


async def test_a_lost_race_is_run_again_from_its_reading() -> None:
    client, transport = client_of(book(version="1"), refusal(409, "Conflict"), book(version="2"), book(version="3"))

    async def attempt() -> str:
        found = await client.get(BOOKS, "moby", "library")
        await client.update(BOOKS, found, "library", name="moby")
        return found.metadata.resource_version

    assert await retry_on_conflict(attempt) == "2"
    assert len(transport.requests) == 4


async def test_a_rate_limit_spreads_requests_and_is_measured() -> None:
    transport = ScriptedTransport.of(*(book() for _ in range(3)))
    client = Client(transport, rate_limit=TokenBucket(rate=100, burst=1))
    for _ in range(3):
        await client.get(BOOKS, "moby", "library")
    waited = client.metrics.registry.get_sample_value(
        "rest_client_rate_limiter_duration_seconds_count", {"verb": "GET", "host": "scripted"}
    )
    assert waited == 2
