"""The kinds that are asked and answered, never stored: reviews, and tokens for ServiceAccounts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from shoal.api.meta import format_time
from shoal.api.meta import now as utc_now
from shoal.cluster.apiserver.access import reviews
from shoal.cluster.apiserver.access.authentication import Authenticator
from shoal.cluster.apiserver.access.authorization import Authorizer
from shoal.cluster.apiserver.access.tokens import DEFAULT_SECONDS, TokenSigner
from shoal.cluster.apiserver.apply import record_update
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome, write_options
from shoal.cluster.apiserver.verbs.bodies import read_object, read_other
from shoal.cluster.apiserver.verbs.writing import new_uid

TOKEN_REQUEST = "authentication.v1.TokenRequest"  # noqa: S105 - a type's name


class Questions:
    """Answers reviews and issues tokens."""

    def __init__(
        self,
        *,
        authenticator: Authenticator,
        authorizer: Authorizer,
        signer: TokenSigner,
        state: Reader,
        clock: Callable[[], datetime],
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._signer = signer
        self._state = state
        self._clock = clock

    async def token_review(self, asked: Asked) -> Outcome:
        """Whom a token stands for."""
        return _answered(asked, reviews.token_review(await _body(asked), self._authenticator))

    async def self_subject_review(self, asked: Asked) -> Outcome:
        """Who asks."""
        return _answered(asked, reviews.self_subject_review(await _body(asked), asked.user, now=self._clock()))

    async def subject_access_review(self, asked: Asked) -> Outcome:
        """Whether some user may do something."""
        return _answered(asked, reviews.subject_access_review(await _body(asked), self._authorizer))

    async def local_subject_access_review(self, asked: Asked) -> Outcome:
        """Whether some user may do something in a namespace."""
        body = await _body(asked)
        return _answered(asked, reviews.local_subject_access_review(body, self._authorizer, namespace=asked.namespace))

    async def self_subject_access_review(self, asked: Asked) -> Outcome:
        """Whether the one who asks may do something."""
        return _answered(asked, reviews.self_subject_access_review(await _body(asked), asked.user, self._authorizer))

    async def self_subject_rules_review(self, asked: Asked) -> Outcome:
        """All that the one who asks may do in a namespace."""
        return _answered(asked, reviews.self_subject_rules_review(await _body(asked), asked.user, self._authorizer))

    async def token(self, asked: Asked) -> Outcome:
        """A token for a ServiceAccount."""
        asked.options = write_options(asked.call, "CreateOptions")
        schema = type_schema(TOKEN_REQUEST)
        body = await read_other(asked, schema, "authentication.k8s.io/v1", "TokenRequest")
        if body["spec"].get("expirationSeconds") is None:
            body["spec"]["expirationSeconds"] = DEFAULT_SECONDS
        record_update(
            schema, None, body, manager=asked.options.manager, subresource="token", now=format_time(self._clock())
        )
        issued = self._signer.issue(
            body, namespace=asked.namespace, name=asked.name, state=self._state, now=self._clock(), new_id=new_uid
        )
        return _answered(asked, issued)


async def _body(asked: Asked) -> Object:
    asked.options = write_options(asked.call, "CreateOptions")
    return await asked.computed(lambda: _recorded(asked))


def _recorded(asked: Asked) -> Object:
    body = read_object(asked)
    record_update(
        asked.kind.schema, None, body, manager=asked.options.manager, subresource="", now=format_time(utc_now())
    )
    return body


def _answered(asked: Asked, answer: Object) -> Outcome:
    return Outcome(kind=asked.kind, object=answer, status=201)
