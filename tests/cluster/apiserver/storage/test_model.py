"""The store against a model: a dict for the state, and a copy of it for every revision."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.cluster.apiserver.storage import Changed, ChangeType, Compacted, Record, Store, Watcher
from tests.cluster.apiserver.storage.objects import an_object, decoded

Key = tuple[str, str]
State = dict[Key, tuple[int, str]]
"""Revision and colour of each object."""

KEYS = [(namespace, name) for namespace in ("team", "team-1", "x") for name in ("a", "a-b", "b")]
COLOURS = ["red", "blue"]

operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.sampled_from(COLOURS)),
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.sampled_from(COLOURS)),
        st.tuples(st.just("remove"), st.sampled_from(KEYS)),
        st.tuples(st.just("stale"), st.sampled_from(KEYS)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("watch"), st.sampled_from([None, "team", "x"]), st.sampled_from([None, "a"]), st.booleans()),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


def is_red(record: Record) -> bool:
    return record.labels["colour"] == "red"


@settings(max_examples=150, deadline=None)
@given(operations=operations, history=st.sampled_from([3, 1_000]), limit=st.integers(1, 4))
def test_the_store_agrees_with_a_dict(operations: list[tuple[str, ...]], history: int, limit: int) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            modelled = Modelled(Path(directory), history, limit)
            await modelled.open()
            for operation, *arguments in operations:
                await getattr(modelled, operation)(*arguments)
            await modelled.restart()

    asyncio.run(run())


class Modelled:
    """A store, and what should be in it."""

    store: Store

    def __init__(self, directory: Path, history: int, limit: int) -> None:
        self.directory = directory
        self.history = history
        self.limit = limit
        self.state: State = {}
        self.states: dict[int, State] = {1: {}}
        self.staged: list[asyncio.Future[Record]] = []
        self.watched: list[tuple[Watcher, Callable[[Key], bool], bool, State]] = []

    @property
    def revision(self) -> int:
        return max(self.states)

    async def open(self) -> None:
        self.store = await Store.open(self.directory, history=self.history, synchronous="OFF")
        self.opened_at = self.store.revision
        assert self.store.revision == self.revision

    async def put(self, key: Key, colour: str) -> None:
        namespace, name = key
        encode = an_object(name, namespace=namespace, labels={"colour": colour}, colour=colour)
        previous = self.store.latest("pods", namespace, name)
        assert (previous and previous.revision) == self.state.get(key, (None,))[0]
        self.staged.append(self.store.put("pods", namespace, name, encode, previous=previous))
        self.state = {**self.state, key: (self.revision + 1, colour)}
        self.states[self.revision + 1] = self.state

    async def remove(self, key: Key) -> None:
        if key not in self.state:
            return
        namespace, name = key
        previous = self.store.latest("pods", namespace, name)
        assert previous is not None
        colour = previous.labels["colour"]
        encode = an_object(name, namespace=namespace, labels={"colour": colour}, colour=colour)
        self.staged.append(self.store.remove("pods", namespace, name, encode, previous=previous))
        self.state = {each: value for each, value in self.state.items() if each != key}
        self.states[self.revision + 1] = self.state

    async def stale(self, key: Key) -> None:
        """A writer who has seen nothing, or something that has passed, is refused."""
        namespace, name = key
        latest = self.store.latest("pods", namespace, name)
        passed = Record(namespace, name, 1, b"", {}, {}, "") if latest is None else None
        with pytest.raises(Changed):
            self.store.put("pods", namespace, name, an_object(name), previous=passed)

    async def commit(self) -> None:
        records = await asyncio.gather(*self.staged)
        assert [record.revision for record in records] == sorted(record.revision for record in records)
        assert len(self.store.page("pods", None).records) == self.store.count("pods")
        self.staged.clear()
        self.check_pages()

    async def watch(self, namespace: str | None, name: str | None, selected: bool) -> None:
        since = self.store.revision
        watcher = self.store.watch("pods", namespace, since=since, name=name, selects=is_red if selected else None)

        def concerns(key: Key) -> bool:
            return namespace in (None, key[0]) and name in (None, key[1])

        self.watched.append((watcher, concerns, selected, self.states[since]))

    async def restart(self) -> None:
        await self.commit()
        for watcher, concerns, selected, before in self.watched:
            await self.check_replay(watcher, concerns, selected, before)
        self.watched.clear()
        await self.check_late_watch()
        await self.store.close()
        await self.open()
        assert shown(self.store.page("pods", None).records) == self.state

    async def check_replay(
        self, watcher: Watcher, concerns: Callable[[Key], bool], selected: bool, before: State
    ) -> None:
        """What a watcher was told, applied to what it knew, gives what is."""

        def seen(state: State) -> State:
            return {
                key: value for key, value in state.items() if concerns(key) and not (selected and value[1] != "red")
            }

        known = seen(before)
        watcher.end()
        last = 0
        for as_type, change in await watcher.changes():
            record = change.shown(as_type)
            key = (record.namespace, record.name)
            assert last < record.revision == int(decoded(record)["metadata"]["resourceVersion"])
            last = record.revision
            assert (key in known) == (as_type is not ChangeType.ADDED)
            if as_type is ChangeType.DELETED:
                del known[key]
            else:
                known[key] = (record.revision, record.labels["colour"])
            assert known == seen(self.states[record.revision])
        assert known == seen(self.state)

    async def check_late_watch(self) -> None:
        """A watch may begin at any revision that the history reaches, and catches up."""
        for since, state in self.states.items():
            try:
                watcher = self.store.watch("pods", None, since=since)
            except Compacted:
                assert since < self.revision - self.history or since < self.opened_at
                continue
            await self.check_replay(watcher, lambda _: True, False, state)

    def check_pages(self) -> None:
        for revision, state in self.states.items():
            for namespace in (None, "team"):
                expected = {key: value for key, value in state.items() if namespace in (None, key[0])}
                try:
                    found = self.all_pages(revision, namespace, len(expected))
                except Compacted:
                    assert revision < self.revision - self.history or revision < self.opened_at
                    continue
                assert shown(found) == expected
                order = [f"{record.namespace}/{record.name}" for record in found]
                assert order == sorted(order)

    def all_pages(self, revision: int, namespace: str | None, count: int) -> list[Record]:
        whole = self.store.page("pods", namespace, at=revision)
        assert whole.revision == revision
        found: list[Record] = []
        after = None
        while True:
            page = self.store.page("pods", namespace, at=revision, after=after, limit=self.limit)
            found += page.records
            after = page.next
            if after is None:
                assert found == whole.records
                return found
            assert page.remaining == count - len(found) > 0


def shown(records: list[Record]) -> State:
    return {(record.namespace, record.name): (record.revision, record.fields["colour"]) for record in records}
