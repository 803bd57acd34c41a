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


def test_where_shoal_is_imported_from_is_seen_also_where_containers_have_folders_of_their_own(tmp_path: Path) -> None:
    source = Path(shoal.__file__).resolve().parents[1]
    assert any(source.is_relative_to(prefix) for prefix in Interpreter.ours().prefixes)
    unseen = Interpreter(executable="/usr/bin/python3", prefixes=["/usr", "/tmp/clone/src"])
    binds = MachineRoot(Layout(tmp_path), unseen, [], has_namespaces=True).binds(tmp_path / "home")
    assert ("/tmp/clone/src", "/tmp/clone/src", True) in [(one.source, one.target, one.is_read_only) for one in binds]
