"""What the runtime is told: command lines, PATH, home, binds, GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.node.process.contents import ConfigProblem, NodeFacts
from shoal.cluster.node.process.contents.accounts import Account, account_in
from shoal.cluster.node.process.contents.gpus import gpu_devices, gpu_variables
from shoal.cluster.node.process.contents.images import PAUSE, Image
from shoal.cluster.node.process.contents.machine_root import HOME, PROGRAMS, Interpreter, MachineRoot
from shoal.cluster.node.process.contents.specs import Recipe, container_spec, exec_spec
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.runtime.protocol import Bind, ContainerSpec, Ids
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.contents.conftest import a_container

STANDARD = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Build:
    """Makes specs on a machine whose Python lies in an environment of its own."""

    def __init__(self, folder: Path, interpreter: Interpreter) -> None:
        self.layout = Layout(folder / "data")
        self.home = folder / "home"
        self.home.mkdir()
        self.interpreter = interpreter

    def __call__(
        self,
        container: dict[str, Any] | None = None,
        *,
        image: Image = Image(name="app"),
        facts: NodeFacts = NodeFacts(),
        pod: dict[str, Any] | None = None,
        variables: dict[str, str] | None = None,
        binds: list[Bind] | None = None,
        gpus: tuple[str, ...] = (),
    ) -> ContainerSpec:
        machine = MachineRoot(self.layout, self.interpreter, [self.home], has_namespaces=facts.has_namespaces)
        recipe = Recipe(
            id="0" * 64,
            pod=a_local_pod(**(pod or {})),
            container=a_container(**{"command": ["run"], **(container or {})}),
            attempt=2,
            image=image,
            hostname="web",
            variables=variables or {},
            binds=binds or [],
            gpus=gpus,
        )
        accounts = {1000: Account(100, "/home/alice"), 0: Account(0, "/root")}
        return container_spec(recipe, self.layout, facts, machine, account=lambda root, user: accounts.get(user))


@pytest.fixture
def build(tmp_path: Path, interpreter: Interpreter) -> Build:
    return Build(tmp_path, interpreter)


def variables(spec: ContainerSpec) -> dict[str, str]:
    return dict(variable.split("=", 1) for variable in spec.env)


def targets(spec: ContainerSpec) -> dict[str, str]:
    return {bind.target: bind.source for bind in spec.binds}


SERVER = Image(name="app", entrypoint=["serve"], command=["--all"])


@pytest.mark.parametrize(
    ("container", "image", "expected"),
    [
        ({"command": [], "args": []}, SERVER, ["serve", "--all"]),
        ({"command": [], "args": ["--one"]}, SERVER, ["serve", "--one"]),
        ({"command": ["sh"], "args": []}, SERVER, ["sh"]),
        ({"command": ["sh", "-c"], "args": ["echo $(A)"]}, SERVER, ["sh", "-c", "echo 1"]),
        ({"command": [], "args": ["sleep", "5"]}, Image(name="busybox", command=["sh"]), ["sleep", "5"]),
    ],
)
def test_the_pod_says_what_runs_and_the_image_where_it_does_not(
    build: Build, container: dict[str, Any], image: Image, expected: list[str]
) -> None:
    assert build(container, image=image, variables={"A": "1"}).argv == expected


def test_without_any_command_it_is_said_where_to_write_one(build: Build) -> None:
    with pytest.raises(ConfigProblem) as caught:
        build({"command": []}, image=Image(name="example.com/app:1"))
    assert caught.value.reason == "CreateContainerError"
    assert caught.value.message == (
        'no command specified: give container "main" a command, or write one for the image "example.com/app:1" in '
        f"{build.layout.images}"
    )


def test_on_the_machines_files_its_python_comes_first_and_there_is_a_home(build: Build) -> None:
    spec = build(variables={"A": "1"})
    found = variables(spec)
    assert found["PATH"] == f"/opt/env/bin:{STANDARD}:{PROGRAMS}"
    assert (found["HOME"], found["HOSTNAME"], found["A"]) == (HOME, "web", "1")
    assert "TERM" not in found
    assert spec.directory == HOME
    own = build.layout.container("u-1", "main", 2)
    assert targets(spec)[HOME] == str(own / "home")
    assert targets(spec)[PROGRAMS] == str(build.layout.folder / "bin")
    assert (spec.root, spec.scratch, spec.log) == (
        "",
        str(own / "scratch"),
        str(build.layout.pod("u-1") / "logs/main/2.log"),
    )


def test_what_the_author_writes_wins_over_the_image_and_that_over_our_defaults(build: Build) -> None:
    image = Image(name="app", env={"PATH": "/image", "A": "image", "HOME": "/image"})
    found = variables(build(image=image, variables={"A": "mine", "HOSTNAME": "mine"}))
    assert (found["PATH"], found["A"], found["HOME"], found["HOSTNAME"]) == ("/image", "mine", "/image", "mine")


def test_an_images_directory_gives_programs_and_the_place_to_start(build: Build) -> None:
    spec = build(image=Image(name="app", directory="/opt/torch"))
    assert variables(spec)["PATH"].startswith("/opt/torch/bin:/opt/env/bin:")
    assert spec.directory == "/opt/torch"
    assert build({"workingDir": "/srv"}, image=Image(name="app", directory="/opt/torch")).directory == "/srv"


def test_a_rootfs_is_left_as_it_is(build: Build, tmp_path: Path) -> None:
    image = Image(name="app", root=str(tmp_path), user=1000)
    spec = build(image=image)
    found = variables(spec)
    assert (spec.root, spec.directory, spec.hidden[0]) == (str(tmp_path), "/", str(build.layout.data_dir))
    assert (found["PATH"], found["HOME"]) == (STANDARD, "/home/alice")
    assert spec.ids == Ids(user=1000, group=100)
    assert set(targets(spec)) == {"/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/dev/termination-log"}
    assert build(image=Image(name="app", root=str(tmp_path), user=1000, group=5)).ids == Ids(user=1000, group=5)


def test_without_namespaces_the_home_is_where_it_really_is(build: Build) -> None:
    spec = build(facts=NodeFacts(has_namespaces=False))
    home = str(build.layout.container("u-1", "main", 2) / "home")
    assert (variables(spec)["HOME"], spec.directory) == (home, home)
    assert variables(spec)["PATH"].endswith(f":{build.layout.folder / 'bin'}")


def test_without_namespaces_it_is_told_where_the_volumes_are(build: Build) -> None:
    mounted = {"volumeMounts": [{"name": "my-data", "mountPath": "/data"}]}
    binds = [Bind(source="/outside/my-data", target="/data")]
    spec = build(mounted, binds=binds, facts=NodeFacts(has_namespaces=False))
    assert variables(spec)["SHOAL_VOLUME_MY_DATA"] == "/outside/my-data"
    assert "SHOAL_VOLUME_MY_DATA" not in variables(build(mounted, binds=binds))


def test_credentials_are_hidden_from_volumes_too(build: Build) -> None:
    (build.home / ".ssh").mkdir()
    (build.home / ".config" / "gcloud").mkdir(parents=True)
    (build.home / ".netrc").write_text("password")
    expected = [build.layout.data_dir, build.home / ".ssh", build.home / ".config/gcloud", build.home / ".netrc"]
    assert build().hidden[:4] == [str(path) for path in expected]


def test_nothing_of_the_machine_is_shown_but_programs_the_interpreter_and_what_the_image_names(build: Build) -> None:
    build.interpreter = Interpreter(executable="/home/me/env/bin/python", files=["/home/me/env", "/usr"])
    shown = build(image=Image(name="app", directory="/opt/torch", paths=["/data/models"])).shown
    assert [path for path in shown if not path.startswith(("/etc/", "/lib"))] == [
        *("/bin", "/opt", "/sbin", "/usr"),
        *("/data/models", "/gnu/store", "/nix/store", "/home/me/env"),
    ]
    assert "/etc/passwd" in shown
    assert not {"/etc", "/etc/shadow", "/etc/ssh", "/etc/ssl"} & {*shown}
    assert build(image=Image(name="app", root="/srv/rootfs")).shown == []


def test_binds_are_made_from_the_top_and_a_volume_takes_the_place_of_ours(build: Build) -> None:
    binds = [
        Bind(source="/v/deep", target="/a/b/c"),
        Bind(source="/v/hosts", target="/etc/hosts"),
        Bind(source="/v/top", target="/a"),
    ]
    spec = build({"terminationMessagePath": "/a/b/last"}, binds=binds)
    order = [bind.target for bind in spec.binds]
    assert order.index("/a") < order.index("/a/b/last")
    assert order.index("/a") < order.index("/a/b/c")
    assert [bind.source for bind in spec.binds if bind.target == "/etc/hosts"] == ["/v/hosts"]


def test_what_else_a_container_says_is_passed_on(build: Build) -> None:
    context = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "runAsUser": 7}
    spec = build({"stdin": True, "stdinOnce": True, "tty": True, "securityContext": context})
    assert (spec.has_stdin, spec.closes_stdin, spec.has_tty) == (True, True, True)
    assert (spec.is_root_read_only, spec.may_gain_privileges, spec.ids.user) == (True, False, 7)
    assert variables(spec)["TERM"] == "xterm"


def test_a_further_command_finds_what_its_container_found(build: Build) -> None:
    spec = build(variables={"A": "1"})
    command = exec_spec(spec, ["ls"], has_tty=True)
    assert (command.container, command.argv, command.directory) == (spec.id, ["ls"], spec.directory)
    assert command.env == [*spec.env, "TERM=xterm"]
    assert exec_spec(spec, ["ls"], has_tty=False).env == spec.env


@pytest.mark.parametrize(
    ("gpus", "has_gpus", "expected"),
    [
        ([], False, {}),
        ([], True, {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}),
        (
            ["0", "3"],
            True,
            {"CUDA_VISIBLE_DEVICES": "0,3", "NVIDIA_VISIBLE_DEVICES": "0,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        ),
        (["GPU-a"], True, {"CUDA_VISIBLE_DEVICES": "GPU-a", "NVIDIA_VISIBLE_DEVICES": "GPU-a"}),
    ],
)
def test_a_container_sees_the_gpus_that_it_was_given(gpus: list[str], has_gpus: bool, expected: dict[str, str]) -> None:
    assert gpu_variables(gpus, has_gpus=has_gpus) == expected


def test_a_pod_cannot_take_gpus_that_it_was_not_given(build: Build) -> None:
    spec = build(variables={"CUDA_VISIBLE_DEVICES": "0,1,2"}, facts=NodeFacts(has_gpus=True))
    assert variables(spec)["CUDA_VISIBLE_DEVICES"] == ""
    assert variables(build(gpus=("1",), facts=NodeFacts(has_gpus=True)))["CUDA_VISIBLE_DEVICES"] == "1"


def test_device_files_are_given_with_gpus_alone(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    (tmp_path / "nvidia-caps").mkdir()
    (tmp_path / "nvidia-caps" / "nvidia-cap1").touch()
    assert gpu_devices([], tmp_path) == []
    assert gpu_devices(["0"], tmp_path) == sorted(
        str(tmp_path / name) for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1")
    )


def test_accounts_are_read_from_the_roots_own_passwd(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\nbroken\nalice:x:1000:100::/home/alice:/bin/sh\n"
    )
    assert account_in(str(tmp_path), 1000) == Account(100, "/home/alice")
    assert account_in(str(tmp_path), 5) is None
    assert account_in(str(tmp_path / "none"), 0) is None


def test_python_and_pip_are_there_on_every_machine(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    machine = MachineRoot(layout, Interpreter.ours(), [], has_namespaces=False)
    machine.prepare()
    machine.prepare()
    only = {**os.environ, "PATH": machine.path().rpartition(":")[2]}
    for name in ("python", "python3"):
        printed = subprocess.run(
            [name, "-c", "import sys; print(sys.prefix, *sys.argv[1:])", "a b"],
            env=only, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert printed.stdout == f"{sys.prefix} a b\n"
    for name in ("pip", "pip3"):
        script = layout.folder / "bin" / name
        assert os.access(script, os.X_OK)
        assert f"{sys.executable} -m pip" in script.read_text()


def test_pause_sleeps_until_it_is_told_to_end() -> None:
    with subprocess.Popen(PAUSE, start_new_session=True) as sleeping:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                sleeping.wait(0.3)
            sleeping.terminate()
            assert sleeping.wait(5) == 0
        finally:
            os.killpg(sleeping.pid, 9)
