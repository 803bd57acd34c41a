"""Whose a token is, and how long that is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.kube import Client
from shoal.training.progress.tokens import Tokens
from tests.support.network.scripted import Answer, ScriptedTransport

AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/demo/status"
GOOD = {"authenticated": True, "user": {"username": "system:serviceaccount:team:default"}, "audiences": [AUDIENCE]}

ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "an account": (GOOD, "team"),
    "not authenticated": ({**GOOD, "authenticated": False}, ""),
    "good for others": ({**GOOD, "audiences": ["https://kubernetes.default.svc"]}, ""),
    "a server that knows no audiences": ({**GOOD, "audiences": []}, ""),
    "a person": ({**GOOD, "user": {"username": "team:alice"}}, ""),
    "nothing": ({}, ""),
}


def review(status: dict[str, Any]) -> Answer:
    return Answer({"kind": "TokenReview", "metadata": {}, "status": status}, status=201)


@pytest.mark.parametrize(("status", "expected"), ANSWERS.values(), ids=ANSWERS)
async def test_the_namespace_of_a_token(status: dict[str, Any], expected: str) -> None:
    tokens = Tokens(Client(ScriptedTransport.of(review(status))))
    assert await tokens.namespace("token", AUDIENCE) == expected


async def test_what_was_found_out_is_good_for_a_while_and_for_this_token_alone() -> None:
    transport = ScriptedTransport.of(review(GOOD), review({}), review(GOOD))
    moment = 0.0
    tokens = Tokens(Client(transport), good_for=30, clock=lambda: moment)
    assert await tokens.namespace("token", AUDIENCE) == "team"
    moment = 29.0
    assert await tokens.namespace("token", AUDIENCE) == "team"
    assert len(transport.requests) == 1
    assert await tokens.namespace("another", AUDIENCE) == ""
    moment = 31.0
    assert await tokens.namespace("token", AUDIENCE) == "team"
    assert len(transport.requests) == 3


async def test_a_token_that_was_refused_is_asked_about_again() -> None:
    tokens = Tokens(Client(ScriptedTransport.of(review({}), review(GOOD))))
    assert await tokens.namespace("token", AUDIENCE) == ""
    assert await tokens.namespace("token", AUDIENCE) == "team"
