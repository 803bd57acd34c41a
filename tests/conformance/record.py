"""Records what a real kube-apiserver answers to every story.

python -m tests.conformance.record            all themes
python -m tests.conformance.record patches    only these themes
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from shoal.cluster.kubernetes import Binaries
from tests.conformance.normal import normalised
from tests.conformance.player import play
from tests.conformance.real import real_server
from tests.conformance.recording import THEMES, stories_of, write
from tests.support.programs import kube_binaries


def main() -> None:
    chosen = sys.argv[1:] or THEMES
    paths = {name: kube_binaries.binary(name) for name in ("etcd", "kube-apiserver", "kube-controller-manager")}
    if None in paths.values():
        raise SystemExit("real Kubernetes is not built: run make kube-binaries")
    binaries = Binaries(**{name.replace("-", "_"): path for name, path in paths.items()})  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, real_server(binaries, Path(folder)) as server:
        for theme in chosen:
            stories = stories_of(theme)
            write(theme, {story.name: normalised(story, play(story, server)) for story in stories})
            requests = sum(len(story.steps) for story in stories)
            print(f"{theme}: {len(stories)} stories, {requests} requests")


if __name__ == "__main__":
    main()
