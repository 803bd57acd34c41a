"""The volumes of a pod: each has a name and exactly one source, and each source needs some fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.api.meta import ZERO_QUANTITY, parse_quantity
from shoal.cluster.apiserver.builtin.names import label_problems, outside, subdomain_problems
from shoal.cluster.apiserver.builtin.workloads.claims import claim_template_problems
from shoal.cluster.apiserver.builtin.workloads.containers import pull_policy_problems
from shoal.cluster.apiserver.builtin.workloads.projections import (
    downward_file_problems,
    key_problems,
    mode_problems,
    projected_problems,
)
from shoal.cluster.apiserver.builtin.workloads.texts import backstep_problems, descending_path_problems
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)

Source = dict[str, Any]
Rule = Callable[[Source, str], list[FieldProblem]]

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def check_volumes(
    volumes: list[dict[str, Any]], pod_name: str, path: str, problems: list[FieldProblem], *, is_pod: bool
) -> dict[str, dict[str, Any]]:
    """Checks all volumes, and gives those that are good by their names; ``pod_name`` is empty for a template."""
    good: dict[str, dict[str, Any]] = {}
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        found = _source_problems(volume, name, pod_name, here, is_pod=is_pod)
        if not name:
            found.append(required(f"{here}.name"))
        elif messages := label_problems(name):
            found += [invalid(f"{here}.name", name, each) for each in messages]
        if name in good:
            found.append(duplicate(f"{here}.name", name))
        if found:
            problems += found
        else:
            good[name] = volume
    return good


def _source_problems(
    volume: dict[str, Any], name: str, pod_name: str, path: str, *, is_pod: bool
) -> list[FieldProblem]:
    kinds = [kind for kind in volume if kind in _RULES]
    if not kinds:
        return [required(path, "must specify a volume type")]
    if len(kinds) > 1:
        kinds.sort(key=_ORDER.__getitem__)
    first = kinds[0]
    problems = _RULES[first](volume[first], f"{path}.{_SHOWN_AS.get(first, first)}")
    if first == "ephemeral" and pod_name and name:
        claim = f"{pod_name}-{name}"
        problems += [invalid(f"{path}.name", name, f'PVC name "{claim}": {each}') for each in subdomain_problems(claim)]
    if first == "image" and is_pod and not volume["image"].get("reference"):
        problems.insert(0, required(f"{path}.image.reference"))
    return problems + [forbidden(f"{path}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:]]


def _needs(*fields: str) -> Rule:
    """A source of which nothing is known but that some fields must be set."""

    def problems(source: Source, path: str) -> list[FieldProblem]:
        return [required(f"{path}.{field}") for field in fields if not source.get(field)]

    return problems


def _empty_dir(source: Source, path: str) -> list[FieldProblem]:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit) < ZERO_QUANTITY:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Source, path: str) -> list[FieldProblem]:
    target, kind = source.get("path", ""), source.get("type")
    if not target:
        return [required(f"{path}.path")]
    problems = backstep_problems(target, f"{path}.path")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        problems.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return problems


def _git_repository(source: Source, path: str) -> list[FieldProblem]:
    problems = [] if source.get("repository") else [required(f"{path}.repository")]
    return problems + descending_path_problems(source.get("directory", ""), f"{path}.directory")


def _disk(field: str) -> Rule:
    def problems(source: Source, path: str) -> list[FieldProblem]:
        found = [] if source.get(field) else [required(f"{path}.{field}")]
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            found.append(invalid(f"{path}.partition", partition, outside(1, 255)))
        return found

    return problems


def _secret(source: Source, path: str) -> list[FieldProblem]:
    problems = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return problems + _items(source, path)


def _config_map(source: Source, path: str) -> list[FieldProblem]:
    problems = [] if source.get("name") else [required(f"{path}.name")]
    return problems + _items(source, path)


def _items(source: Source, path: str) -> list[FieldProblem]:
    problems = mode_problems(source.get("defaultMode"), f"{path}.defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        problems += key_problems(item, f"{path}.items[{index}]")
    return problems


def _downward(source: Source, path: str) -> list[FieldProblem]:
    problems = mode_problems(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        problems += downward_file_problems(item, path)
    return problems


def _nfs(source: Source, path: str) -> list[FieldProblem]:
    problems = _needs("server", "path")(source, path)
    target = source.get("path", "")
    if not target.startswith("/"):
        problems.append(invalid(f"{path}.path", target, "must be an absolute path"))
    return problems


def _csi(source: Source, path: str) -> list[FieldProblem]:
    driver = source.get("driver", "")
    problems: list[FieldProblem] = []
    if not driver:
        problems.append(required(f"{path}.driver"))
    else:
        if len(driver) > 63:
            problems.append(too_long(f"{path}.driver", 63))
        problems += [invalid(f"{path}.driver", driver, each) for each in subdomain_problems(driver.lower())]
    if (secret := source.get("nodePublishSecretRef")) is not None:
        name = secret.get("name", "")
        if not name:
            problems.append(required(f"{path}.nodePublishSecretRef.name"))
        problems += [invalid(f"{path}.name", name, each) for each in subdomain_problems(name) if name]
    return problems


def _ephemeral(source: Source, path: str) -> list[FieldProblem]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return claim_template_problems(template, f"{path}.volumeClaimTemplate")


def _image(source: Source, path: str) -> list[FieldProblem]:
    return pull_policy_problems(source.get("pullPolicy", ""), f"{path}.pullPolicy")


# In the order in which the first of several sources is the one that counts.
_RULES: Mapping[str, Rule] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repository,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": _needs("targetPortal", "iqn"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _needs(),
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _needs("registry", "volume"),
    "downwardAPI": _downward,
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "storageos": _needs("volumeName"),
    "projected": projected_problems,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
_ORDER = {kind: index for index, kind in enumerate(_RULES)}
_SHOWN_AS = {"gcePersistentDisk": "persistentDisk"}
