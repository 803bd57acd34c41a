"""What an image stands for: the programs of the machine, or a root that was put together from a few folders."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.local_node.conftest import LocalNode
from tests.e2e.local_node.scenes import Scene

pytestmark = [pytest.mark.kube, pytest.mark.slow]

SCRIPT = """
python -c 'import sys; print("python", sys.version_info.major)'
python3 -c 'import json, ssl; print("modules")'
bash -c 'echo bash $((1 + 1))'
pip --version | cut -d ' ' -f 1
ls /
"""
SAID = ["python 3", "modules", "bash 2", "pip"]
LEFT_OUT = ("test", "site-packages", "config-*", "__pycache__", "idlelib", "lib2to3", "tkinter", "ensurepip")


@pytest.fixture(scope="module")
def image(local_node: LocalNode) -> Iterator[str]:
    """The name of an image whose root is a folder with little more than Python and a shell in it."""
    root = local_node.folder / "python-rootfs"
    python = make_root(root)
    images = local_node.shoal.data_dir / "images.yaml"
    before = images.read_text() if images.exists() else ""
    others = yaml.safe_load(before)["images"] if before else []
    entry = {"match": "scenario.example/python", "root": str(root), "env": {"PATH": f"{python.parent}:/bin"}}
    images.write_text(yaml.safe_dump({"images": [entry, *others]}))
    yield "scenario.example/python"
    images.write_text(before or "images: []\n")


def test_python_pip_and_bash_are_found_among_the_programs_of_the_machine(scene: Scene) -> None:
    said = said_by(scene, "busybox")
    assert said[:4] == SAID
    assert {"bin", "usr", "tmp"} <= set(said[4:])


def test_python_pip_and_bash_are_found_in_a_root_of_a_few_folders(scene: Scene, image: str) -> None:
    said = said_by(scene, image)
    assert said[:4] == SAID
    assert "about" in said[4:]
    assert "home" not in said[4:]


def said_by(scene: Scene, image: str) -> list[str]:
    scene.kubectl("run", "it", f"--image={image}", "--restart=Never", "--command", "--", "bash", "-ec", SCRIPT)
    scene.until("jsonpath={.status.phase}=Succeeded", "pod/it")
    return scene.kubectl("logs", "it").splitlines()


def make_root(root: Path) -> Path:
    """Puts a root together: this interpreter at its own place, with its library and pip, and a few programs."""
    python = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, inside(root, library), ignore=shutil.ignore_patterns(*LEFT_OUT))
    pip = importlib.util.find_spec("pip")
    assert pip is not None
    assert pip.origin is not None
    shutil.copytree(Path(pip.origin).parent, inside(root, library) / "site-packages" / "pip")
    programs = [Path(found) for name in ("bash", "cut", "ls", "sh") if (found := shutil.which(name))]
    linked = [python, *programs, *(library / "lib-dynload").glob("*.so")]
    for file in (python, *needed_by(linked)):
        place = inside(root, file)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    (root / "about").write_text("a root of a few folders\n")
    (root / "bin").mkdir(exist_ok=True)
    for program in programs:
        shutil.copy(program, root / "bin")
    for name in ("python", "python3"):
        if not (place := inside(root, python.with_name(name))).exists():
            place.symlink_to(python.name)
    script = inside(root, python.with_name("pip"))
    script.write_text(f"#!{python}\nfrom pip._internal.cli.main import main\n\nmain()\n")
    script.chmod(0o755)
    for folder in inside(root, python).parents:
        if folder.is_relative_to(root):
            folder.chmod(0o755)
    return python


def needed_by(programs: Iterable[Path]) -> list[Path]:
    """The libraries that some programs are linked with."""
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return [Path(found) for found in sorted(set(re.findall(r"(/\S+) \(0x", told)))]


def inside(root: Path, path: Path) -> Path:
    return root / str(path).lstrip("/")
