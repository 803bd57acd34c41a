"""PodSecurity: what namespaces enforce, audit and warn of by their labels, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.conformance.objects import a_bare_pod, a_container, a_deployment, a_job, a_template
from tests.conformance.story import APPS, BATCH, CORE, STRATEGIC_PATCH, Request, Story, Until, get, patch, post, watched

NAMESPACE = CORE
PODS = f"{CORE}/pods"
PREFIX = "pod-security.kubernetes.io/"
DRY_RUN = {"dryRun": "All"}
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"

SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
SAFE_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def labelling(**labels: str | None) -> Request:
    """Sets labels of the story's namespace; None removes one."""
    content = {"metadata": {"labels": {_label(mode): value for mode, value in labels.items()}}}
    return patch(NAMESPACE, content, shown=labels_of)


def labelled(**labels: str | None) -> list[Request]:
    """The same, and waits until the cache of the server has them: it would try the next patch on old labels first."""

    def is_known(_status: int, body: Any) -> bool:
        return all(labels_of(body).get(_label(mode)) == value for mode, value in labels.items())

    return [labelling(**labels), get(NAMESPACE, query={"resourceVersion": "0"}, shown=labels_of, until=is_known)]


def _label(mode: str) -> str:
    return PREFIX + mode.replace("_", "-")


def a_safe_pod(name: str = "one", **spec: Any) -> dict[str, Any]:
    return a_bare_pod(name, **{"containers": [a_container(securityContext=SAFE)], "securityContext": SAFE_POD, **spec})


def contained(name: str, **security: Any) -> dict[str, Any]:
    """A pod that would be safe, were it not for the security context of its container."""
    return a_safe_pod(name, containers=[a_container(securityContext={**SAFE, **security})])


def tried(pod: dict[str, Any], until: Until | None = None) -> Request:
    return post(PODS, pod, query=DRY_RUN, shown=name_of, until=until)


def enforced(policy: str) -> Request:
    """Waits until the server holds pods to a policy; all of them refuse the host's network."""
    probe = a_bare_pod("probe", hostNetwork=True)
    return tried(probe, lambda _status, body: f'violates PodSecurity "{policy}"' in str(body.get("message")))


def labels_of(body: Any) -> Any:
    return body["metadata"].get("labels")


def name_of(body: Any) -> Any:
    return [body["kind"], body["metadata"]["name"]]


def a_stateful_set(name: str = "one") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {**a_deployment(name)["spec"], "serviceName": name}}


BAD_PODS = [
    a_bare_pod("plain"),
    a_bare_pod(
        "several",
        initContainers=[a_container("first")],
        containers=[a_container(), a_container("second", securityContext=SAFE)],
    ),
    contained("privileged", privileged=True, allowPrivilegeEscalation=True),
    contained("capable", capabilities={"drop": ["NET_RAW"], "add": ["SYS_TIME", "NET_BIND_SERVICE", "CHOWN", "BPF"]}),
    a_safe_pod("on-the-host", hostNetwork=True, hostPID=True, hostIPC=True),
    a_safe_pod(
        "ports",
        containers=[
            a_container(securityContext=SAFE, ports=[{"containerPort": 80, "hostPort": 80}]),
            a_container("other", securityContext=SAFE, ports=[{"containerPort": 9, "hostPort": 90}]),
        ],
    ),
    a_safe_pod(
        "volumes",
        volumes=[
            {"name": "root", "hostPath": {"path": "/"}},
            {"name": "share", "nfs": {"server": "example.com", "path": "/"}},
            {"name": "disk", "rbd": {"monitors": ["a"], "image": "b"}},
            {"name": "scratch", "emptyDir": {}},
        ],
    ),
    a_safe_pod("volume", volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
    a_safe_pod(
        "sysctls",
        securityContext={
            **SAFE_POD,
            "sysctls": [
                {"name": name, "value": "1"}
                for name in ("net.ipv4.tcp_syncookies", "kernel.msgmax", "net.core.somaxconn")
            ],
        },
    ),
    a_safe_pod(
        "selinux",
        containers=[a_container(securityContext={**SAFE, "seLinuxOptions": {"type": "spc_t", "role": "r"}})],
        securityContext={**SAFE_POD, "seLinuxOptions": {"type": "container_engine_t", "user": "u"}},
    ),
    a_safe_pod("selinux-engine", securityContext={**SAFE_POD, "seLinuxOptions": {"type": "container_engine_t"}}),
    a_safe_pod(
        "unconfined",
        containers=[
            a_container(
                securityContext={
                    **SAFE,
                    "seccompProfile": {"type": "Unconfined"},
                    "appArmorProfile": {"type": "Unconfined"},
                    "runAsNonRoot": False,
                    "runAsUser": 0,
                }
            )
        ],
        securityContext={
            "runAsNonRoot": False,
            "runAsUser": 0,
            "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "Unconfined"},
        },
    ),
    a_bare_pod(
        "app-armor-annotation",
        {"annotations": {f"{APP_ARMOR}main": "unconfined"}},
        containers=[a_container(securityContext=SAFE)],
        securityContext=SAFE_POD,
    ),
    a_bare_pod(
        "seccomp-annotation",
        {"annotations": {SECCOMP: "unconfined"}},
        containers=[a_container(securityContext=SAFE)],
        securityContext={"runAsNonRoot": True},
    ),
    contained("root", runAsUser=0, runAsNonRoot=False),
    a_safe_pod(
        "probes",
        containers=[
            a_container(
                securityContext=SAFE,
                livenessProbe={"httpGet": {"port": 80, "host": "example.com"}},
                readinessProbe={"tcpSocket": {"port": 80, "host": "10.0.0.1"}},
                lifecycle={"preStop": {"httpGet": {"port": 80, "host": "127.0.0.1"}}},
            )
        ],
    ),
    a_safe_pod(
        "user-namespace",
        hostUsers=False,
        containers=[a_container(securityContext={**SAFE, "procMount": "Unmasked"})],
        securityContext={"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}},
    ),
    a_bare_pod("windows", os={"name": "windows"}, securityContext={"runAsNonRoot": True}),
    a_bare_pod(
        "host-process",
        os={"name": "windows"},
        hostNetwork=True,
        securityContext={"runAsNonRoot": True, "windowsOptions": {"hostProcess": True}},
    ),
    a_safe_pod("safe"),
]

WORKLOADS = [
    (f"{APPS}/deployments", a_deployment()),
    (f"{APPS}/replicasets", {"metadata": {"name": "one"}, "spec": a_deployment()["spec"]}),
    (f"{APPS}/daemonsets", {"metadata": {"name": "one"}, "spec": a_deployment()["spec"]}),
    (f"{APPS}/statefulsets", a_stateful_set()),
    (f"{BATCH}/jobs", a_job()),
    (
        f"{BATCH}/cronjobs",
        {"metadata": {"name": "one"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": a_job()["spec"]}}},
    ),
    (
        f"{CORE}/replicationcontrollers",
        {"metadata": {"name": "one"}, "spec": {"selector": {"app": "one"}, "template": a_template("one")}},
    ),
    (f"{CORE}/podtemplates", {"metadata": {"name": "one"}, "template": a_template("one")}),
]

STORIES = [
    Story(
        "pod security that is restricted",
        [*labelled(enforce="restricted"), enforced("restricted:latest"), *map(tried, BAD_PODS)],
        account=True,
    ),
    Story(
        "pod security of the baseline",
        [*labelled(enforce="baseline"), enforced("baseline:latest"), *map(tried, BAD_PODS)],
        account=True,
    ),
    Story(
        "pod security of older versions",
        [
            step
            for version in ("v1.0", "v1.18", "v1.24", "v1.30", "v1.33", "v1.99")
            for step in (
                *labelled(enforce="restricted", enforce_version=version),
                enforced(f"restricted:{version}"),
                *map(tried, BAD_PODS),
            )
        ],
        account=True,
    ),
    Story(
        "pod security that warns",
        [
            *labelled(enforce="baseline", warn="restricted", warn_version="v1.20", audit="restricted"),
            enforced("baseline:latest"),
            tried(a_bare_pod()),
            tried(a_safe_pod()),
            *(post(path, body, shown=name_of) for path, body in WORKLOADS),
            patch(f"{APPS}/deployments/one", {"metadata": {"labels": {"new": "label"}}}, shown=name_of),
            patch(f"{APPS}/deployments/one/scale", {"spec": {"replicas": 2}}, shown=name_of),
            post(
                f"{APPS}/deployments", a_deployment("bad", template=a_template("bad", hostNetwork=True)), shown=name_of
            ),
            post(
                f"{APPS}/deployments",
                a_deployment("safe", template=a_template("safe", **a_safe_pod()["spec"])),
                shown=name_of,
            ),
            post(f"{CORE}/replicationcontrollers", {"metadata": {"name": "no-template"}, "spec": {"replicas": 0}}),
        ],
        account=True,
    ),
    Story(
        "pod security that warns of what is enforced",
        [
            *labelled(enforce="restricted", enforce_version="v1.20"),
            enforced("restricted:v1.20"),
            post(f"{BATCH}/jobs", a_job(), shown=name_of),
            *labelled(warn_version="v1.7", enforce_version="v1.21"),
            enforced("restricted:v1.21"),
            post(f"{BATCH}/jobs", a_job("two"), shown=name_of),
            *labelled(warn="privileged", enforce_version="v1.22"),
            enforced("restricted:v1.22"),
            post(f"{BATCH}/jobs", a_job("three"), shown=name_of),
        ],
        account=True,
    ),
    Story(
        "pod security labels that are wrong",
        [
            labelling(enforce="strict"),
            labelling(enforce="baseline", enforce_version="1.30", audit="none", audit_version="v2.0"),
            labelling(warn="Restricted", warn_version="v1.08"),
            labelling(warn_version="v1.99999999999999999999"),
            post(
                "/api/v1/namespaces",
                {"metadata": {"name": "pod-security-wrong", "labels": {f"{PREFIX}enforce": "", f"{PREFIX}warn": "x"}}},
            ),
            labelling(enforce="privileged", enforce_version="latest", warn_version="v1.0"),
        ],
    ),
    Story(
        "pod security of pods that are there",
        [
            *(post(PODS, a_bare_pod(name), shown=name_of) for name in ("b", "a", "c")),
            post(PODS, a_bare_pod("host", hostNetwork=True), shown=name_of),
            post(PODS, a_bare_pod("host-too", hostNetwork=True), shown=name_of),
            post(PODS, contained("privileged", privileged=True, allowPrivilegeEscalation=True), shown=name_of),
            post(PODS, a_safe_pod("safe"), shown=name_of),
            watched(f"{CORE}/secrets"),
            replace(labelling(enforce="restricted"), query=DRY_RUN),
            *labelled(warn="restricted"),
            *labelled(enforce="baseline"),
            *labelled(enforce_version="v1.0"),
            *labelled(enforce="restricted"),
            *labelled(enforce="baseline"),
            *labelled(enforce="privileged", enforce_version=None),
        ],
        account=True,
    ),
    Story(
        "pod security of changed pods",
        [
            post(PODS, a_bare_pod("one"), shown=name_of),
            post(PODS, a_bare_pod("two"), shown=name_of),
            post(
                PODS, a_bare_pod("sized", containers=[a_container(resources={"requests": {"cpu": "1"}})]), shown=name_of
            ),
            watched(f"{CORE}/secrets"),
            *labelled(enforce="restricted"),
            enforced("restricted:latest"),
            patch(f"{PODS}/one", {"metadata": {"labels": {"new": "label"}}}, shown=name_of),
            patch(
                f"{PODS}/one",
                {"spec": {"containers": [{"name": "main", "image": "b"}]}},
                STRATEGIC_PATCH,
                shown=name_of,
            ),
            patch(
                f"{PODS}/one/ephemeralcontainers",
                {"spec": {"ephemeralContainers": [a_container("debug")]}},
                STRATEGIC_PATCH,
                shown=name_of,
            ),
            patch(f"{PODS}/one/status", {"status": {"message": "hello"}}, shown=name_of),
            patch(
                f"{PODS}/sized/resize",
                {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}},
                STRATEGIC_PATCH,
                shown=name_of,
            ),
            post(f"{PODS}/two/binding", {"metadata": {"name": "two"}, "target": {"kind": "Node", "name": "n"}}),
            post(PODS, {**a_bare_pod(), "metadata": {"generateName": "made-"}}, shown=name_of),
        ],
        account=True,
    ),
]
