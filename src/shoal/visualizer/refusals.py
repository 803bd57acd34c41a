"""Requests that are not answered, and why."""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """Why a request is not answered: a status, a sentence for whoever asked, and headers that belong to it."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})


def not_yet_published() -> Refusal:
    """Nothing is known before the first cycle has ended."""
    sentence = "the scheduler has not finished its first cycle yet: try again in a second"
    return Refusal(503, sentence, {"Retry-After": "1"})


def not_signed_in(*, presented: bool) -> Refusal:
    """A token is needed."""
    if presented:
        challenge = 'Bearer realm="visualizer", error="invalid_token"'
        return Refusal(401, "this bearer token is not accepted here", {"WWW-Authenticate": challenge})
    sentence = 'a bearer token is needed: send it as "Authorization: Bearer TOKEN"'
    return Refusal(401, sentence, {"WWW-Authenticate": 'Bearer realm="visualizer"'})


def method_not_allowed(method: str, allowed: str) -> Refusal:
    """Views are read, and not written."""
    return Refusal(405, f"{method} is not allowed here: use {allowed}", {"Allow": allowed})
