"""What the outcome of a test file can depend on, found by reading, without running anything.

That is every module which the file imports, directly or by others, the fixtures that it names, the data beside it, the
documents whose names it mentions, the pinned requirements, and whether upstream's corpus is there. The search errs on
the side of too much: a string that names a module counts as an import of it.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from tests.support.programs.kube_binaries import cache_root

SOURCES = {"shoal": "src/shoal", "tests": "tests", "bench": "bench", "examples": "examples"}
PLUGINS = "tests/support/clusters"
"""The fixtures of these modules can be named anywhere."""
ALWAYS = ("pyproject.toml", "requirements/dev.txt", ".ci/make-venv", "tests/conftest.py")
REAL_PARTS = ("tests/support/programs/go", "requirements")
"""What pins the programs that tests install or build."""
PROGRAM = "shoal"
"""The command: a file that names it and runs programs may run all of it."""
LONGEST_PATH = 200
NOT_READ = frozenset({"src", "tests", "requirements", "build", "dist"})
"""Folders at the top whose names are words like others: found by imports, or made by running."""


class Facts(msgspec.Struct, frozen=True):
    """What one Python file says."""

    modules: frozenset[str]
    """Dotted names of ours that it imports, or that a string of it spells."""
    mentions: frozenset[str]
    """Files and folders at the top of the checkout that a string of it begins with."""
    runs_program: bool
    """Whether it may run the command ``shoal``."""
    requested: frozenset[str]
    """Fixtures that its tests and fixtures ask for."""
    fixtures: frozenset[str]
    """Fixtures that it defines."""
    marks: frozenset[str]
    """Marks of pytest that it mentions."""
    loads_by_name: bool
    """Whether it imports modules that it does not spell out."""


class Tree:
    """A checkout; what was read of it once is not read again."""

    def __init__(self, root: Path, memory: Path | None = None) -> None:
        """``memory`` is a file that remembers what files say, by their content: reading takes seconds."""
        self.root = root
        self._memory = memory or cache_root() / "passed" / "facts.json"
        self._known: dict[str, Facts] = {}
        self._used: dict[str, Facts] = {}
        with suppress(OSError, msgspec.MsgspecError):
            self._known = msgspec.json.decode(self._memory.read_bytes(), type=dict[str, Facts])

    @cache  # noqa: B019 # a tree lives as long as the program
    def facts(self, file: str) -> Facts:
        """What a Python file says."""
        content = hashlib.sha256(repr((self._content(file), sorted(self._at_top))).encode()).hexdigest()
        if content not in self._known:
            self._known[content] = read(ast.parse((self.root / file).read_bytes()), self._at_top)
        self._used[content] = self._known[content]
        return self._known[content]

    def remember(self) -> None:
        """Keeps what was read for the next time."""
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._memory.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(self._used))
        unfinished.replace(self._memory)

    @cached_property
    def _at_top(self) -> frozenset[str]:
        names = {path.name for path in self.root.iterdir() if not path.name.startswith(".")} | {".ci"}
        return frozenset(names - NOT_READ)

    def test_files(self) -> list[str]:
        """All files with tests, sorted."""
        return sorted(str(path.relative_to(self.root)) for path in (self.root / "tests").rglob("test_*.py"))

    @cache  # noqa: B019
    def closure(self, file: str) -> frozenset[str]:
        """Every Python file that this one needs, itself and the conftests above it included."""
        found: set[str] = set()
        waiting = [file, *self._conftests(file)]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self._direct(one))
        return frozenset(found)

    def inputs(self, file: str) -> list[str]:
        """Every file that the outcome of a test file can depend on."""
        closure = self.closure(file)
        found = {*closure, *(one for one in ALWAYS if (self.root / one).exists()), *self._data(SOURCES["shoal"])}
        found.update(self._data(str(Path(file).parent)))
        for one in closure:
            if one.startswith("tests/"):
                found.update(path for name in self.facts(one).mentions for path in self._all(name))
        if any(one.startswith(f"{PLUGINS}/real") or "/programs/" in one for one in closure):
            found.update(path for folder in REAL_PARTS for path in self._all(folder))
        return sorted(found)

    def digest(self, file: str) -> str:
        """A fingerprint of all that the outcome of a test file can depend on, on this machine."""
        digest = hashlib.sha256()
        machine = (platform.python_version(), platform.machine(), os.geteuid(), self._corpus())
        digest.update(repr(machine).encode())
        for path in self.inputs(file):
            digest.update(path.encode() + b"\0" + self._content(path))
        return digest.hexdigest()

    @cache  # noqa: B019
    def _content(self, path: str) -> bytes:
        return hashlib.sha256((self.root / path).read_bytes()).digest()

    @cache  # noqa: B019
    def _corpus(self) -> bool:
        return (self.root.parent / "shared" / "corpus").exists()

    @cache  # noqa: B019
    def _direct(self, file: str) -> frozenset[str]:
        facts = self.facts(file)
        found = {path for module in facts.modules for path in self._files_of(module)}
        if file.startswith("tests/"):
            found.update(path for name in facts.requested & self._fixtures.keys() for path in self._fixtures[name])
            if facts.runs_program:
                found.update(self._files_of("shoal.__main__"))
        if facts.loads_by_name:
            found.update(path for path in self._all(str(Path(file).parent)) if path.endswith(".py"))
        return frozenset(found - {file})

    @cached_property
    def _fixtures(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in self._all(PLUGINS):
            if file.endswith(".py"):
                for name in self.facts(file).fixtures:
                    found.setdefault(name, []).append(file)
        return found

    @cache  # noqa: B019
    def _files_of(self, module: str) -> tuple[str, ...]:
        """The file of a module, and the packages around it; nothing for a name that is none of ours."""
        top, *parts = module.split(".")
        if top not in SOURCES:
            return ()
        folder = Path(SOURCES[top])
        found: list[str] = []
        for part in [None, *parts]:
            folder = folder / part if part else folder
            if (self.root / folder / "__init__.py").is_file():
                found.append(str(folder / "__init__.py"))
            elif (self.root / folder.with_suffix(".py")).is_file():
                return (*found, str(folder.with_suffix(".py")))
        return tuple(found)

    def _conftests(self, file: str) -> Iterator[str]:
        for folder in Path(file).parents:
            if (self.root / folder / "conftest.py").is_file() and folder != Path("tests"):
                yield str(folder / "conftest.py")

    @cache  # noqa: B019
    def _data(self, folder: str) -> tuple[str, ...]:
        return tuple(path for path in self._all(folder) if not path.endswith(".py"))

    @cache  # noqa: B019
    def _all(self, name: str) -> tuple[str, ...]:
        """All files below a folder, or the file itself."""
        start = self.root / name
        if start.is_file():
            return (name,)
        found = []
        for folder, folders, files in os.walk(start):
            folders[:] = [one for one in folders if one != "__pycache__" and not one.startswith(".")]
            found += [str((Path(folder) / one).relative_to(self.root)) for one in files]
        return tuple(sorted(found))


def read(tree: ast.Module, at_top: frozenset[str] = frozenset()) -> Facts:
    """What a parsed file says; ``at_top`` are the names at the top of the checkout."""
    nodes: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in _TOLD_BY}
    for node in ast.walk(tree):
        if (kind := type(node)) in nodes:
            nodes[kind].append(node)
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = [
        *_of(nodes, ast.FunctionDef),
        *_of(nodes, ast.AsyncFunctionDef),
    ]
    fixtures = [one for one in functions if any("fixture" in ast.unparse(how) for how in one.decorator_list)]
    tests = [one for one in functions if one.name.startswith("test")]
    strings = [one.value for one in _of(nodes, ast.Constant) if isinstance(one.value, str)]
    attributes = _of(nodes, ast.Attribute)
    calls = [one for one in _of(nodes, ast.Call) if isinstance(one.func, ast.Attribute)]
    named = [one.args for one in calls if one.func.attr in ("usefixtures", "getfixturevalue")]  # type: ignore[attr-defined]
    imported = [
        name
        for one in _of(nodes, ast.ImportFrom)
        if one.module
        for name in (one.module, *(f"{one.module}.{part.name}" for part in one.names))
    ]
    plain = [part.name for one in _of(nodes, ast.Import) for part in one.names]
    spelled = [text.split(":")[0] for text in strings if _spells_a_module(text)]
    return Facts(
        modules=frozenset(name for name in (*imported, *plain, *spelled) if name.split(".")[0] in SOURCES),
        mentions=frozenset(text.split("/", 1)[0] for text in strings if len(text) < LONGEST_PATH) & at_top,
        runs_program=PROGRAM in strings and "subprocess" in plain,
        requested=frozenset(
            [
                *(given.arg for one in (*fixtures, *tests) for given in (*one.args.args, *one.args.kwonlyargs)),
                *(str(text.value) for given in named for text in given if isinstance(text, ast.Constant)),
            ]
        ),
        fixtures=frozenset(one.name for one in fixtures),
        marks=frozenset(one.attr for one in attributes if getattr(one.value, "attr", "") == "mark"),
        loads_by_name=any(name.endswith((".import_module", ".walk_packages", ".iter_modules")) for name in imported)
        or any(one.attr in ("import_module", "walk_packages", "iter_modules") for one in attributes),
    )


_TOLD_BY = (
    ast.Import,
    ast.ImportFrom,
    ast.Constant,
    ast.Attribute,
    ast.Call,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
)
N = TypeVar("N", bound=ast.AST)


def _of(nodes: dict[type[ast.AST], list[ast.AST]], kind: type[N]) -> list[N]:
    return nodes[kind]  # type: ignore[return-value] # they were sorted by it


def _spells_a_module(text: str) -> bool:
    top, dot, rest = text.partition(".")
    return top in SOURCES and bool(dot) and rest.replace(".", "").replace("_", "").replace(":", "").isalnum()


def changed(tree: Tree, files: Iterable[str], passed: dict[str, str]) -> list[str]:
    """The test files whose inputs are not what they were when they passed."""
    return [file for file in files if passed.get(file) != tree.digest(file)]
