"""The files of deploy/ are what the code makes, and hang together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.cli import deployment
from shoal.scheduler.configuration import configuration_of, parse_arguments, read_configuration
from tests.support.programs.command import shoal

FOLDER = Path(__file__).parents[2] / "deploy"
FILES = {file.stem: file for file in sorted(FOLDER.glob("*.yaml"))}
OBJECTS: dict[str, list[dict[str, Any]]] = {
    name: list(yaml.safe_load_all(file.read_text())) for name, file in FILES.items()
}
DEPLOYMENTS = {
    each["metadata"]["name"]: (name, each)
    for name, objects in OBJECTS.items()
    for each in objects
    if each["kind"] == "Deployment"
}
files = pytest.mark.parametrize("file", FILES)
deployments = pytest.mark.parametrize("name", DEPLOYMENTS)


def of_kind(file: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in OBJECTS[file] if each["kind"] == kind]


def container(name: str) -> dict[str, Any]:
    [only] = DEPLOYMENTS[name][1]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def test_there_is_a_file_for_each() -> None:
    assert list(FILES) == ["operator", "scheduler", "training"]


@files
def test_a_file_is_what_the_code_makes(file: str) -> None:
    assert FILES[file].read_text() == deployment.text(file), "make manifests writes it anew"


@deployments
def test_the_image_names_no_registry(name: str) -> None:
    assert container(name)["image"] == "shoal:latest"


@deployments
def test_a_command_has_the_flags_it_is_given(name: str) -> None:
    program, command, *arguments = container(name)["command"]
    assert program == "shoal"
    asked = shoal(command, "--help")
    assert asked.returncode == 0
    own = [each for each in arguments if each.startswith("--") and each.partition("=")[0] in asked.stdout]
    if command == "scheduler":
        parse_arguments([each for each in arguments if each not in own])  # KAI's, which are read by other rules
    else:
        assert own == [each for each in arguments if each.startswith("--")]


@deployments
def test_a_deployment_finds_its_own_pods(name: str) -> None:
    spec = DEPLOYMENTS[name][1]["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def account_of(name: str) -> str:
    return str(DEPLOYMENTS[name][1]["spec"]["template"]["spec"]["serviceAccountName"])


def rules_of(file: str, account: str) -> list[dict[str, Any]]:
    """The rules of all roles that are bound to an account."""
    bound = [
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for each in of_kind(file, kind)
        if [subject["name"] for subject in each["subjects"]] == [account]
    ]
    roles = [each for kind in ("ClusterRole", "Role") for each in of_kind(file, kind)]
    return [rule for role in roles if (role["kind"], role["metadata"]["name"]) in bound for rule in role["rules"]]


@files
def test_every_program_has_an_account_of_its_own(file: str) -> None:
    accounts = [account_of(name) for name, (found, _) in DEPLOYMENTS.items() if found == file]
    assert sorted(accounts) == sorted(each["metadata"]["name"] for each in of_kind(file, "ServiceAccount"))
    assert len(set(accounts)) == len(accounts) == 2
    assert all(rules_of(file, account) for account in accounts)


def is_written(rule: dict[str, Any]) -> bool:
    return not set(rule["verbs"]) <= {"get", "list", "watch"}


@pytest.mark.parametrize("name", ["shoal-webhooks", "kai-admission", "kubeflow-trainer-webhooks"])
def test_webhooks_write_their_own_registrations_and_certificate_alone(name: str) -> None:
    file, _ = DEPLOYMENTS[name]
    written = [rule for rule in rules_of(file, account_of(name)) if is_written(rule)]
    kinds = {resource for rule in written for resource in rule["resources"]}
    assert kinds == {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "secrets"}
    for rule in written:
        # A Secret is made in the program's own namespace, by a name that RBAC does not get to see.
        assert rule.get("resourceNames") or (rule["resources"], rule["verbs"]) == (["secrets"], ["create"])
    role = next(each for each in of_kind(file, "Role") if each["metadata"]["name"].endswith(account_of(name)))
    assert any("secrets" in rule["resources"] for rule in role["rules"])
    [cluster_role] = [each for each in of_kind(file, "ClusterRole") if each["metadata"]["name"].endswith(name)]
    assert not [rule for rule in cluster_role["rules"] if "secrets" in rule["resources"]]


@files
def test_only_webhooks_touch_webhook_configurations(file: str) -> None:
    for name in (name for name, (found, _) in DEPLOYMENTS.items() if found == file):
        touched = [
            rule
            for rule in rules_of(file, account_of(name))
            if "admissionregistration.k8s.io" in rule["apiGroups"] and is_written(rule)
        ]
        assert bool(touched) == ("webhooks" in container(name)["command"])


@deployments
def test_every_container_is_confined(name: str) -> None:
    pod = DEPLOYMENTS[name][1]["spec"]["template"]["spec"]["securityContext"]
    assert pod["runAsNonRoot"]
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


SERVICES = {
    "shoal-webhooks": {443: 9443},
    "kubeflow-trainer-webhooks": {443: 9443},
    "kubeflow-trainer-controller-manager": {10443: 10443},
    "kai-admission": {443: 9443},
    "kai-scheduler-default": {8080: 8080, 8081: 8081},
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_leads_to_the_ports_of_its_deployment(name: str) -> None:
    file, deployed = DEPLOYMENTS[name]
    [service] = [each for each in of_kind(file, "Service") if each["metadata"]["name"] == name]
    assert service["spec"]["selector"].items() <= deployed["spec"]["template"]["metadata"]["labels"].items()
    ports = {each["name"]: each["containerPort"] for each in container(name)["ports"]}
    assert {each["port"]: ports[each["targetPort"]] for each in service["spec"]["ports"]} == SERVICES[name]


def test_every_service_is_looked_at() -> None:
    assert {each["metadata"]["name"] for file in FILES for each in of_kind(file, "Service")} == set(SERVICES)


SIDES = [("shoal-webhooks", "gangs"), ("kai-admission", "scheduler"), ("kubeflow-trainer-webhooks", "training")]


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_webhooks_are_told_their_service_and_leave_the_other_side_to_others(name: str, side: str) -> None:
    command = container(name)["command"]
    assert command[command.index("--service") + 1] == name
    assert command[command.index("--only") + 1] == side


@deployments
def test_probes_ask_ports_that_answer(name: str) -> None:
    ports = {each["name"]: each["containerPort"] for each in container(name)["ports"]}
    for probe in ("livenessProbe", "readinessProbe"):
        asked = container(name)[probe]["httpGet"]
        expected = (8080, "/metrics") if name == deployment.SCHEDULER else (8081, "z")
        assert (ports[asked["port"]], asked["path"][-len(expected[1]) :]) == expected


@files
def test_everything_is_in_one_namespace(file: str) -> None:
    [namespace] = [each["metadata"]["name"] for each in of_kind(file, "Namespace")]
    assert {each["metadata"].get("namespace", namespace) for each in OBJECTS[file]} == {namespace}
    assert OBJECTS[file][0]["kind"] == "Namespace", "or the rest is refused"


def test_the_scheduler_finds_its_configuration_and_it_says_what_is_built_in() -> None:
    [found] = of_kind("scheduler", "ConfigMap")
    pod = DEPLOYMENTS[deployment.SCHEDULER][1]["spec"]["template"]["spec"]
    [volume], [mount] = pod["volumes"], container(deployment.SCHEDULER)["volumeMounts"]
    assert (volume["name"], volume["configMap"]["name"]) == (mount["name"], found["metadata"]["name"])
    [file] = found["data"]
    assert f"--scheduler-conf={mount['mountPath']}/{file}" in container(deployment.SCHEDULER)["command"]
    said = read_configuration(found["data"][file].encode(), source="x")
    assert said == configuration_of({}, source="x")


def test_the_scheduler_holds_its_lease_where_it_may() -> None:
    _, _, *arguments = container(deployment.SCHEDULER)["command"]
    options = parse_arguments([each for each in arguments if not each.startswith("--plugin-server-host")])
    [role] = [each for each in of_kind("scheduler", "Role") if each["metadata"]["name"] == "kai-scheduler"]
    assert options.leader_elect
    assert role["metadata"]["namespace"] == options.namespace
    assert any("leases" in rule["resources"] for rule in role["rules"])
