"""Records Kubernetes' answers to the cases: ``python -m tests.cluster.apiserver.builtin.record KUBECONFIG``.

The namespace that the cases are put into is made where it is not there; nothing else is written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cluster.apiserver.builtin.answers import ANSWERS, NAMESPACE, all_cases, kubernetes_answer
from tests.cluster.apiserver.builtin.asking import Asking


def record(kubeconfig: Path) -> None:
    """Writes the answers, one a line."""
    asking = Asking(kubeconfig)
    asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    lines = [json.dumps([case.id, kubernetes_answer(asking, case)], separators=(",", ":")) for case in all_cases()]
    ANSWERS.write_text("\n".join(lines) + "\n")
    asking.close()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
