"""Variables by a kubelet's rules."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core import Service
from shoal.api.core.pod_details import FileKeySelector
from shoal.cluster.node.process.contents import ApiAddress, ConfigProblem, NodeFacts
from shoal.cluster.node.process.contents.env_files import InvalidEnvFile, variable_in
from shoal.cluster.node.process.contents.environment import Surroundings, command_line, variables
from shoal.cluster.node.process.contents.expansion import expand
from shoal.cluster.node.process.contents.references import CONFIG_MAP, SECRET, Content, Reference
from shoal.cluster.node.process.contents.service_links import service_variables
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.contents.conftest import ADDRESS, a_container

FACTS = NodeFacts(name="local", address="10.88.0.1", allocatable={"cpu": "4", "memory": "8Gi"})
CONTENTS = {
    Reference(CONFIG_MAP, "team", "settings"): Content({"MODE": b"fast", "level": b"3"}, {"blob": b"\xff"}),
    Reference(SECRET, "team", "keys"): Content({"TOKEN": b"abc", "MODE": b"safe", "raw": b"\xff\xfe"}),
}


def found(
    env: list[dict[str, Any]] | None = None,
    *,
    env_from: list[dict[str, Any]] | None = None,
    services: dict[str, str] | None = None,
    pod: dict[str, Any] | None = None,
    resources: dict[str, Any] | None = None,
    file: str = "",
) -> dict[str, str]:
    container = a_container(env=env or [], envFrom=env_from or [], resources=resources or {})

    def file_variable(chosen: FileKeySelector) -> str:
        return variable_in(file, chosen.key)

    return variables(
        Surroundings(
            pod=a_local_pod(**(pod or {})),
            container=container,
            address=ADDRESS,
            facts=FACTS,
            services=services or {},
            contents=CONTENTS,
            file_variable=file_variable,
        )
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("$(A)$(B)", "1$(A)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$(A", "$(A"),
        ("$A ${A}", "$A ${A}"),
        ("costs 5$", "costs 5$"),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
    ],
)
def test_references_are_replaced_where_the_name_is_known(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "$(A)"}) == expected


def test_a_variable_may_refer_to_those_before_it_and_to_services() -> None:
    env = [
        {"name": "EARLY", "value": "$(LATE)"},
        {"name": "LATE", "value": "x"},
        {"name": "URL", "value": "http://$(API_SERVICE_HOST)/$(LATE)/$(MODE)"},
    ]
    result = found(env, env_from=[{"configMapRef": {"name": "settings"}}], services={"API_SERVICE_HOST": "10.96.0.9"})
    assert result["EARLY"] == "$(LATE)"
    assert result["URL"] == "http://10.96.0.9/x/fast"


def test_what_is_written_wins_over_whole_objects_and_those_over_services() -> None:
    from_both: list[dict[str, Any]] = [
        {"configMapRef": {"name": "settings"}},
        {"secretRef": {"name": "missing", "optional": True}},
    ]
    result = found([{"name": "MODE", "value": "mine"}], env_from=from_both, services={"level": "9", "OTHER": "s"})
    assert result == {"MODE": "mine", "level": "3", "OTHER": "s"}


def test_all_keys_of_an_object_come_with_their_prefix_and_the_later_object_wins() -> None:
    both: list[dict[str, Any]] = [
        {"configMapRef": {"name": "settings"}},
        {"prefix": "P_", "configMapRef": {"name": "settings"}},
    ]
    assert found(env_from=both) == {"MODE": "fast", "level": "3", "P_MODE": "fast", "P_level": "3"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "shop"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['a/b']", "x"),
        ("metadata.annotations", 'a/b="x"\nz="say \\"hi\\"\\n"'),
        ("spec.nodeName", "local"),
        ("spec.serviceAccountName", "worker"),
        ("status.hostIP", "10.88.0.1"),
        ("status.hostIPs", "10.88.0.1"),
        ("status.podIP", ADDRESS),
        ("status.podIPs", ADDRESS),
    ],
)
def test_a_pod_knows_its_own_fields(path: str, expected: str) -> None:
    metadata = {"labels": {"app": "shop"}, "annotations": {"z": 'say "hi"\n', "a/b": "x"}}
    env = [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    assert found(env, pod={"metadata": metadata})["V"] == expected


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "1m", "250"),
        ("requests.cpu", "0", "1"),
        ("requests.memory", "1Mi", "1"),
        ("limits.memory", "1Gi", "8"),
        ("limits.ephemeral-storage", None, "0"),
    ],
)
def test_a_container_knows_its_resources_in_units_and_its_missing_limits_are_the_nodes(
    resource: str, divisor: str | None, expected: str
) -> None:
    chosen = {"resource": resource} | ({"divisor": divisor} if divisor is not None else {})
    env = [{"name": "V", "valueFrom": {"resourceFieldRef": chosen}}]
    resources = {"limits": {"cpu": "1500m"}, "requests": {"cpu": "250m", "memory": "100"}}
    assert found(env, resources=resources)["V"] == expected


def test_a_missing_limit_is_that_of_the_whole_pod_before_that_of_the_node() -> None:
    env = [{"name": "V", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Gi"}}}]
    assert found(env, pod={"resources": {"limits": {"memory": "2Gi"}}})["V"] == "2"


def test_keys_are_read_and_optional_ones_left_out() -> None:
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "MODE"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "TOKEN"}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "none", "key": "TOKEN", "optional": True}}},
        {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "none", "optional": True}}},
    ]
    assert found(env) == {"A": "fast", "B": "abc"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found'),
        ({"secretKeyRef": {"name": "none", "key": "k"}}, 'secret "none" not found'),
        ({"configMapKeyRef": {"name": "settings", "key": "k"}}, "couldn't find key k in ConfigMap team/settings"),
        ({"secretKeyRef": {"name": "keys", "key": "k"}}, "couldn't find key k in Secret team/keys"),
        ({"configMapKeyRef": {"name": "settings", "key": "blob"}}, "couldn't find key blob in ConfigMap team/settings"),
        ({"secretKeyRef": {"name": "keys", "key": "raw"}}, "the value of raw is not UTF-8: mount it as a file"),
        ({"fieldRef": {"fieldPath": "spec.secret"}}, "unsupported fieldPath: spec.secret"),
        ({"resourceFieldRef": {"resource": "limits.gpu"}}, "unsupported container resource : limits.gpu"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "x"}}, "container x not found"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_variable_that_cannot_be_had_keeps_the_container_waiting(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        found([{"name": "V", "valueFrom": source}])
    assert (caught.value.reason, caught.value.message) == ("CreateContainerConfigError", message)


def test_a_value_that_no_environment_can_hold_is_refused() -> None:
    with pytest.raises(ConfigProblem, match="NUL"):
        found([{"name": "V", "value": "a\0b"}])


def test_a_variable_may_come_from_a_file_of_another_container() -> None:
    chosen = {"volumeName": "shared", "path": "env", "key": "B"}
    env = [{"name": "V", "valueFrom": {"fileKeyRef": chosen}}]
    assert found(env, file="A='1'\nB='2'\n") == {"V": "2"}
    assert found([{"name": "V", "valueFrom": {"fileKeyRef": {**chosen, "optional": True}}}], file="A='1'\n") == {}
    with pytest.raises(ConfigProblem, match='environment variable key "B" not found in file "env"'):
        found(env, file="A='1'\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("KEY='v'", "v"),
        ("  KEY='v' # more", "v"),
        ("# no\n\nKEY='a # b = c'\n", "a # b = c"),
        ("X='1\n2'\nKEY='one\n  two'\n", "one\n  two"),
        ("KEY= 'v'", ""),
        ("OTHER='v'", ""),
        ("KEY='v'\r\n", "v"),
        ("KEY='$HOME'", "$HOME"),
    ],
)
def test_a_file_of_variables_is_read_as_a_shell_would(content: str, expected: str) -> None:
    assert variable_in(content, "KEY") == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("nothing", "line 1: missing '='"),
        ("='v'", "line 1: empty variable name"),
        ("\nKEY ='v'", "line 2: whitespace before '='"),
        ("KEY=v", "line 1: value must be enclosed in single quotes"),
        ("KEY='v", "starting at line 1: unclosed single quote"),
        ("A='1' B='2'", "line 1: unexpected content after closing quote"),
    ],
)
def test_a_file_that_a_shell_would_read_otherwise_is_refused(content: str, problem: str) -> None:
    with pytest.raises(InvalidEnvFile, match=problem):
        variable_in(content, "KEY")


def a_service(name: str, namespace: str, address: str, *ports: dict[str, Any]) -> Service:
    spec = {"clusterIP": address, "ports": list(ports) or [{"port": 80}]}
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, Service)


API = a_service("kubernetes", "default", "10.96.0.1", {"name": "https", "port": 443})


def test_services_of_the_namespace_and_the_api_server_are_variables() -> None:
    sql, log = {"name": "sql", "port": 5432}, {"name": "udp-log", "port": 9, "protocol": "UDP"}
    services = [
        API,
        a_service("my-db", "team", "10.96.0.5", sql, log),
        a_service("other", "elsewhere", "10.96.0.6"),
        a_service("headless", "team", "None"),
        a_service("alias", "team", ""),
    ]
    result = service_variables(services, "team", has_links=True)
    assert {name: value for name, value in result.items() if name.startswith("MY_DB")} == {
        "MY_DB_SERVICE_HOST": "10.96.0.5",
        "MY_DB_SERVICE_PORT": "5432",
        "MY_DB_SERVICE_PORT_SQL": "5432",
        "MY_DB_SERVICE_PORT_UDP_LOG": "9",
        "MY_DB_PORT": "tcp://10.96.0.5:5432",
        "MY_DB_PORT_5432_TCP": "tcp://10.96.0.5:5432",
        "MY_DB_PORT_5432_TCP_PROTO": "tcp",
        "MY_DB_PORT_5432_TCP_PORT": "5432",
        "MY_DB_PORT_5432_TCP_ADDR": "10.96.0.5",
        "MY_DB_PORT_9_UDP": "udp://10.96.0.5:9",
        "MY_DB_PORT_9_UDP_PROTO": "udp",
        "MY_DB_PORT_9_UDP_PORT": "9",
        "MY_DB_PORT_9_UDP_ADDR": "10.96.0.5",
    }
    assert result["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    assert not any(name.startswith(("OTHER", "HEADLESS", "ALIAS")) for name in result)


def test_without_links_only_the_api_server_is_named() -> None:
    result = service_variables([API, a_service("db", "team", "10.96.0.5")], "team", has_links=False)
    assert {name.split("_")[0] for name in result} == {"KUBERNETES"}


def test_in_the_machines_network_the_api_server_is_where_it_can_be_reached() -> None:
    result = service_variables([API], "team", has_links=True, api_server=ApiAddress("127.0.0.1", 7443))
    assert result["KUBERNETES_SERVICE_HOST"] == "127.0.0.1"
    assert result["KUBERNETES_SERVICE_PORT"] == result["KUBERNETES_SERVICE_PORT_HTTPS"] == "7443"


def test_commands_and_arguments_refer_to_variables() -> None:
    container = a_container(command=["$(SHELL)", "-c"], args=["echo $(A) $(NONE)"])
    assert command_line(container, {"SHELL": "sh", "A": "1"}) == (["sh", "-c"], ["echo 1 $(NONE)"])
