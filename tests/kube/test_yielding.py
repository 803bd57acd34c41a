"""What a manager counts as load: all that somebody waits for, and nothing of those who yield to it."""

from __future__ import annotations

import pytest

from shoal.api.meta import PartialObject, Resource
from shoal.kube import Controller, Key, Manager
from shoal.kube.calm import BUSY
from tests.support.network.scripted import ScriptedTransport

BOOKS = Resource(type=PartialObject, group="library.example", version="v1", kind="Book", plural="books")


def a_manager(*controllers: Controller) -> Manager:
    manager = Manager(ScriptedTransport.of(), name="library")
    for controller in controllers:
        manager.add(controller)
    return manager


def a_controller(name: str, *, yields: bool) -> Controller:
    async def reconcile(key: Key) -> None:
        return None

    return Controller(name, BOOKS, reconcile, yields=yields)


@pytest.mark.parametrize(
    ("waited_for", "yielding", "requests", "is_calm"),
    [
        pytest.param(0, 0, 0, True, id="nothing is to be done"),
        pytest.param(BUSY - 1, 0, 0, True, id="little is"),
        pytest.param(BUSY, 0, 0, False, id="much is"),
        pytest.param(0, 10 * BUSY, 0, True, id="those who yield do not wait for each other"),
        pytest.param(0, 0, BUSY, False, id="many requests are under way"),
        pytest.param(BUSY // 2, 10 * BUSY, BUSY - BUSY // 2, False, id="both together are much"),
        pytest.param(BUSY // 2 - 1, 10 * BUSY, BUSY - BUSY // 2, True, id="both together are little"),
    ],
)
async def test_it_is_calm_while_others_have_little_to_do(
    waited_for: int, yielding: int, requests: int, is_calm: bool
) -> None:
    plain, second, modest = (
        a_controller("plain", yields=False),
        a_controller("second", yields=False),
        a_controller("modest", yields=True),
    )
    manager = a_manager(plain, second, modest)
    for number in range(waited_for):
        (plain if number % 2 else second).enqueue(Key("default", f"book-{number}"))
    for number in range(yielding):
        modest.enqueue(Key("default", f"book-{number}"))
    manager.client.under_way = requests
    assert manager.calm.is_calm is is_calm


async def test_a_manager_is_idle_when_none_of_its_controllers_has_anything_to_come() -> None:
    first, second = a_controller("first", yields=False), a_controller("second", yields=True)
    manager = a_manager(first, second)
    assert manager.is_idle
    second.queue.add_after(Key("default", "book"), 3600)
    assert not manager.is_idle
    second.queue.close()
    assert manager.is_idle
