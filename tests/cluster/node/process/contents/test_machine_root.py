"""What of Shoal itself containers find in the machine's root."""

from __future__ import annotations

import subprocess
from pathlib import Path

import shoal
from shoal.cluster.node.process.contents.machine_root import Interpreter, MachineRoot
from shoal.cluster.node.process.layout import Layout


def test_the_program_that_waits_is_found_at_the_end_of_the_path_wherever_shoal_lies(tmp_path: Path) -> None:
    machine = MachineRoot(Layout(tmp_path), Interpreter.ours(), [], has_namespaces=False)
    machine.prepare()
    folder = machine.path().split(":")[-1]
    done = subprocess.run(
        [f"{folder}/grove-initc", "--help"], capture_output=True, text=True, cwd="/", env={}, check=False, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: grove-initc")


def test_where_shoal_is_imported_from_is_shown() -> None:
    source = Path(shoal.__file__).resolve().parents[1]
    assert any(source.is_relative_to(file) for file in Interpreter.ours().files)
