"""Starts, stops, breaks and mends a real Kubernetes on this machine.

Everything lives in one data dir: keys and certificates, etcd's data, kubeconfigs, a log for each part. Starting on a
data dir that was used before finds its objects again, however the last run ended. All methods block, so that a test
fixture without an event loop and a supervisor can use them alike; from a coroutine, call them in a thread.

Not safe for use by several threads at once.
"""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any

from shoal.cluster.keyring import MASTERS, kubeconfig, webhook_kubeconfig, write_private
from shoal.cluster.kubernetes import flags
from shoal.cluster.kubernetes.admin import AdminApi, Unreachable
from shoal.cluster.kubernetes.binaries import Binaries, MissingBinaries, minor_version
from shoal.cluster.kubernetes.credentials import Credentials
from shoal.cluster.kubernetes.ports import ReservedPort
from shoal.cluster.kubernetes.processes import Child, Spawner, end_all
from shoal.cluster.kubernetes.user_tokens import TokenReviewer
from shoal.kube.certificates import KeyPair, service_names

_POLL = 0.02


class Part(enum.StrEnum):
    """The processes that a cluster is made of."""

    ETCD = "etcd"
    API_SERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"


class StartFailed(Exception):
    """A part ended, or was not ready in time; the end of its log says why."""

    def __init__(self, part: Part, what: str, log: Path, tail: str) -> None:
        self.part = part
        self.what = what
        self.log = log
        self.tail = tail or "(nothing)"
        super().__init__(f"{part} {what}; its log {log} ends with:\n{self.tail}")


class RealKubernetes:
    """One etcd and kube-apiserver, with the other parts on request."""

    def __init__(
        self,
        binaries: Binaries,
        data_dir: Path,
        *,
        bind: str = "127.0.0.1",
        port: int = 0,
        controller_manager: bool = False,
        scheduler: bool = False,
        verifies_kubelets: bool = False,
        durable: bool = True,
        workloads: bool = False,
        definitions: Sequence[Mapping[str, Any]] = (),
        egress: Path | None = None,
        extra_flags: Mapping[Part, Sequence[str]] | None = None,
        environment: Mapping[str, str] | None = None,
        ready_within: float = 60.0,
    ) -> None:
        """Prepares, starts nothing.

        ``bind`` is an IP address; ``port`` 0 takes any free one. With ``verifies_kubelets`` kubelets must show
        certificates of the cluster's authority; otherwise any will do. ``durable=False`` spares etcd its fsync: data
        survive a killed process, but not a killed machine. ``workloads`` switches the Workload API on where this
        Kubernetes has one. ``definitions`` are custom resource definitions, applied before the controller manager
        starts, which otherwise would learn of their kinds, and collect their garbage, only half a minute later.
        ``egress`` is the Unix socket of an HTTP CONNECT proxy by which the API server reaches pods and Services.
        ``extra_flags`` come after our own and so override them; ``environment`` is added to our own.
        """
        self.data_dir = data_dir.absolute()
        self._binaries = binaries
        self._bind = bind
        self._port = port
        self._wanted = [Part.ETCD, Part.API_SERVER]
        self._wanted += [Part.CONTROLLER_MANAGER] if controller_manager else []
        self._wanted += [Part.SCHEDULER] if scheduler else []
        self._verifies_kubelets = verifies_kubelets
        self._durable = durable
        self._workloads = workloads
        self._definitions = definitions
        self._egress = egress
        self._extra_flags = dict(extra_flags or {})
        self._environment = {**os.environ, **(environment or {})}
        self._ready_within = ready_within
        self._workload_flags: Mapping[str, Sequence[str]] = {}
        self._running: _Running | None = None

    # What clients need

    @property
    def server(self) -> str:
        """The base URL of the API server."""
        return self._run.server

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig, readable by its owner alone."""
        return self.data_dir / "kubeconfig"

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that signed the server's."""
        return self._run.credentials.authority_file

    @property
    def admin_token(self) -> str:
        """A bearer token that may do everything."""
        return self._run.credentials.admin_token

    @property
    def admin(self) -> AdminApi:
        """Plain requests as the admin."""
        return self._run.admin

    def token_for(self, user: str, groups: Sequence[str] = ()) -> str:
        """A bearer token for this user of these groups, valid at once; RBAC says what it may do."""
        return self._run.credentials.user_tokens.token(user, groups)

    def certificate_for(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A client certificate for this user of these groups."""
        return self._run.credentials.client(user, groups)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> str:
        """The text of a kubeconfig that signs in as this user of these groups."""
        return self._kubeconfig_text(user, self.token_for(user, groups))

    # Starting and stopping

    def start(self) -> None:
        """Starts all parts and returns when the API server is ready; raises StartFailed, and then nothing runs."""
        if self._running is not None:
            raise RuntimeError(f"the cluster in {self.data_dir} is started already")
        missing = [part.value for part in self._wanted if self._binary(part) is None]
        if missing:
            raise MissingBinaries(missing, [self._binaries.kube_apiserver.parent])
        (self.data_dir / "logs").mkdir(parents=True, exist_ok=True)
        self.data_dir.chmod(0o700)
        minor = minor_version(self._binaries.kube_apiserver) if self._workloads else None
        self._workload_flags = flags.workloads(minor)
        self._running = _Running(self.data_dir, bind=self._bind, port=self._port)
        try:
            write_private(self.kubeconfig, self._kubeconfig_text("admin", self.admin_token))
            if self._egress is not None:
                write_private(self._egress_file, flags.egress_selection(self._egress))
            self._launch(Part.ETCD)
            self._launch(Part.API_SERVER)
            self.wait_until_ready()
            self.admin.define(self._definitions)
            for part in self._wanted[2:]:
                self._launch(part)
            if Part.CONTROLLER_MANAGER in self._wanted:
                account = "/api/v1/namespaces/default/serviceaccounts/default"
                self._wait(lambda: self.admin.exists(account), Part.CONTROLLER_MANAGER, "made no service account")
        except BaseException:
            self.stop(grace=0)
            raise

    def stop(self, *, grace: float = 2.5) -> None:
        """Ends all parts, clients before servers, each group within ``grace`` seconds; 0 kills at once."""
        if self._running is None:
            return
        run, self._running = self._running, None
        try:
            for group in ((Part.SCHEDULER, Part.CONTROLLER_MANAGER), (Part.API_SERVER,), (Part.ETCD,)):
                end_all([run.children[part] for part in group if part in run.children], grace=grace)
        finally:
            run.close()

    def __enter__(self) -> RealKubernetes:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # Supervision

    @property
    def is_started(self) -> bool:
        """Whether ``start`` has succeeded and ``stop`` was not called since."""
        return self._running is not None

    def processes(self) -> dict[Part, Child]:
        """Every part that was started, running or not."""
        return dict(self._run.children)

    def ended(self) -> list[Part]:
        """The parts that should run and do not."""
        return [part for part in self._wanted if not self._run.children[part].is_running]

    def launch_again(self, part: Part) -> None:
        """Starts a part that has ended, on its old port and data, and does not wait for it."""
        self._run.children[part].kill()
        self._launch(part)

    def wait_until_ready(self) -> None:
        """Returns when the API server says that it is ready; raises StartFailed if that takes too long."""
        self._wait(self.admin.is_ready, Part.API_SERVER, "was not ready")

    # Faults

    def kill_api_server(self) -> None:
        """Ends the API server as a crash would; its port stays ours."""
        self._run.children[Part.API_SERVER].kill()

    def restart_api_server(self) -> None:
        """Starts the API server again, killing it first if it runs, and waits until it is ready."""
        self.launch_again(Part.API_SERVER)
        self.wait_until_ready()

    def kill_etcd(self) -> None:
        """Ends etcd as a crash would."""
        self._run.children[Part.ETCD].kill()

    def restart_etcd(self) -> None:
        """Starts etcd again, killing it first if it runs, and waits until the API server is ready."""
        self.launch_again(Part.ETCD)
        self.wait_until_ready()

    def pause(self, part: Part = Part.API_SERVER) -> None:
        """Makes a part hang: its connections stay open and nothing is answered."""
        self._run.children[part].pause()

    def resume(self, part: Part = Part.API_SERVER) -> None:
        """Lets a paused part go on where it was."""
        self._run.children[part].resume()

    @contextmanager
    def paused(self, part: Part = Part.API_SERVER) -> Iterator[None]:
        """Pauses a part for the length of a block."""
        self.pause(part)
        try:
            yield
        finally:
            self.resume(part)

    # How it is done

    @property
    def _run(self) -> _Running:
        if self._running is None:
            raise RuntimeError(f"the cluster in {self.data_dir} is not started: call start() first")
        return self._running

    @property
    def _egress_file(self) -> Path:
        return self.data_dir / "egress-selection.json"

    def _binary(self, part: Part) -> Path | None:
        return {
            Part.ETCD: self._binaries.etcd,
            Part.API_SERVER: self._binaries.kube_apiserver,
            Part.CONTROLLER_MANAGER: self._binaries.kube_controller_manager,
            Part.SCHEDULER: self._binaries.kube_scheduler,
        }[part]

    def _kubeconfig_text(self, user: str, sign_in: str | KeyPair) -> str:
        return kubeconfig(self.server, authority=self._run.credentials.authority, user=user, sign_in=sign_in)

    def _part_kubeconfig(self, part: Part) -> Path:
        """The kubeconfig that a part signs in with, under its usual name."""
        # The controllers run as one user here, so that one needs the rights of them all.
        groups = [MASTERS] if part is Part.CONTROLLER_MANAGER else []
        path = self.data_dir / "pki" / f"{part}.kubeconfig"
        write_private(path, self._kubeconfig_text(part.value, self.certificate_for(f"system:{part}", groups)))
        return path

    def _command(self, part: Part) -> list[str]:
        files = self._run.files
        match part:
            case Part.ETCD:
                own = flags.etcd(durable=self._durable)
            case Part.API_SERVER:
                own = flags.api_server(
                    files,
                    bind=self._bind,
                    port=self._run.port.number,
                    has_controller_manager=Part.CONTROLLER_MANAGER in self._wanted,
                    verifies_kubelets=self._verifies_kubelets,
                    egress=self._egress_file if self._egress is not None else None,
                )
            case Part.CONTROLLER_MANAGER:
                own = flags.controller_manager(files, self._part_kubeconfig(part))
            case Part.SCHEDULER:
                own = flags.scheduler(self._part_kubeconfig(part))
        own += self._workload_flags.get(part.value, ())
        return [str(self._binary(part)), *own, *self._extra_flags.get(part, ())]

    def _launch(self, part: Part) -> None:
        self._run.children[part] = self._run.spawner.spawn(
            part.value,
            self._command(part),
            folder=self.data_dir,
            log=self.data_dir / "logs" / f"{part}.log",
            environment=self._environment,
        )

    def _wait(self, condition: Callable[[], bool], part: Part, otherwise: str) -> None:
        """Waits for a condition that needs etcd, the API server and ``part`` to run."""
        deadline = time.monotonic() + self._ready_within
        needed = [self._run.children[one] for one in dict.fromkeys((Part.ETCD, Part.API_SERVER, part))]
        while not _holds(condition):
            for child in needed:
                if not child.is_running:
                    raise StartFailed(Part(child.name), child.ending(), child.log, child.log_tail())
            if time.monotonic() > deadline:
                child = self._run.children[part]
                raise StartFailed(part, f"{otherwise} within {self._ready_within:g} s", child.log, child.log_tail())
            time.sleep(_POLL)


def admin_of(data_dir: Path, server: str, *, timeout: float) -> AdminApi:
    """Plain requests as the admin, for a process that did not start the cluster."""
    token, authority = (data_dir / "pki" / name for name in ("admin.token", "ca.crt"))
    return AdminApi(server, token=token.read_text(), authority=authority.read_text(), timeout=timeout)


class _Running:
    """What exists between start and stop."""

    def __init__(self, data_dir: Path, *, bind: str, port: int) -> None:
        self.credentials = Credentials(data_dir / "pki")
        self.port = ReservedPort(bind, port)
        self.server = _url(bind, self.port.number)
        self.admin = AdminApi(
            self.server, token=self.credentials.admin_token, authority=self.credentials.authority.decode()
        )
        self.reviewer = TokenReviewer(self.credentials.user_tokens)
        self.spawner = Spawner()
        self.children: dict[Part, Child] = {}
        certificate, key = self.credentials.serving_files(_server_names(bind))
        kubelet_client = self.credentials.kubelet_client_files()
        self.files = flags.Files(
            data_dir=data_dir,
            authority=self.credentials.authority_file,
            authority_key=self.credentials.authority_key,
            serving_certificate=certificate,
            serving_key=key,
            kubelet_client_certificate=kubelet_client[0],
            kubelet_client_key=kubelet_client[1],
            service_account_key=self.credentials.service_account_key,
            tokens=self.credentials.token_file,
            token_webhook=data_dir / "pki" / "token-webhook.kubeconfig",
        )
        write_private(self.files.token_webhook, webhook_kubeconfig(self.reviewer.url))

    def close(self) -> None:
        self.spawner.close()
        self.reviewer.close()
        self.port.close()


def _url(bind: str, port: int) -> str:
    address = ip_address(bind)
    host = flags.LOOPBACK[address.version] if address.is_unspecified else bind
    return f"https://[{host}]:{port}" if address.version == 6 else f"https://{host}:{port}"


def _server_names(bind: str) -> list[str]:
    names = ["localhost", *flags.LOOPBACK.values(), *flags.FIRST_SERVICE_ADDRESSES, socket.gethostname()]
    names += service_names("kubernetes", "default")
    names += [] if ip_address(bind).is_unspecified else [bind]
    return list(dict.fromkeys(names))


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except Unreachable:
        return False
