"""Pods with one thing changed: resources, probes, security, and where they may run."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.builtin.workloads.objects import GONE
from tests.cluster.apiserver.builtin.workloads.pod_changes import GPU, C, affinity, amounts, nodes, pods, probe, spread

RESOURCES_AND_SCHEDULING: dict[str, dict[str, Any]] = {
    "request and limit": amounts({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi"}),
    "limits alone": amounts({"cpu": "1", "memory": "1Gi"}),
    "request above its limit": amounts({"cpu": "1"}, {"cpu": "2"}),
    "request below zero": amounts(None, {"cpu": "-1"}),
    "request of unknown": amounts(None, {"colour": "1"}),
    "request of a bad name": amounts(None, {"a/b/c": "1"}),
    "request of a quota name": amounts(None, {"requests.cpu": "1"}),
    "request of storage": amounts(None, {"storage": "1"}),
    "device": {C + "resources": GPU},
    "half a device": amounts({"example.com/gpu": "1.5"}),
    "device without a limit": amounts(None, {"example.com/gpu": "1"}),
    "devices of two amounts": amounts({"example.com/gpu": "2"}, {"example.com/gpu": "1"}),
    "device of requests": amounts({"requests.example.com/gpu": "1"}),
    "huge pages": amounts({"hugepages-2Mi": "4Mi", "cpu": "1"}),
    "huge pages alone": amounts({"hugepages-2Mi": "4Mi"}),
    "part of a huge page": amounts({"hugepages-2Mi": "3Mi", "cpu": "1"}),
    "part of a byte": amounts({"memory": "100m"}),
    "part of a milli": amounts(None, {"cpu": "1u", "memory": "1.0005"}),
    "container claim": {
        "spec/resourceClaims": [{"name": "g", "resourceClaimName": "c"}],
        C + "resources": {"claims": [{"name": "g"}]},
    },
    "container claims that are none": {
        C + "resources": {"claims": [{"name": "h"}, {}, {"name": "h"}, {"name": "i", "request": "R_"}]}
    },
    "container claims beside others": {
        "spec/resourceClaims": [{"name": "g", "resourceClaimName": "c"}, {"name": "a", "resourceClaimName": "c"}],
        C + "resources": {"claims": [{"name": "h"}]},
    },
    "bad resource claims": {
        "spec/resourceClaims": [
            {"name": "g"},
            {"name": "g", "resourceClaimName": "c"},
            {"resourceClaimName": "C"},
            {"name": "X", "resourceClaimName": "c", "resourceClaimTemplateName": "D"},
        ]
    },
    "pod resources": {"spec/resources": {"limits": {"cpu": "2", "memory": "1Gi"}}, **amounts(None, {"cpu": "1"})},
    "pod resources too small": {
        "spec/resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
        **amounts({"cpu": "3"}, {"cpu": "2"}),
    },
    "pod resources of devices": {"spec/resources": {"limits": {"example.com/gpu": "1"}}},
    "pod resources of pages": {
        "spec/resources": {"limits": {"cpu": "1"}},
        **amounts({"hugepages-2Mi": "2Mi", "cpu": "1"}),
    },
    "liveness": probe("livenessProbe", {"httpGet": {"port": 80}}),
    "liveness of two": probe("livenessProbe", {"httpGet": {"port": 80}, "exec": {"command": ["x"]}}),
    "liveness of nothing": probe("livenessProbe", {}),
    "liveness succeeds twice": probe("livenessProbe", {"exec": {"command": ["x"]}, "successThreshold": 2}),
    "probe below zero": probe(
        "readinessProbe", {"exec": {}, "initialDelaySeconds": -1, "periodSeconds": -1, "timeoutSeconds": -1}
    ),
    "readiness with a grace period": probe(
        "readinessProbe", {"tcpSocket": {"port": "web"}, "terminationGracePeriodSeconds": 3}
    ),
    "startup with a bad grace period": probe(
        "startupProbe", {"grpc": {"port": 0}, "terminationGracePeriodSeconds": 0, "successThreshold": 3}
    ),
    "probe of grpc": probe("readinessProbe", {"grpc": {"port": 80}}),
    "probe of http": probe(
        "livenessProbe",
        {"httpGet": {"port": "WEB", "scheme": "FTP", "httpHeaders": [{"name": "a b", "value": "c"}]}},
    ),
    "lifecycle": {C + "lifecycle": {"preStop": {"sleep": {"seconds": 3}}, "postStart": {"httpGet": {"port": 1}}}},
    "lifecycle that sleeps long": {C + "lifecycle": {"preStop": {"sleep": {"seconds": 300}}}},
    "lifecycle of nothing": {C + "lifecycle": {"preStop": {}}},
    "stop signal is dropped": {C + "lifecycle": {"stopSignal": "SIGTERM"}},
    "resize policy": {C + "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
    "bad resize policies": {
        C + "resizePolicy": [
            {"resourceName": "gpu", "restartPolicy": "X"},
            {},
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
        ],
        "spec/restartPolicy": "Never",
    },
    "restart policy of a container": {C + "restartPolicy": "OnFailure"},
    "unknown restart policy of a container": {C + "restartPolicy": "Often"},
    "restart rules": {
        C + "restartPolicy": "Never",
        C + "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
    },
    "bad restart rules": {
        C + "restartPolicyRules": [{"action": "X"}, {"action": "Restart", "exitCodes": {"operator": "Is"}}]
    },
    "init container": {"spec/initContainers": [{"name": "i", "image": "x"}]},
    "init container with a probe": {
        "spec/initContainers": [
            {"name": "i", "image": "x", "livenessProbe": {"exec": {"command": ["x"]}}, "lifecycle": {"preStop": {}}}
        ]
    },
    "init container of a taken name": {"spec/initContainers": [{"name": "main", "image": "x"}, {"image": "x"}]},
    "sidecar": {
        "spec/initContainers": [
            {"name": "i", "image": "x", "restartPolicy": "Always", "livenessProbe": {"exec": {"command": ["x"]}}}
        ]
    },
    "init container with rules": {"spec/initContainers": [{"name": "i", "image": "x", "restartPolicyRules": [{}]}]},
    "init container that would restart": {
        "spec/initContainers": [
            {"name": "i", "image": "x", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
        ]
    },
    "ephemeral container": {"spec/ephemeralContainers": [{"name": "e", "image": "x"}]},
    "unknown restart policy": {"spec/restartPolicy": "Often"},
    "unknown DNS policy": {"spec/dnsPolicy": "Mine"},
    "no DNS": {"spec/dnsPolicy": "None"},
    "no name servers": {"spec/dnsPolicy": "None", "spec/dnsConfig": {"searches": ["a"]}},
    "DNS": {"spec/dnsConfig": {"nameservers": ["1.2.3.4", "2001:DB8::1"], "searches": ["a.b.", ".", "_x.y"]}},
    "bad DNS": {
        "spec/dnsConfig": {
            "nameservers": ["1.2.3", "01.2.3.4", "::ffff:1.2.3.4", "x"],
            "searches": ["A", "a" * 254],
            "options": [{}],
        }
    },
    "many searches": {"spec/dnsConfig": {"searches": [f"{'a' * 60}.{each}" for each in range(40)]}},
    "node selector": {"spec/nodeSelector": {"beta.kubernetes.io/os": "linux", "b": "c"}},
    "bad node selector": {"spec/nodeSelector": {"a/b/c": "linux!"}},
    "node name": {"spec/nodeName": "n1"},
    "bad node name": {"spec/nodeName": "N 1"},
    "bad host names": {"spec/hostname": "H", "spec/subdomain": "a.b"},
    "deadline of none": {"spec/activeDeadlineSeconds": 0},
    "deadline too long": {"spec/activeDeadlineSeconds": 2**31},
    "grace period below zero": {"spec/terminationGracePeriodSeconds": -1},
    "toleration": {"spec/tolerations": [{"key": "a", "operator": "Exists"}]},
    "bad tolerations": {
        "spec/tolerations": [
            {"operator": "Equal"},
            {"key": "a/b/c", "value": "x y"},
            {"key": "a", "operator": "Exists", "value": "b"},
            {"key": "a", "operator": "Lt", "value": "5"},
            {"key": "a", "operator": "Like"},
            {"key": "a", "effect": "Never", "tolerationSeconds": 3},
        ]
    },
    "host alias": {"spec/hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a.b"]}, {"ip": "1.2.3.4"}]},
    "bad host alias": {"spec/hostAliases": [{"ip": "1.2.3.400", "hostnames": ["A"]}]},
    "bad runtime class name": {"spec/os": {"name": "plan9"}},
    "empty system": {"spec/os": {}},
    "linux": {"spec/os": {"name": "linux"}, "spec/securityContext": {"windowsOptions": {"runAsUserName": "u"}}},
    "windows": {
        "spec/os": {"name": "windows"},
        "spec/hostPID": True,
        "spec/securityContext": {"runAsUser": 1, "fsGroup": 2, "sysctls": [{"name": "a", "value": "b"}]},
        C + "securityContext": {"privileged": True, "capabilities": {}, "runAsGroup": 3},
    },
    "windows user": {C + "securityContext": {"windowsOptions": {"runAsUserName": "a\\b\\c"}}},
    "windows users": {
        "spec/securityContext": {"windowsOptions": {"runAsUserName": "...", "gmsaCredentialSpec": ""}},
        C + "securityContext": {"windowsOptions": {"runAsUserName": "do/main\\us@er", "gmsaCredentialSpecName": "A_"}},
    },
    "windows host process": {C + "securityContext": {"windowsOptions": {"hostProcess": True}}},
    "gate": {"spec/schedulingGates": [{"name": "a.b/c"}]},
    "bad gates": {"spec/schedulingGates": [{"name": "a/b/c"}, {"name": "d"}, {"name": "d"}]},
    "gate and node": {"spec/schedulingGates": [{"name": "a"}], "spec/nodeName": "n"},
    "readiness gate": {"spec/readinessGates": [{"conditionType": "a.b/c"}, {"conditionType": "!"}]},
    "preemption": {"spec/os": {"name": ""}},
    "security": {
        "spec/securityContext": {"runAsUser": -1, "fsGroup": 2**31, "supplementalGroups": [1, -1], "runAsGroup": 0},
        C + "securityContext": {"runAsUser": -1, "runAsGroup": 2**31},
    },
    "security policies": {
        "spec/securityContext": {
            "fsGroupChangePolicy": "X",
            "supplementalGroupsPolicy": "Y",
            "seLinuxChangePolicy": "Z",
            "seccompProfile": {"type": "W"},
            "appArmorProfile": {"type": "V"},
        }
    },
    "seccomp without a profile": {"spec/securityContext": {"seccompProfile": {"type": "Localhost"}}},
    "seccomp with a profile": {
        "spec/securityContext": {"seccompProfile": {"type": "Unconfined", "localhostProfile": "p"}},
        C + "securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "/p"}},
    },
    "seccomp of nothing": {C + "securityContext": {"seccompProfile": {}, "appArmorProfile": {}}},
    "apparmor": {
        "spec/securityContext": {"appArmorProfile": {"type": "Localhost"}},
        C + "securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": " p"}},
    },
    "apparmor with a profile": {
        C + "securityContext": {"appArmorProfile": {"type": "Unconfined", "localhostProfile": "p"}}
    },
    "escalation": {C + "securityContext": {"allowPrivilegeEscalation": False, "privileged": True}},
    "escalation by capability": {
        C + "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}
    },
    "proc mount": {C + "securityContext": {"procMount": "Unmasked"}},
    "unknown proc mount": {C + "securityContext": {"procMount": "X"}},
    "sysctls": {"spec/securityContext": {"sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}]}},
    "bad sysctls": {
        "spec/securityContext": {
            "sysctls": [{"name": "", "value": "1"}, {"name": "A", "value": "1"}, {"name": "net.a", "value": ""}] * 2
        },
        "spec/hostNetwork": True,
    },
    "shared processes": {"spec/shareProcessNamespace": True, "spec/hostPID": True},
    "no host users": {"spec/hostUsers": False, "spec/hostPID": True, "spec/hostIPC": True, "spec/hostNetwork": True},
    "host name": {"spec/hostnameOverride": "A" * 65, "spec/setHostnameAsFQDN": True},
    "host name on the host": {"spec/hostnameOverride": "a", "spec/hostNetwork": True},
    "overhead": {"spec/imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
    "account by its old name": {"spec/serviceAccountName": GONE, "spec/serviceAccount": "default"},
    "scheduling group is dropped": {"spec/schedulingGroup": {"podGroupName": "g"}},
    "node affinity": nodes({"key": "a", "operator": "In", "values": ["b"]}),
    "node affinity of no terms": affinity(
        nodeAffinity={"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    ),
    "bad node affinity": nodes(
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["x"]},
        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
        {"key": "a/b/c", "operator": "Is"},
        {"key": "a", "operator": "In", "values": ["x y"]},
        fields=(
            {"key": "metadata.name", "operator": "In", "values": ["N"]},
            {"key": "metadata.uid", "operator": "Exists"},
            {"key": "metadata.name", "operator": "NotIn", "values": ["a", "b"]},
        ),
    ),
    "preferred node affinity": affinity(
        nodeAffinity={
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]}},
                {"weight": 101, "preference": {}},
            ]
        }
    ),
    "pod affinity": pods(),
    "pod affinity without a key": pods(topologyKey=GONE),
    "pod affinity without a selector": pods(labelSelector=GONE, matchLabelKeys=["a"]),
    "bad pod affinity": pods(
        labelSelector={"matchExpressions": [{"key": "a", "operator": "Is"}], "matchLabels": {"b!": "c!"}},
        namespaces=["N"],
        namespaceSelector={"matchExpressions": [{"key": "a", "operator": "In"}]},
        topologyKey="a/b/c",
        matchLabelKeys=["m", "n", "x y"],
        mismatchLabelKeys=["m"],
    ),
    "pod affinity by own labels": {
        "metadata/labels": {"m": "1", "n": "2", "app": "x"},
        **pods(matchLabelKeys=["m"], mismatchLabelKeys=["n"]),
    },
    "pod affinity by a label twice": {"metadata/labels": {"app": "x"}, **pods(matchLabelKeys=["app"])},
    "preferred pod affinity": affinity(
        podAntiAffinity={
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}]
        }
    ),
    "spread": spread(),
    "spread by own labels": {"metadata/labels": {"m": "1"}, **spread(matchLabelKeys=["m"])},
    "bad spread": spread(
        maxSkew=0,
        topologyKey=GONE,
        whenUnsatisfiable="Maybe",
        minDomains=0,
        nodeAffinityPolicy="X",
        nodeTaintsPolicy="Y",
        labelSelector={"matchLabels": {"a!": "b"}},
    ),
    "spread anyway with domains": spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2, labelSelector=GONE),
    "spread twice": {
        "spec/topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]},
            {"maxSkew": 2, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
        ]
    },
    "deletion cost": {"metadata/annotations": {"controller.kubernetes.io/pod-deletion-cost": "+1"}},
    "seccomp annotation": {"metadata/annotations": {"seccomp.security.alpha.kubernetes.io/pod": "x"}},
    "seccomp annotation and field": {
        "metadata/annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"},
        "spec/securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    },
    "apparmor annotation": {
        "metadata/annotations": {"container.apparmor.security.beta.kubernetes.io/main": "localhost/p"}
    },
    "apparmor annotation of no container": {
        "metadata/annotations": {"container.apparmor.security.beta.kubernetes.io/other": "x"}
    },
    "old annotation": {
        "metadata/annotations": {
            "scheduler.alpha.kubernetes.io/critical-pod": "",
            "pod.beta.kubernetes.io/init-containers": "",
        }
    },
    "dotted name": {"metadata/name": "a.b"},
    "bad name": {"metadata/name": "A"},
    "labels": {"metadata/labels": {"a!": "b!"}},
    "guaranteed": amounts({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1024Mi"}),
    "burstable": amounts(None, {"cpu": "0.1"}),
}
