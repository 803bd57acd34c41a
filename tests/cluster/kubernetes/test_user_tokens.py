from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.keyring import TokenKey, User
from shoal.cluster.kubernetes.user_tokens import TokenReviewer, review

KEY = TokenKey(b"0" * 32)


@given(name=st.text(), groups=st.lists(st.text(), max_size=5))
def test_a_token_stands_for_the_user_it_was_made_for(name: str, groups: list[str]) -> None:
    assert KEY.user(KEY.token(name, groups)) == User(name, tuple(groups))


@given(token=st.text())
def test_no_other_text_is_a_token(token: str) -> None:
    assert KEY.user(token) is None
    assert KEY.user("shoal-user-" + token) is None


def forged() -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"user": "eve", "groups": ["system:masters"]}).encode()).decode()
    _, _, signature = KEY.token("eve").partition(".")
    return f"shoal-user-{claims}.{signature}"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(TokenKey(b"1" * 32).token("ann"), id="signed with another cluster's key"),
        pytest.param(forged(), id="claims exchanged"),
        pytest.param(KEY.token("ann")[:-4], id="signature cut"),
        pytest.param(KEY.token("ann").removeprefix("shoal-user-"), id="prefix missing"),
        pytest.param("", id="empty"),
        pytest.param("eyJhbGciOiJSUzI1NiJ9.e30.c2ln", id="a service account's"),
    ],
)
def test_a_token_that_is_not_ours_is_nobody(token: str) -> None:
    assert KEY.user(token) is None


@pytest.mark.parametrize("request_", [None, [], {}, {"spec": None}, {"spec": {}}, {"spec": {"token": 3}}], ids=repr)
def test_a_review_of_nonsense_authenticates_nobody(request_: Any) -> None:
    assert review(request_, KEY)["status"] == {"authenticated": False}


def test_the_reviewer_answers_over_http() -> None:
    reviewer = TokenReviewer(KEY)
    try:
        body = json.dumps({"spec": {"token": KEY.token("ann", ["staff"])}}).encode()
        with urllib.request.urlopen(urllib.request.Request(reviewer.url, body), timeout=10) as answer:
            status = json.load(answer)["status"]
        assert status == {"authenticated": True, "user": {"username": "ann", "uid": "ann", "groups": ["staff"]}}
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            urllib.request.urlopen(urllib.request.Request(reviewer.url, b"not json"), timeout=10)
        refused.value.close()
    finally:
        reviewer.close()
