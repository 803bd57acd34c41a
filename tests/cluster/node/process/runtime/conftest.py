from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import ContainerSpec
from tests.support.node.runtime_client import Client, connect
from tests.support.node.runtime_program import Program, a_container, a_folder, a_runtime, a_sandbox, in_a_node
from tests.support.programs.ordinary_user import is_root

InNode = Callable[[Callable[[Node], object]], None]
Pod = Callable[..., ContainerSpec]
"""Makes containers of a pod whose sandbox is open."""


@pytest.fixture(params=["root", "ordinary"])
def is_ordinary(request: pytest.FixtureRequest) -> bool:
    """Whether an ordinary user starts the runtime: both are tried where tests run as root."""
    if request.param == "root" and not is_root():
        pytest.skip("only root can start the runtime as root")
    return bool(request.param == "ordinary")


@pytest.fixture
def folder(is_ordinary: bool) -> Iterator[Path]:
    with a_folder(is_ordinary=is_ordinary) as made:
        yield made


@pytest.fixture
def runtime(folder: Path, is_ordinary: bool) -> Iterator[Program]:
    """The real program, serving."""
    with a_runtime(folder, is_ordinary=is_ordinary) as program:
        yield program


@pytest.fixture
def in_node(folder: Path, is_ordinary: bool) -> InNode:
    """Does something in a node, in a process of its own."""

    def act(action: Callable[[Node], object]) -> None:
        in_a_node(folder, action, is_ordinary=is_ordinary)

    return act


@pytest.fixture
async def client(runtime: Program) -> AsyncIterator[Client]:
    """A client of the real program."""
    made = await connect(runtime.socket)
    yield made
    await made.runtime.aclose()


@pytest.fixture
async def pod(client: Client, folder: Path) -> Pod:
    """A pod of the real program."""
    await client.runtime.open(a_sandbox())
    return partial(a_container, folder)
