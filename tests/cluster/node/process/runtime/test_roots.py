from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.protocol import Bind, ContainerSpec, Ids
from shoal.cluster.node.process.runtime.roots import resolved
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.node.runtime_program import a_container, text_of_log
from tests.support.node.small_runtime import SmallRuntime

CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
Run = Callable[..., str]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("a//b/./c/", "/a/b/c"),
        ("/../../a", "/a"),
        ("/up/x", "/x"),
        ("/far/x", "/elsewhere/x"),
        ("/link/x", "/dir/x"),
        ("/dir/back/link/x", "/dir/x"),
        ("/dir/file", "/dir/target"),
        ("/missing/../link", "/dir"),
    ],
)
def test_links_lead_nowhere_but_inside(path: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    links = {"up": "../../..", "far": "/elsewhere", "link": "dir", "dir/back": "..", "dir/file": "target"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    assert resolved(path, str(tmp_path)) == expected


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=r"[Tt]oo many"):
        resolved("/a/x", str(tmp_path))


@pytest.fixture(params=["overlays", "read-only"])
def in_root(request: pytest.FixtureRequest, in_node: InNode, folder: Path) -> Callable[[Callable[[Run], None]], None]:
    """Runs scripts in containers, on machines that have overlays and on such that have not."""

    def act(action: Callable[[Run], None]) -> None:
        def inside(node: Node) -> None:
            facts = msgspec.structs.replace(node.facts, has_overlays=request.param == "overlays")
            runtime = SmallRuntime(msgspec.structs.replace(node, facts=facts))
            number = 0

            def run(script: str, **fields: Any) -> str:
                nonlocal number
                number += 1
                fields = {"capabilities": CAPABILITIES, **fields}
                return runtime.output(a_container(folder, "sh", "-c", script, number=number, **fields))

            action(run)

        in_node(inside)

    act.has_overlays = request.param == "overlays"  # type: ignore[attr-defined]
    return act


InRoot = Callable[[Callable[[Run], None]], None]


def a_volume(folder: Path, name: str = "volume", **files: str) -> Path:
    volume = folder / name
    volume.mkdir()
    volume.chmod(0o777)
    for file, text in files.items():
        (volume / file).write_text(text)
    return owned(volume)


def owned(path: Path) -> Path:
    """Gives all of it to whom the folder of the test belongs to."""
    owner = path.parent.stat()
    for one in [path, *path.rglob("*")]:
        os.chown(one, owner.st_uid, owner.st_gid, follow_symlinks=False)
    return path


def test_what_a_container_writes_is_seen_by_nobody_else(in_root: InRoot, folder: Path) -> None:
    def act(run: Run) -> None:
        names = ["/mine", "/tmp/mine", "/var/tmp/mine", "/run/mine", "/dev/shm/mine"]
        if in_root.has_overlays:  # type: ignore[attr-defined]
            names += ["/etc/mine", "/usr/mine"]
        run("for name in $@; do echo x > $name; done".replace("$@", " ".join(names)))
        assert not any(Path(name).exists() for name in names)
        listed = " ".join(names)
        assert run(f"ls {listed} 2>/dev/null || echo none").strip() == "none"

    in_root(act)


def test_the_machines_programs_and_files_are_there_and_cannot_be_changed(in_root: InRoot) -> None:
    def act(run: Run) -> None:
        assert run("cat /etc/passwd") == Path("/etc/passwd").read_text()
        before = Path("/etc/passwd").read_text()
        run("rm -f /etc/passwd; echo x > /etc/group; true")
        assert Path("/etc/passwd").read_text() == before
        assert run("test -x /usr/bin/env && readlink -f /bin/sh") != ""

    in_root(act)


def test_root_may_change_its_copy_of_the_machines_files(in_node: InNode, folder: Path) -> None:
    def act(node: Node) -> None:
        if node.facts.has_all_ids and node.facts.has_overlays:
            script = "echo extra >> /etc/passwd && tail -n1 /etc/passwd && rm /usr/bin/env && ! ls /usr/bin/env"
            spec = a_container(folder, "sh", "-c", script, capabilities=CAPABILITIES)
            assert SmallRuntime(node).output(spec).startswith("extra\n")
            assert Path("/usr/bin/env").exists()

    in_node(act)


@pytest.mark.parametrize(
    "target",
    [
        "/data",
        "/data/deep/er",
        "/etc/config/app",
        "/usr/share/some-app/html",
        "/var/run/secrets/kubernetes.io/serviceaccount",
        "/opt/x",
        "/tmp/where-a-volume-is",
        "/dev/x",
    ],
)
@pytest.mark.parametrize("is_root_read_only", [False, True], ids=["", "on a read-only root"])
def test_a_volume_is_at_its_true_path(target: str, is_root_read_only: bool, in_root: InRoot, folder: Path) -> None:
    volume = a_volume(folder, seen="yes\n")

    def act(run: Run) -> None:
        binds = [Bind(source=str(volume), target=target)]
        output = run(f"cat {target}/seen && echo x > {target}/new", binds=binds, is_root_read_only=is_root_read_only)
        assert output == "yes\n"
        assert (volume / "new").read_text() == "x\n"
        assert not Path(target).exists()

    in_root(act)


def test_what_stood_beside_a_volume_stands_there_still(in_root: InRoot, folder: Path) -> None:
    volume = a_volume(folder)

    def act(run: Run) -> None:
        before = run("ls -A /usr").splitlines()
        listed = run("ls -A /usr", binds=[Bind(source=str(volume), target="/usr/some-app")]).splitlines()
        assert (
            sorted(listed)
            == sorted(["some-app", *before])
            == sorted(["some-app", *(one.name for one in Path("/usr").iterdir())])
        )

    in_root(act)


def test_a_read_only_volume_and_a_file_cannot_be_written(in_root: InRoot, folder: Path) -> None:
    volume = a_volume(folder, hosts="127.0.0.1 me\n")

    def act(run: Run) -> None:
        binds = [
            Bind(source=str(volume), target="/data", is_read_only=True),
            Bind(source=str(volume / "hosts"), target="/etc/hosts"),
            Bind(source=str(volume / "hosts"), target="/etc/not-there/hosts", is_read_only=True),
        ]
        refused = "! touch /data/x 2>/dev/null; ! (echo x >> /etc/not-there/hosts) 2>/dev/null"
        assert run(f"{refused}; cat /etc/hosts; echo a >> /etc/hosts", binds=binds) == "127.0.0.1 me\n"
        assert (volume / "hosts").read_text() == "127.0.0.1 me\na\n"

    in_root(act)


def test_a_read_only_root_is_read_only_but_for_what_is_mounted(in_root: InRoot, folder: Path) -> None:
    volume = a_volume(folder)
    script = (
        "for name in / /tmp /etc /usr /var/tmp /run; do touch $name/x 2>/dev/null && echo $name; done; touch /data/x"
    )

    def act(run: Run) -> None:
        binds = [Bind(source=str(volume), target="/data")]
        assert run(f"{script} /dev/shm/x && echo x > /dev/null", binds=binds, is_root_read_only=True) == ""

    in_root(act)


@pytest.mark.parametrize("link", ["../run/systemd/resolve/stub-resolv.conf", "/run/resolv.conf", "other.conf"])
def test_a_file_is_put_where_a_link_leads_inside(link: str, in_root: InRoot, folder: Path) -> None:
    image = an_image(folder)
    (image / "etc").mkdir()
    (image / "etc/resolv.conf").symlink_to(link)
    given = a_volume(folder, text="nameserver 10.88.0.1\n") / "text"

    def act(run: Run) -> None:
        binds = [*USR, Bind(source=str(given), target="/etc/resolv.conf")]
        assert run("cat /etc/resolv.conf", root=str(image), binds=binds) == "nameserver 10.88.0.1\n"
        assert not Path("/run/resolv.conf").exists()

    in_root(act)


USR = [Bind(source="/usr", target="/usr", is_read_only=True)]


def an_image(folder: Path) -> Path:
    """A root that has programs once the machine's /usr is put there."""
    image = folder / "image"
    image.mkdir()
    for name in ("bin", "lib", "lib64", "sbin"):
        (image / name).symlink_to(f"usr/{name}")
    for name in ("tmp", "run", "var", "var/tmp", "root"):
        (image / name).mkdir()
        (image / name).chmod(0o777)
    return owned(image)


def test_an_image_is_the_root_and_stays_as_it_is(in_root: InRoot, folder: Path) -> None:
    image = an_image(folder)
    (image / "etc").mkdir()
    (image / "etc/os-release").write_text("an image\n")
    before = sorted(str(path) for path in image.rglob("*"))

    def act(run: Run) -> None:
        script = "cat /etc/os-release; ls -A /; for name in /tmp /run /var/tmp /root; do echo x > $name/x; done"
        text, *names = run(script, root=str(image), binds=USR).splitlines()
        assert text == "an image"
        made = {"dev", "proc", "sys", "usr"}
        assert set(names) == made | {path.name for path in image.iterdir()}
        assert sorted(str(path) for path in image.rglob("*")) == before

    in_root(act)


@pytest.mark.parametrize("name", ["data", "proc", "dev", "etc", "sys"])
def test_an_image_with_links_that_lead_out_gets_nothing_of_the_machine(
    name: str, in_root: InRoot, folder: Path
) -> None:
    image = an_image(folder)
    outside = a_volume(folder, "outside")
    if (image / name).exists():
        (image / name).rmdir()
    (image / name).symlink_to("../" * 20 + str(outside)[1:])
    given = a_volume(folder, seen="yes\n")

    def act(run: Run) -> None:
        target = f"/{name}/volume" if name != "proc" else "/volume"
        binds = [*USR, Bind(source=str(given), target=target)]
        assert run(f"cat {target}/seen; ls /proc/self/comm", root=str(image), binds=binds).startswith("yes\n")
        assert list(outside.iterdir()) == []

    in_root(act)


def test_a_volume_inside_of_a_volume_cannot_lead_out_of_the_root(in_root: InRoot, folder: Path) -> None:
    outside = a_volume(folder, "outside")
    first, second = a_volume(folder, "first"), a_volume(folder, "second", seen="yes\n")
    (first / "link").symlink_to(outside)

    def act(run: Run) -> None:
        binds = [Bind(source=str(first), target="/data"), Bind(source=str(second), target="/data/link/x")]
        assert run("cat /data/link/x/seen", binds=binds) == "yes\n"
        assert list(outside.iterdir()) == []

    in_root(act)


def test_a_hidden_folder_of_the_machine_is_empty_and_stays_so(in_root: InRoot, folder: Path) -> None:
    def act(run: Run) -> None:
        hidden = ["/usr/share", str(folder)]
        script = "ls -A /usr/share /machine/share; touch /usr/share/x /machine/share/x 2>/dev/null || echo refused"
        binds = [Bind(source="/usr", target="/machine")]
        assert run(script, hidden=hidden, binds=binds).split() == ["/machine/share:", "/usr/share:", "refused"]

    in_root(act)


def test_devices_are_the_usual_ones_and_those_that_were_given(in_root: InRoot) -> None:
    def act(run: Run) -> None:
        names = run("ls /dev").split()
        assert set(names) == set(
            "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero".split()  # noqa: SIM905
        )
        assert run("head -c 3 /dev/zero | wc -c; echo x > /dev/null").strip() == "3"
        assert run("(echo x > /dev/full) 2>/dev/null || echo full") == "full\n"
        assert run("echo one > /dev/stdout; ls /dev/fd/0") == "one\n/dev/fd/0\n"
        assert run("echo two > /dev/stderr") == "two\n"
        assert "kmsg" in run("ls /dev", devices=["/dev/kmsg"])

    in_root(act)


def test_root_inside_cannot_change_the_modes_of_the_machines_devices(in_root: InRoot) -> None:
    before = Path("/dev/full").stat().st_mode

    def act(run: Run) -> None:
        script = "chmod 0600 /dev/full 2>/dev/null && echo changed; exec 3>/dev/full; chmod 0600 /proc/self/fd/3; true"
        assert run(f"({script}) 2>/dev/null") == ""
        assert Path("/dev/full").stat().st_mode == before

    in_root(act)


def test_another_user_can_open_its_output_by_name(in_root: InRoot) -> None:
    def act(run: Run) -> None:
        assert run("echo one > /dev/stdout; id -u", ids=Ids(user=1234, group=1234)) == "one\n1234\n"

    in_root(act)


def test_shared_memory_is_as_large_as_was_asked_for(in_root: InRoot) -> None:
    def act(run: Run) -> None:
        script = "cd /dev/shm; head -c 900000 /dev/zero > a && ! head -c 900000 /dev/zero > b 2>/dev/null"
        run(script, shm_bytes=1_000_000)

    in_root(act)


def test_terminals_can_be_opened_inside(in_root: InRoot) -> None:
    def act(run: Run) -> None:
        script = "import os, pty; a, b = pty.openpty(); os.write(b, b'x'); print(os.ttyname(b), os.read(a, 1))"
        if Path("/usr/bin/python3").exists():
            assert run(f'/usr/bin/python3 -c "{script}"') == "/dev/pts/0 b'x'\n"

    in_root(act)


def test_a_bind_that_follows_no_links_is_like_any_other_where_there_are_none(in_root: InRoot) -> None:
    def act(run: Run) -> None:
        bind = Bind(source="/usr/share", target="/x", follows_links=False)
        assert run("ls /x", binds=[bind]) == run("ls /usr/share")

    in_root(act)


def test_a_missing_directory_is_made(in_root: InRoot) -> None:
    def act(run: Run) -> None:
        assert run("pwd", directory="/srv/app/deep") == "/srv/app/deep\n"
        assert run("pwd", directory="") == "/\n"
        assert run("pwd", directory="/srv/app", is_root_read_only=True) == "/srv/app\n"

    in_root(act)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"binds": [Bind(source="/no/such", target="/x")]},
            'cannot mount "/no/such" at "/x": no such file or directory',
        ),
        (
            {"binds": [Bind(source="/proc/self/root/usr", target="/x", follows_links=False)]},
            'cannot mount "/proc/self/root/usr" at "/x": too many levels of symbolic links',
        ),
        ({"binds": [Bind(source="/usr", target="/proc/x")]}, 'cannot make "/proc/x": no such file or directory'),
        ({"binds": [Bind(source="/usr", target="/proc/sys")]}, 'cannot mount at "/proc/sys": it is in /proc'),
        (
            {"binds": [Bind(source="/usr", target="/dev")]},
            'cannot mount at "/dev": it holds the devices of the container',
        ),
        ({"binds": [Bind(source="/usr", target="/etc/passwd")]}, 'cannot mount at "/etc/passwd": not a directory'),
        ({"root": "/no/such"}, 'cannot mount "/no/such" at "/": no such file or directory'),
        ({"devices": ["/dev/../etc/passwd"]}, '"/etc/passwd" is not a device in /dev'),
        ({"devices": ["/dev/none"]}, 'cannot build the root of the container: "/dev/none" no such file or directory'),
    ],
    ids=[
        "no source",
        "a link on the way",
        "below /proc",
        "in /proc",
        "at /dev",
        "a folder on a file",
        "no image",
        "not a device",
        "no device",
    ],
)
def test_what_cannot_be_mounted_is_told_in_a_sentence(
    fields: dict[str, Any], message: str, in_node: InNode, folder: Path
) -> None:
    def act(node: Node) -> None:
        spec: ContainerSpec = a_container(folder, "true", **fields)
        assert SmallRuntime(node).failure(spec) == message
        assert text_of_log(spec) == ""

    in_node(act)
