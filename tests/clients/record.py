"""Records what kubectl says when the scripts are played to a real API server: ``python -m tests.clients.record``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from shoal.cluster.kubernetes import Binaries
from tests.clients.playing import RECORDED, SCRIPTS, played, recording
from tests.conformance.real import real_server
from tests.support.programs import kube_binaries, kubectl_minors


def main() -> None:
    commands = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
    paths = {name: kube_binaries.binary(name) for name in commands}
    kubectls = (paths.pop("kubectl"), kubectl_minors.other_kubectl())
    if None in paths.values():
        raise SystemExit("real Kubernetes is not built: run make kube-binaries")
    binaries = Binaries(**{name.replace("-", "_"): path for name, path in paths.items()})  # type: ignore[arg-type]
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="transcripts-") as folder, real_server(binaries, Path(folder)) as server:
        for kubectl in kubectls:
            assert kubectl is not None, "run make kube-binaries"
            for script in SCRIPTS:
                target = recording(script, kubectl)
                target.write_text(played(script, kubectl, server, Path(folder) / target.stem / "folder"))
                print(target.stem)


if __name__ == "__main__":
    main()
