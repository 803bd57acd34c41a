"""Records what kubectl and helm say when the scripts are played to a real API server, and to a real cluster with nodes.

``python -m tests.clients.record``
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from shoal.cluster.kubernetes import Binaries
from tests.clients.live import playing as live
from tests.clients.live.clusters import SIM, nodes_of, real_cluster
from tests.clients.playing import RECORDED, SCRIPTS, played, recording
from tests.clients.reference import reference_server
from tests.support.clusters.engines import running_shoal
from tests.support.programs import kube_binaries, kubectl_minors


def main() -> None:
    commands = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    paths = {name: kube_binaries.binary(name) for name in commands}
    kubectls = (paths.pop("kubectl"), kubectl_minors.other_kubectl())
    if None in paths.values():
        raise SystemExit("real Kubernetes is not built: run make kube-binaries")
    binaries = Binaries(**{name.replace("-", "_"): path for name, path in paths.items()})  # type: ignore[arg-type]
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="transcripts-") as name, reference_server(binaries, Path(name)) as server:
        for kubectl in kubectls:
            assert kubectl is not None, "run make kube-binaries"
            for script in SCRIPTS:
                target = recording(script, kubectl)
                target.write_text(played(script, kubectl, server, Path(name) / target.stem / "folder"))
                print(target.stem)
    kubectl = kubectls[0]
    assert kubectl is not None
    with tempfile.TemporaryDirectory(prefix="transcripts-") as name, ExitStack() as stack:
        folder = Path(name)
        shoal = stack.enter_context(running_shoal(folder / "data", SIM))
        cluster = stack.enter_context(real_cluster(binaries, folder / "real", nodes_of(shoal.admin)))
        for script in live.SCRIPTS:
            target = live.recording(script)
            target.parent.mkdir(exist_ok=True)
            target.write_text(live.played(script, kubectl, cluster, folder / script.stem / "folder"))
            print(f"live {script.stem}")


if __name__ == "__main__":
    main()
