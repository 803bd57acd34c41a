"""Records what a real cluster makes of every story.

python -m tests.differential.record            all themes
python -m tests.differential.record jobs       only these themes
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from shoal.cluster.kubernetes import Binaries
from tests.differential.recording import THEMES, stories_of, write
from tests.differential.telling import told
from tests.differential.worlds import real_world
from tests.support.programs import kube_binaries

AT_ONCE = 24


def main() -> None:
    chosen = sys.argv[1:] or THEMES
    commands = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    paths = {name: kube_binaries.binary(name) for name in commands}
    kwok = kube_binaries.binary("kwok")
    if kwok is None or None in paths.values():
        raise SystemExit("real Kubernetes is not built: run make kube-binaries")
    binaries = Binaries(**{name.replace("-", "_"): path for name, path in paths.items()})  # type: ignore[arg-type]
    failed = False
    with tempfile.TemporaryDirectory(prefix="differential-") as folder:
        with real_world(binaries, kwok, Path(folder)) as world:
            results = told([story for theme in chosen for story in stories_of(theme)], world, at_once=AT_ONCE)
        for theme in chosen:
            recorded: dict[str, Any] = {}
            for story in stories_of(theme):
                result = results[story.name]
                if isinstance(result, str):
                    failed = True
                    print(f"{theme}: {story.name}: {result}", file=sys.stderr)
                else:
                    recorded[story.name] = result
            write(theme, recorded)
            print(f"{theme}: {len(recorded)} stories")
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
