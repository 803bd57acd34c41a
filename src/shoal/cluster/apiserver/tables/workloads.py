"""How workloads are printed: what makes pods, and what guards them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import age, between
from shoal.cluster.apiserver.tables.printer import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    Printer,
    Printers,
    boolean,
    column,
    metadata_of,
    number,
    part_of,
)
from shoal.cluster.apiserver.tables.wording import NONE, bool_text, container_texts, labels_text, selector_text

_NOT_APPLICABLE = "N/A"


def _pod_template(value: Object, _now: datetime) -> list[Any]:
    template = part_of(value, "template")
    labels = metadata_of(template).get("labels")
    return [metadata_of(value).get("name") or "", *container_texts(template), labels_text(labels)]


def _replication_controller(value: Object, now: datetime) -> list[Any]:
    return _replicas(value, now, labels_text(part_of(value, "spec").get("selector")))


def _replica_set(value: Object, now: datetime) -> list[Any]:
    return _replicas(value, now, selector_text(part_of(value, "spec").get("selector")) or NONE)


def _replicas(value: Object, now: datetime, selector: str) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    return [
        metadata.get("name") or "",
        spec.get("replicas") or 0,
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        age(metadata.get("creationTimestamp"), now),
        *container_texts(part_of(spec, "template")),
        selector,
    ]


def _deployment(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    return [
        metadata.get("name") or "",
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        age(metadata.get("creationTimestamp"), now),
        *container_texts(part_of(spec, "template")),
        selector_text(spec.get("selector")),
    ]


def _stateful_set(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    return [
        metadata.get("name") or "",
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        age(metadata.get("creationTimestamp"), now),
        *container_texts(part_of(spec, "template")),
    ]


def _daemon_set(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    template = part_of(spec, "template")
    return [
        metadata.get("name") or "",
        status.get("desiredNumberScheduled") or 0,
        status.get("currentNumberScheduled") or 0,
        status.get("numberReady") or 0,
        status.get("updatedNumberScheduled") or 0,
        status.get("numberAvailable") or 0,
        labels_text(part_of(template, "spec").get("nodeSelector")),
        age(metadata.get("creationTimestamp"), now),
        *container_texts(template),
        selector_text(spec.get("selector")) or NONE,
    ]


def _controller_revision(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    controller = NONE
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            group, _, _ = (owner.get("apiVersion") or "").rpartition("/")
            kind = owner.get("kind") or ""
            controller = f"{(f'{kind}.{group}' if group else kind).lower()}/{owner.get('name') or ''}"
            break
    revision = value.get("revision") or 0
    return [metadata.get("name") or "", controller, revision, age(metadata.get("creationTimestamp"), now)]


def _job(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    succeeded, wanted, parallelism = status.get("succeeded") or 0, spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        completions = f"{succeeded}/{wanted}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    start, end = status.get("startTime"), status.get("completionTime")
    taken = "" if not start else between(start, end) if end else age(start, now)
    return [
        metadata.get("name") or "",
        _job_state(status, is_deleted=bool(metadata.get("deletionTimestamp"))),
        completions,
        taken,
        age(metadata.get("creationTimestamp"), now),
        *container_texts(part_of(spec, "template")),
        selector_text(spec.get("selector")) or NONE,
    ]


def _job_state(status: Object, *, is_deleted: bool) -> str:
    conditions: dict[str, str] = {}
    for condition in status.get("conditions") or ():
        conditions.setdefault(condition.get("type"), condition.get("status"))
    for kind in ("Complete", "Failed"):
        if conditions.get(kind) == "True":
            return kind
    if is_deleted:
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if conditions.get(kind) == "True":
            return kind
    return "Running"


def _cron_job(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    job, last, zone = part_of(spec, "jobTemplate", "spec"), status.get("lastScheduleTime"), spec.get("timeZone")
    return [
        metadata.get("name") or "",
        spec.get("schedule") or "",
        NONE if zone is None else zone,
        bool_text(spec.get("suspend")),
        len(status.get("active") or ()),
        age(last, now) if last else NONE,
        age(metadata.get("creationTimestamp"), now),
        *container_texts(part_of(job, "template")),
        selector_text(job.get("selector")) or NONE,
    ]


def _disruption_budget(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    available, unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        metadata.get("name") or "",
        _NOT_APPLICABLE if available is None else str(available),
        _NOT_APPLICABLE if unavailable is None else str(unavailable),
        status.get("disruptionsAllowed") or 0,
        age(metadata.get("creationTimestamp"), now),
    ]


_DESIRED = number("Desired", "Pods that are asked for.")
_READY = number("Ready", "Pods that are ready.")
_REPLICA_COLUMNS = [
    NAME,
    _DESIRED,
    number("Current", "Pods that there are."),
    _READY,
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
]

PRINTERS: Printers = {
    ("", "PodTemplate"): Printer(
        [
            NAME,
            column("Containers", "Names of the containers in the template."),
            column("Images", "Images of the containers in the template."),
            column("Pod Labels", "Labels that pods of the template get."),
        ],
        _pod_template,
    ),
    ("", "ReplicationController"): Printer(_REPLICA_COLUMNS, _replication_controller),
    ("apps", "ReplicaSet"): Printer(_REPLICA_COLUMNS, _replica_set),
    ("apps", "Deployment"): Printer(
        [
            NAME,
            column("Ready", "Pods that are ready, of those asked for."),
            column("Up-to-date", "Pods that are of the newest template."),
            column("Available", "Pods that have been ready for long enough."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        _deployment,
    ),
    ("apps", "StatefulSet"): Printer(
        [NAME, column("Ready", "Pods that are ready, of those asked for."), AGE, CONTAINERS, IMAGES], _stateful_set
    ),
    ("apps", "DaemonSet"): Printer(
        [
            NAME,
            number("Desired", "Nodes that should run the pod."),
            number("Current", "Nodes that run the pod and should."),
            number("Ready", "Nodes on which the pod is ready."),
            number("Up-to-date", "Nodes that run a pod of the newest template."),
            number("Available", "Nodes on which the pod has been ready for long enough."),
            column("Node Selector", "Labels of the nodes that should run the pod."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        _daemon_set,
    ),
    ("apps", "ControllerRevision"): Printer(
        [
            NAME,
            column("Controller", "The object whose state this is."),
            column("Revision", "Which state it is, counted up."),
            AGE,
        ],
        _controller_revision,
    ),
    ("batch", "Job"): Printer(
        [
            NAME,
            column("Status", "What the job is doing, or how it ended."),
            column("Completions", "Pods that succeeded, of those that must."),
            column("Duration", "Time that the job took, or has taken."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        _job,
    ),
    ("batch", "CronJob"): Printer(
        [
            NAME,
            column("Schedule", "When jobs are started, as cron writes it."),
            column("Timezone", "The time zone of the schedule."),
            boolean("Suspend", "Whether no more jobs are started."),
            number("Active", "Jobs that are running."),
            column("Last Schedule", "Time since a job was last started."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        _cron_job,
    ),
    ("policy", "PodDisruptionBudget"): Printer(
        [
            NAME,
            column("Min Available", "Pods that must stay available."),
            column("Max Unavailable", "Pods that may be unavailable."),
            number("Allowed Disruptions", "Pods that may be disrupted now."),
            AGE,
        ],
        _disruption_budget,
    ),
}
