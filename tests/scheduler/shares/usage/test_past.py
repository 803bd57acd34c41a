"""What a running scheduler knows of the past, and how it outlives the scheduler."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog

from shoal.scheduler.model.amounts import NONE
from shoal.scheduler.shares.tree import QueueTree
from shoal.scheduler.shares.usage import PastUse, UsageSettings, past_use
from shoal.scheduler.shares.usage.settings import PROMETHEUS
from shoal.scheduler.shares.usage.store import UsageStore
from shoal.scheduler.shares.usage.windows import Sliding
from tests.scheduler.builders import a_model_queue
from tests.scheduler.shares.builders import a_tree, gpus
from tests.scheduler.shares.usage.test_prometheus import a_server, figures
from tests.support.clusters.client import until

HOUR = 3600.0
NOW = 1_700_000_000.0
TOTAL = gpus(10)


def a_cluster(**held: float) -> QueueTree:
    """Two queues of equal weight below a third, of which each holds so many GPUs and asks for all there are."""
    tree = a_tree(a_model_queue("top", weight=gpus(1)), *(a_model_queue(name, "top", weight=gpus(1)) for name in "ab"))
    for name in "ab":
        tree.ask(name, gpus(10))
        tree.take(name, gpus(held.get(name, 0.0)), is_preemptible=True)
    return tree


def used(tree: QueueTree) -> dict[str, float]:
    return {share.name: round(share.queue.usage.gpu, 3) for share in tree}


def shares_after(past: PastUse, now: float) -> dict[str, float]:
    """What both get of the cluster, if they hold nothing and ask for everything."""
    tree = a_cluster()
    past.tell(now, tree, TOTAL)
    tree.divide(TOTAL, k=1.0)
    return {name: tree[name].fair_share.gpu for name in "ab"}


def own_memory(directory: Path | None = None, *, interval: float = 60.0) -> PastUse:
    settings = UsageSettings(directory=directory, fetch_interval=interval, staleness=HOUR, window=Sliding(24 * HOUR))
    return past_use(settings, wake=lambda: None)


def lived(past: PastUse, hours: int, **held: float) -> float:
    """Lets queues hold something for so long, from NOW on; says when it is then."""
    for hour in range(hours + 1):
        past.tell(NOW + hour * HOUR, a_cluster(**held), TOTAL)
    return NOW + hours * HOUR


def test_who_used_much_gets_less_of_what_both_want() -> None:
    assert shares_after(own_memory(), NOW) == {"a": 5, "b": 5}
    past = own_memory()

    now = lived(past, 6, a=10)

    tree = a_cluster(a=10)
    past.tell(now, tree, TOTAL)
    assert used(tree) == {"top": 1.0, "a": 1.0, "b": 0.0}
    assert shares_after(past, now + 1) == {"a": 0, "b": 10}


def test_half_of_the_past_is_half_of_the_use() -> None:
    past = own_memory()
    now = lived(past, 6, a=4, b=2)
    tree = a_cluster()
    past.tell(now, tree, TOTAL)
    assert used(tree) == {"top": 0.6, "a": 0.4, "b": 0.2}


def test_a_queue_learns_of_it_anew_when_the_tree_is_another() -> None:
    past = own_memory()
    now = lived(past, 6, a=10)
    tree = a_tree(a_model_queue("a", weight=gpus(1)), a_model_queue("c", weight=gpus(1)))
    past.tell(now, tree, TOTAL)
    assert used(tree) == {"a": 1.0, "c": 0.0}


async def test_the_past_outlives_the_scheduler_where_it_has_a_directory(tmp_path: Path) -> None:
    first = own_memory(tmp_path / "usage")
    now = lived(first, 6, a=10)
    running = asyncio.create_task(first.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert [file.name for file in (tmp_path / "usage").iterdir()] == ["usage.json"]
    assert shares_after(own_memory(tmp_path / "usage"), now + 1) == {"a": 0, "b": 10}
    assert shares_after(own_memory(), now + 1) == {"a": 5, "b": 5}


async def test_it_is_kept_every_so_often_too_and_a_cycle_is_asked_for(tmp_path: Path) -> None:
    woken: list[bool] = []
    settings = UsageSettings(directory=tmp_path, fetch_interval=0.01, staleness=HOUR)
    past = past_use(settings, name="pool", wake=lambda: woken.append(True))
    lived(past, 2, a=10)
    running = asyncio.create_task(past.run())
    try:

        async def is_kept() -> bool:
            return bool(woken) and (tmp_path / "usage-pool.json").exists()

        await until(is_kept)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_a_file_that_cannot_be_read_is_told_and_done_without(tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text("{")
    with structlog.testing.capture_logs() as logs:
        assert shares_after(own_memory(tmp_path), NOW) == {"a": 5, "b": 5}
    assert [(one["event"], one["file"]) for one in logs] == [
        ("past use of queues is not taken up", str(tmp_path / "usage.json"))
    ]


def test_a_directory_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = UsageStore(tmp_path / "file", "usage")
    with structlog.testing.capture_logs() as logs:
        store.save(b"{}")
        store.save(b"{}")
    assert [one["event"] for one in logs] == ["past use of queues is not kept"]


async def test_a_server_is_asked_before_the_first_cycle_and_never_by_one() -> None:
    answers: list[float] = []
    async with a_server(figures) as (address, asked):
        settings = UsageSettings(client_type=PROMETHEUS, address=address, fetch_interval=HOUR)
        past = past_use(settings, wake=lambda: None, on_answer=answers.append, clock=lambda: NOW)
        running = asyncio.create_task(past.run())
        try:
            await past.known()
            questions = len(asked)
            tree = a_cluster()
            past.tell(NOW + 10, tree, TOTAL)
            assert used(tree) == {"top": 0.0, "a": 0.4, "b": 0.0}
            assert len(asked) == questions == 6
            assert len(answers) == 1
            past.tell(NOW + 2 * HOUR, tree, TOTAL)
            assert used(tree) == dict.fromkeys(("top", "a", "b"), 0.0), "too old to count"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_server_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    settings = UsageSettings(client_type=PROMETHEUS, address="http://127.0.0.1:9", wait_timeout=0.05)
    past = past_use(settings, wake=lambda: None)
    with structlog.testing.capture_logs() as logs:
        await past.known()
    assert [one["event"] for one in logs] == ["scheduling begins without past use of queues"]
    tree = a_cluster()
    past.tell(NOW, tree, TOTAL)
    assert tree["a"].queue.usage == NONE


@pytest.mark.parametrize("interval", [60.0, 600.0])
def test_what_is_told_is_counted_anew_once_in_a_while(interval: float) -> None:
    past = own_memory(interval=interval)
    now = lived(past, 1, a=10)
    past.tell(now + 1, a_cluster(), TOTAL)
    tree = a_cluster(b=10)
    past.tell(now + 300, tree, TOTAL)
    assert used(tree)["a"] == (1.0 if interval > 300 else pytest.approx(3601 / 3900, abs=0.001))
