"""What a test file depends on is found, so that no change that matters is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.suites.inputs import Tree, changed

FILES = {
    "pyproject.toml": "",
    "requirements/dev.txt": "pytest==1",
    "docs/queues.md": "# Queues",
    "src/shoal/__init__.py": "",
    "src/shoal/__main__.py": "from shoal.cli import main",
    "src/shoal/cli.py": "def main():\n    from shoal.rules import late",
    "src/shoal/rules/__init__.py": "",
    "src/shoal/rules/early.py": "from shoal.rules import base",
    "src/shoal/rules/late.py": "",
    "src/shoal/rules/base.py": "",
    "src/shoal/rules/table.json": "{}",
    "tests/conftest.py": "",
    "tests/support/clusters/embedded.py": (
        "import pytest\nimport subprocess\n@pytest.fixture\ndef server():\n    subprocess.run(['shoal'])"
    ),
    "tests/support/clusters/real.py": "import pytest\n@pytest.fixture\ndef binaries(): ...",
    "tests/support/programs/go/go.mod": "kubernetes v1",
    "tests/rules/conftest.py": "from shoal.rules import early",
    "tests/rules/test_alone.py": "def test_it(): ...",
    "tests/rules/cases.yaml": "[]",
    "tests/lists/test_late.py": "def test_it():\n    import shoal.rules.late",
    "tests/lists/test_spelled.py": "PLUGIN = 'shoal.rules.late:Plugin'",
    "tests/named/test_by_name.py": "from importlib import import_module",
    "tests/lists/test_server.py": "def test_it(server): ...",
    "tests/lists/test_kube.py": "import pytest\n@pytest.mark.usefixtures('binaries')\ndef test_it(): ...",
    "tests/lists/test_page.py": "PAGE = 'docs/queues.md'",
    "tests/named/stories.py": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "clone" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "clone"


def fingerprints(root: Path) -> dict[str, str]:
    tree = Tree(root, root.parent / "facts.json")
    found = {file: tree.digest(file) for file in tree.test_files()}
    tree.remember()
    return found


@pytest.mark.parametrize(
    ("file", "concerns"),
    [
        pytest.param("tests/lists/test_late.py", {"tests/lists/test_late.py"}, id="the test file"),
        pytest.param("src/shoal/rules/base.py", {"tests/rules/test_alone.py"}, id="by a conftest, and another module"),
        pytest.param(
            "src/shoal/rules/late.py",
            {"tests/lists/test_late.py", "tests/lists/test_spelled.py", "tests/lists/test_server.py"},
            id="in a function, by a string, by the command",
        ),
        pytest.param("src/shoal/cli.py", {"tests/lists/test_server.py"}, id="by a fixture that runs the command"),
        pytest.param("tests/support/programs/go/go.mod", {"tests/lists/test_kube.py"}, id="the pins of real programs"),
        pytest.param("tests/rules/cases.yaml", {"tests/rules/test_alone.py"}, id="data beside the test"),
        pytest.param("docs/queues.md", {"tests/lists/test_page.py"}, id="a document that it names"),
        pytest.param("tests/named/stories.py", {"tests/named/test_by_name.py"}, id="modules imported by name"),
        pytest.param("requirements/dev.txt", {"all"}, id="the pinned requirements"),
        pytest.param("src/shoal/rules/table.json", {"all"}, id="data of the package"),
    ],
)
def test_a_change_concerns_the_tests_that_depend_on_it_and_no_others(root: Path, file: str, concerns: set[str]) -> None:
    before = fingerprints(root)
    (root / file).write_text(FILES[file] + "\n# changed" if file.endswith(".py") else "changed")
    after = Tree(root, root.parent / "facts.json")
    expected = set(before) if concerns == {"all"} else concerns
    assert set(changed(after, before, before)) == expected


def test_nothing_changes_where_nothing_was_touched(root: Path) -> None:
    before = fingerprints(root)
    tree = Tree(root, root.parent / "facts.json")
    assert changed(tree, tree.test_files(), before) == []


def test_a_new_file_is_due(root: Path) -> None:
    before = fingerprints(root)
    (root / "tests/rules/test_new.py").write_text("")
    tree = Tree(root, root.parent / "facts.json")
    assert changed(tree, tree.test_files(), before) == ["tests/rules/test_new.py"]


def test_a_memory_that_cannot_be_read_is_made_anew(root: Path) -> None:
    before = fingerprints(root)
    (root.parent / "facts.json").write_text("{")
    assert fingerprints(root) == before
