"""Waits until a pod of its own namespace is ready, asking the API server with nothing but what every pod is given.

The server is looked for by its name, or where the variable API says.
"""

import json
import os
import pathlib
import ssl
import sys
import time
import urllib.error
import urllib.request

GIVEN = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVER = os.environ.get("API", "https://kubernetes.default.svc")


def pod(name: str) -> dict[str, object] | None:
    """The status of a pod; None where there is none."""
    path = f"/api/v1/namespaces/{(GIVEN / 'namespace').read_text()}/pods/{name}"
    token = (GIVEN / "token").read_text()
    request = urllib.request.Request(SERVER + path, headers={"Authorization": f"Bearer {token}"})
    context = ssl.create_default_context(cafile=str(GIVEN / "ca.crt"))
    try:
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            status: dict[str, object] = json.load(answer)["status"]
            return status
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        sys.exit(f"{error.code} {json.load(error)['message']}")


def is_ready(status: dict[str, object] | None) -> bool:
    conditions = (status or {}).get("conditions") or []
    assert isinstance(conditions, list)
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


if __name__ == "__main__":
    while not is_ready(found := pod(sys.argv[1])):
        print("not there yet" if found is None else "not ready yet", flush=True)
        time.sleep(0.2)
    print("ready")
