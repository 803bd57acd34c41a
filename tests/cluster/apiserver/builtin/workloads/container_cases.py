"""Pods with one thing changed: containers, their environment, mounts and volumes."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.builtin.workloads.objects import CONTAINER, GONE
from tests.cluster.apiserver.builtin.workloads.pod_changes import MOUNT, VOLUME, C, env, ports, volume

CONTAINERS_AND_VOLUMES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no containers": {"spec/containers": []},
    "no spec": {"spec": GONE},
    "container without a name": {C + "name": ""},
    "container with a bad name": {C + "name": "Bad_Name"},
    "container with a dotted name": {C + "name": "a.b"},
    "container with a long name": {C + "name": "a" * 64},
    "two containers of a name": {"spec/containers/1": CONTAINER},
    "container without an image": {C + "image": GONE},
    "image with a blank": {C + "image": " app"},
    "image of latest": {C + "image": "app:latest"},
    "image by digest": {C + "image": "app@sha256:" + "a" * 64},
    "image of a registry with a port": {C + "image": "host:5000/app"},
    "image that is none": {C + "image": "::::"},
    "unknown pull policy": {C + "imagePullPolicy": "Sometimes"},
    "unknown termination message policy": {C + "terminationMessagePolicy": "Loud"},
    "port": ports({"containerPort": 80}),
    "port without a number": ports({"name": "http"}),
    "port too high": ports({"containerPort": 65536}),
    "port below zero": ports({"containerPort": -1, "hostPort": -2}),
    "port names twice": ports({"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}),
    "port name too long": ports({"name": "a" * 16, "containerPort": 1}),
    "port name of digits": ports({"name": "80", "containerPort": 1}),
    "port name with hyphens": ports({"name": "-a--b-", "containerPort": 1}),
    "port name in capitals": ports({"name": "HTTP", "containerPort": 1}),
    "unknown protocol": ports({"containerPort": 1, "protocol": "ICMP"}),
    "host port twice": ports({"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}),
    "port twice": ports({"containerPort": 1}, {"containerPort": 1}),
    "port with an address and no host port": ports({"containerPort": 1, "hostIP": "1.2.3.4"}),
    "host network": {"spec/hostNetwork": True, **ports({"containerPort": 80})},
    "host network with another port": {"spec/hostNetwork": True, **ports({"containerPort": 80, "hostPort": 81})},
    "variable": env({"name": "A", "value": "b"}),
    "variable without a name": env({"value": "b"}),
    "variable with an equals sign": env({"name": "A=B"}),
    "variable with digits first": env({"name": "1A"}),
    "variable not ASCII": env({"name": "ä"}),
    "variable twice": env({"name": "A", "value": "1"}, {"name": "A", "value": "2"}),
    "variable from nothing": env({"name": "A", "valueFrom": {}}),
    "variable from two": env(
        {
            "name": "A",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}},
        }
    ),
    "variable with a value and a source": env(
        {"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    ),
    "variable from a field": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
    "variable from a label": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}),
    "variable from a bad label": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['_']"}}}),
    "variable from a bad annotation": env(
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b/c']"}}}
    ),
    "variable from an unknown field": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}),
    "variable from a subscript": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x['a']"}}}),
    "variable from all labels": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}),
    "variable from the phase": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}),
    "variable from no field": env({"name": "A", "valueFrom": {"fieldRef": {}}}),
    "variable from another version": env(
        {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}
    ),
    "variable from a resource": env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}),
    "variable from an unknown resource": env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "cpu"}}}),
    "variable from no resource": env({"name": "A", "valueFrom": {"resourceFieldRef": {}}}),
    "variable with a bad CPU divisor": env(
        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "10"}}}
    ),
    "variable with a bad memory divisor": env(
        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "3"}}}
    ),
    "variable with a bad storage divisor": env(
        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.ephemeral-storage", "divisor": "3"}}}
    ),
    "variable with a bad page divisor": env(
        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi", "divisor": "3"}}}
    ),
    "variable from a secret": env({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}),
    "variable from a secret without a key": env({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}),
    "variable from a bad secret": env({"name": "A", "valueFrom": {"secretKeyRef": {"name": "S", "key": "..k"}}}),
    "variable from a map without a name": env({"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}}),
    "variable from a file": {
        **volume({"emptyDir": {}}),
        **env({"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K"}}}),
    },
    "variable from a file of no volume": env(
        {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "w", "path": "../f", "key": "K="}}}
    ),
    "variable from an empty file reference": env({"name": "A", "valueFrom": {"fileKeyRef": {}}}),
    "variables from a map": {C + "envFrom": [{"configMapRef": {"name": "m"}, "prefix": "P_"}]},
    "variables from nothing": {C + "envFrom": [{}]},
    "variables from two": {C + "envFrom": [{"configMapRef": {"name": "m"}, "secretRef": {"name": "S!"}}]},
    "variables from a map without a name": {C + "envFrom": [{"configMapRef": {}, "prefix": "="}]},
    "mount": {"spec/volumes": [VOLUME], C + "volumeMounts": [MOUNT]},
    "mount of no volume": {C + "volumeMounts": [MOUNT]},
    "mount without a path": {"spec/volumes": [VOLUME], C + "volumeMounts": [{"name": "v"}]},
    "mount without a name": {"spec/volumes": [VOLUME], C + "volumeMounts": [{"mountPath": "/v"}]},
    "mounts at a path": {"spec/volumes": [VOLUME], C + "volumeMounts": [MOUNT, MOUNT]},
    "mount below an absolute path": {
        "spec/volumes": [VOLUME],
        C + "volumeMounts": [{**MOUNT, "subPath": "/a", "subPathExpr": "../$(A)"}],
    },
    "mount propagation": {
        "spec/volumes": [VOLUME],
        C + "volumeMounts": [{**MOUNT, "mountPropagation": "Bidirectional"}],
    },
    "unknown mount propagation": {"spec/volumes": [VOLUME], C + "volumeMounts": [{**MOUNT, "mountPropagation": "X"}]},
    "recursive read-only": {
        "spec/volumes": [VOLUME],
        C + "volumeMounts": [{**MOUNT, "recursiveReadOnly": "Enabled", "mountPropagation": "HostToContainer"}],
    },
    "unknown recursive read-only": {
        "spec/volumes": [VOLUME],
        C + "volumeMounts": [{**MOUNT, "recursiveReadOnly": "Maybe"}],
    },
    "device of an emptyDir": {"spec/volumes": [VOLUME], C + "volumeDevices": [{"name": "v", "devicePath": "/../v"}]},
    "device that is mounted": {
        **volume({"persistentVolumeClaim": {"claimName": "c"}}),
        C + "volumeMounts": [MOUNT],
        C + "volumeDevices": [{"name": "v", "devicePath": "/v"}, {"name": "v", "devicePath": "/v"}, {}],
    },
    "volume without a source": {"spec/volumes": [{"name": "v"}]},
    "volume with two sources": volume({"emptyDir": {}, "hostPath": {"path": "/"}, "secret": {}}),
    "volume without a name": volume({"emptyDir": {}}, ""),
    "volume with a bad name": volume({"emptyDir": {}}, "Bad"),
    "volumes of a name": {"spec/volumes": [VOLUME, VOLUME]},
    "emptyDir": volume({"emptyDir": {"sizeLimit": "1Gi", "medium": "Memory"}}),
    "emptyDir below zero": volume({"emptyDir": {"sizeLimit": "-1"}}),
    "hostPath": volume({"hostPath": {"path": "/a"}}),
    "hostPath without a path": volume({"hostPath": {}}),
    "hostPath that goes up": volume({"hostPath": {"path": "/a/../b", "type": "Folder"}}),
    "secret volume": volume({"secret": {"secretName": "s"}}),
    "secret volume without a name": volume({"secret": {"defaultMode": 512}}),
    "secret volume with items": volume(
        {"secret": {"secretName": "s", "items": [{"key": "a", "path": "b"}, {"key": "c", "path": "b/d"}]}}
    ),
    "secret volume with bad items": volume(
        {
            "secret": {
                "secretName": "s",
                "items": [{}, {"key": "a", "path": "/b", "mode": -1}, {"key": "c", "path": "..d"}],
            }
        }
    ),
    "configMap volume": volume({"configMap": {"name": "m", "defaultMode": 256}}),
    "configMap volume without a name": volume({"configMap": {}}),
    "downward volume": volume(
        {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}
    ),
    "downward volume with bad items": volume(
        {
            "downwardAPI": {
                "items": [
                    {},
                    {"path": "a/../b", "fieldRef": {"fieldPath": "spec.nodeName"}, "mode": 999},
                    {"path": "c", "resourceFieldRef": {"resource": "limits.cpu"}},
                    {
                        "path": "d",
                        "resourceFieldRef": {"resource": "limits.cpu", "containerName": "main"},
                        "fieldRef": {"fieldPath": "metadata.name"},
                    },
                ]
            }
        }
    ),
    "projected volume": volume(
        {
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "t"}},
                    {"configMap": {"name": "m"}},
                    {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                ]
            }
        }
    ),
    "projected volume with bad sources": volume(
        {
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 1}},
                    {"serviceAccountToken": {"path": "../t", "expirationSeconds": 2**33}},
                    {"configMap": {"items": [{"key": "a", "path": "x"}]}},
                    {"secret": {"name": "s", "items": [{"key": "a", "path": "x"}]}, "configMap": {"name": "m"}},
                ]
            }
        }
    ),
    "projected volume without sources": volume({"projected": {"sources": [{}]}}),
    "projected trust bundle is dropped": volume(
        {"projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "p"}}]}}
    ),
    "claim volume": volume({"persistentVolumeClaim": {"claimName": "c"}}),
    "claim volume without a name": volume({"persistentVolumeClaim": {}}),
    "nfs volume": volume({"nfs": {"server": "s", "path": "/p"}}),
    "nfs volume without a server": volume({"nfs": {"path": "p"}}),
    "csi volume": volume({"csi": {"driver": "csi.example"}}),
    "csi volume with a bad driver": volume({"csi": {"driver": "a_" * 40, "nodePublishSecretRef": {"name": "S"}}}),
    "csi volume without a driver": volume({"csi": {"nodePublishSecretRef": {}}}),
    "ephemeral volume": volume(
        {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            }
        }
    ),
    "ephemeral volume without a template": volume({"ephemeral": {}}),
    "ephemeral volume with a bad template": volume(
        {"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "n"}, "spec": {"volumeMode": "X"}}}}
    ),
    "image volume": volume({"image": {"reference": "app:1"}}),
    "image volume without a reference": volume({"image": {"pullPolicy": "X"}}),
    "git volume": volume({"gitRepo": {"directory": "/a"}}),
    "iscsi volume defaults": volume(
        {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}
    ),
}
