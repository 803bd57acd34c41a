"""Which backends there are: our own, and those that other packages bring by real entry points."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shoal.gangs.backends import Backends
from shoal.gangs.backends.kai import Kai
from tests.gangs.backends.builders import a_gang

MEANT = [
    ("", "default"),
    ("default-scheduler", "default"),
    ("kai-scheduler", "kai"),
    ("grove-scheduler", "kai"),
    ("koord-scheduler", "koordinator"),
    ("volcano", "volcano"),
    ("nobody-knows", "kai"),
]


@pytest.mark.parametrize(("scheduler", "label"), MEANT)
def test_the_label_comes_from_the_schedulers_name(scheduler: str, label: str) -> None:
    assert Backends.load().label(scheduler) == label


def test_a_gang_is_served_by_the_backend_that_its_label_names() -> None:
    backends = Backends.load()
    assert isinstance(backends.of(a_gang(backend="kai")), Kai)
    assert backends.of(a_gang(backend="nobody")) is None


BACKEND = """
from shoal.gangs.backends import Backend

class {name}(Backend):
    name = "{label}"
    scheduler_names = frozenset({{"{scheduler}"}})
    kinds = ()

    def translate(self, gang, owner, served):
        return []
"""


class Package:
    """A package that somebody installed, with backends in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, module: str, source: str, **entries: str) -> None:
        (self._folder / f"{module}.py").write_text(source)
        facts = self._folder / f"{module}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [f"{name} = {module}:{value}" for name, value in entries.items()]
        (facts / "entry_points.txt").write_text("\n".join(["[shoal.gangs.backends]", *lines, ""]))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Package(tmp_path)


def test_a_third_party_brings_a_backend_by_an_entry_point(package: Package) -> None:
    package.has("good_one", BACKEND.format(name="Good", label="good", scheduler="good-scheduler"), good="Good")
    backends = Backends.load()
    assert backends.label("good-scheduler") == "good"
    assert [backend.name for backend in backends] == ["kai", "default", "koordinator", "volcano", "good"]


def test_a_backend_may_also_be_brought_ready_made(package: Package) -> None:
    source = BACKEND.format(name="Made", label="made", scheduler="made-scheduler") + "\nREADY = Made()\n"
    package.has("ready_made", source, made="READY")
    assert Backends.load().label("made-scheduler") == "made"


def test_backends_that_do_not_load_are_named_and_stop_nobody(package: Package) -> None:
    package.has("absent_name", "", absent="Nobody")
    package.has("broken_import", "import no_such_module_anywhere\n", broken="Broken")
    half = "from shoal.gangs.backends import Backend\nclass Half(Backend):\n    name = 'half'\n"
    package.has("half_done", half, half="Half")
    package.has("something_else", "class Other:\n    name = 'other'\n", other="Other")
    package.has("works", BACKEND.format(name="Works", label="works", scheduler="works-scheduler"), works="Works")
    with capture_logs() as logs:
        backends = Backends.load()
    assert [backend.name for backend in backends][4:] == ["works"]
    assert {entry["entry_point"]: entry["event"] for entry in logs} == {
        "absent_name:Nobody": "backend left out: it does not load",
        "broken_import:Broken": "backend left out: it does not load",
        "half_done:Half": "backend left out: it does not load",
        "something_else:Other": "backend left out: it is none",
    }
    [other] = [entry for entry in logs if entry["entry_point"] == "something_else:Other"]
    assert {"kinds", "scheduler_names", "translate"} <= set(other["missing"])


def test_our_own_backend_wins_over_another_of_its_name(package: Package) -> None:
    package.has("a_taker", BACKEND.format(name="Taker", label="kai", scheduler="taken-scheduler"), taker="Taker")
    package.has("b_first", BACKEND.format(name="First", label="twice", scheduler="first-scheduler"), a="First")
    package.has("c_second", BACKEND.format(name="Second", label="twice", scheduler="second-scheduler"), b="Second")
    with capture_logs() as logs:
        backends = Backends.load()
    assert isinstance(backends.of(a_gang(backend="kai")), Kai)
    assert backends.label("first-scheduler") == "twice"
    assert backends.label("second-scheduler") == "kai"  # as if nobody knew it
    assert [(entry["backend"], entry["entry_point"], entry["by"]) for entry in logs] == [
        ("twice", "c_second:Second", "was loaded before"),
        ("kai", "a_taker:Taker", "comes with Shoal"),
    ]


def test_nobody_takes_a_schedulers_name_from_ours(package: Package) -> None:
    package.has("name_taker", BACKEND.format(name="Taker", label="taker", scheduler="kai-scheduler"), taker="Taker")
    assert Backends.load().label("kai-scheduler") == "kai"
