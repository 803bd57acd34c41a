"""Get and list: committed objects as the client asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice

from shoal.cluster.apiserver.refusals import Refused, bad_request, expired, not_found, timeout
from shoal.cluster.apiserver.state import State
from shoal.cluster.apiserver.storage import Compacted, Page, Record, TooNew
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.cluster.apiserver.verbs.list_options import (
    EXACT,
    ListOptions,
    Position,
    continue_token,
    expired_token,
    read_token,
)
from shoal.cluster.apiserver.verbs.selection import selection
from shoal.kube.errors import Cause

_WAIT_FOR_VERSION = 3.0
_LONG_SELECTION = 500_000
"""The letters of a selector times the objects that it is put to, from which on a worker thread selects."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One page of a list."""

    records: list[Record]
    revision: int
    continues: str = ""
    remaining: int | None = None


async def get(state: State, asked: Asked, options: ListOptions) -> Record:
    """The object that the URL names."""
    await not_older(state, options.revision)
    record = state.store.get(asked.kind.storage, asked.namespace, asked.name)
    if record is None:
        raise not_found(asked.kind.resource, asked.kind.group, asked.name)
    return record


async def list_page(state: State, asked: Asked, options: ListOptions) -> Listed:
    """A page of the objects that are selected, all as they were at one version."""
    kind = asked.kind
    selected = selection(kind, options.labels, options.fields)
    limit = options.limit if options.limit > 0 else None
    position = read_token(options.continues) if options.continues else None
    at, after = None, None
    if position is not None:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        at, after = position.revision if position.revision > 0 else None, position.after
    else:
        revision = options.revision
        await not_older(state, revision)
        # An older version with a limit but no match is asked for exactly, as it was before matches could be told.
        if revision and (options.match == EXACT or (limit and not options.match)):
            at = revision
    takes_long = (len(options.labels) + len(options.fields)) * state.store.count(kind.storage) > _LONG_SELECTION
    selects = None if takes_long else selected.selects
    try:
        page = state.store.page(
            kind.storage,
            asked.namespace or None,
            at=at,
            after=after,
            limit=None if takes_long else limit,
            selects=selects,
        )
    except Compacted:
        if position is not None:
            raise expired_token(position) from None
        raise expired("The resourceVersion for the provided list is too old.") from None
    except TooNew:
        raise too_large(at or 0, state.store.revision) from None
    if takes_long and selected.selects is not None:
        chosen = partial(_chosen, page, selected.selects, limit)
        page = await asked.offload.run(asked.user.name, chosen) if asked.offload is not None else chosen()
    return Listed(
        records=page.records,
        revision=page.revision,
        continues=continue_token(Position(page.revision, page.next)) if page.next else "",
        remaining=page.remaining if page.next and selected.selects is None else None,
    )


def _chosen(everything: Page, selects: Callable[[Record], bool], limit: int | None) -> Page:
    """The records of a page that are selected, and no more of them than are asked for."""
    records = list(islice(filter(selects, everything.records), None if limit is None else limit + 1))
    if limit is None or len(records) <= limit:
        return Page(records, everything.revision)
    records.pop()
    return Page(records, everything.revision, (records[-1].namespace, records[-1].name))


async def not_older(state: State, revision: int | None) -> None:
    """Waits a moment for a version that is still to come."""
    if revision is None or revision <= state.store.revision:
        return
    if not await state.store.reached(revision, _WAIT_FOR_VERSION):
        raise too_large(revision, state.store.revision)


def too_large(revision: int, current: int) -> Refused:
    """504: a version that does not exist yet."""
    cause = Cause(reason="ResourceVersionTooLarge", message="Too large resource version")
    return timeout(
        f"Timeout: Too large resource version: {revision}, current: {current}", retry_after=1, causes=[cause]
    )
