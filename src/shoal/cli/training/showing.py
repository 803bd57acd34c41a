"""Answering ``shoal get``: what is read for it, what is printed, and what is said where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.api.jobset.names import JOB_SET_NAME
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES, TrainJob
from shoal.cli.exits import CommandError
from shoal.cli.output import Format, Table, show, to_table, write
from shoal.cli.training.clusters import Place
from shoal.cli.training.fitting import fitted, terminal_width
from shoal.cli.training.getting import GetFormat, Kind
from shoal.cli.training.pages import CUT_FIRST, hints, runtimes_table, train_jobs_table
from shoal.cli.training.remarks import remark
from shoal.cli.training.states import Standing, needs_pods, standing_of
from shoal.kube import Client, Forbidden, NotFound

if TYPE_CHECKING:
    from shoal.api.core import Pod

PODS_THAT_TELL = "status.phase!=Succeeded"
"""Pods that have done their work tell nothing more about how a run is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What ``shoal get`` is asked."""

    kind: Kind
    name: str
    everywhere: bool
    is_watched: bool
    output: GetFormat
    with_managed_fields: bool

    @property
    def is_for_people(self) -> bool:
        """Whether a table is wanted."""
        return self.output in (GetFormat.TABLE, GetFormat.WIDE)

    @property
    def is_wide(self) -> bool:
        """Whether it says why, however wide that is."""
        return self.output is GetFormat.WIDE

    @property
    def width(self) -> int | None:
        """How wide a table may be."""
        return None if self.is_wide else terminal_width()

    @property
    def fields(self) -> str:
        """The objects that are meant, for the server to choose."""
        return f"metadata.name={self.name}" if self.name else ""

    @property
    def pod_labels(self) -> str:
        """Their pods."""
        return f"{JOB_SET_NAME}={self.name}" if self.name else JOB_SET_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is."""

    documents: list[dict[str, Any]]
    table: Table
    jobs: Sequence[tuple[TrainJob, Standing]] = field(default=())
    shows_pods: bool = True
    """Whether pods may be read here."""


async def answer(place: Place, question: Question) -> None:
    """Prints what was asked for; watched, until somebody stops it."""
    async with place.client() as (client, own):
        namespace = "" if question.everywhere else own
        read = _train_jobs if question.kind is Kind.TRAIN_JOBS else _runtimes
        found = await read(client, question, namespace)
        if not found.documents and namespace:
            await _explain_nothing(client, question, namespace)
        if question.is_watched:
            from shoal.cli.training.watching import watch  # noqa: PLC0415 - seldom asked for

            await watch(client, question, namespace, with_pods=found.shows_pods)
            return
    if not question.is_for_people:
        _print_documents(question, found.documents)
    elif not found.documents:
        write(f"no {question.kind}{f' in {namespace}' if namespace else ''}\n")
    else:
        write(to_table(fitted(found.table, question.width, CUT_FIRST)))
        options = f" --data-dir {place.data_dir}" if place.data_dir is not None else ""
        for hint in [] if question.is_wide else hints(found.jobs, options):
            remark(hint)


def standings(jobs: Sequence[TrainJob], pods: Sequence[Pod]) -> list[tuple[TrainJob, Standing]]:
    """How each run is, by its own pods."""
    own: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        own.setdefault((pod.metadata.namespace, pod.metadata.labels.get(JOB_SET_NAME, "")), []).append(pod)
    return [(job, standing_of(job, own.get((job.metadata.namespace, job.metadata.name), ()))) for job in jobs]


async def _train_jobs(client: Client, question: Question, namespace: str) -> Found:
    documents = await _listed(client, TRAIN_JOBS, question, namespace)
    jobs = [TRAIN_JOBS.decode(msgspec.json.encode(one)) for one in documents]
    pods: list[Pod] = []
    shows_pods = True
    if question.is_watched or (question.is_for_people and any(map(needs_pods, jobs))):
        try:
            pods = await _pods(client, question, namespace)
        except Forbidden:
            shows_pods = False  # the status alone must do
    found = standings(jobs, pods)
    table = train_jobs_table(found, datetime.now(UTC), with_namespace=question.everywhere, is_wide=question.is_wide)
    return Found(documents=documents, table=table, jobs=found, shows_pods=shows_pods)


async def _runtimes(client: Client, question: Question, namespace: str) -> Found:
    of_cluster = await _listed(client, CLUSTER_TRAINING_RUNTIMES, question, "")
    of_namespace = await _listed(client, TRAINING_RUNTIMES, question, namespace)
    typed = [CLUSTER_TRAINING_RUNTIMES.decode(msgspec.json.encode(one)) for one in of_cluster]
    more = [TRAINING_RUNTIMES.decode(msgspec.json.encode(one)) for one in of_namespace]
    return Found(documents=[*of_cluster, *of_namespace], table=runtimes_table([*typed, *more]))


async def _listed(client: Client, resource: Any, question: Question, namespace: str) -> list[dict[str, Any]]:
    """The objects as the server has them, by namespace and name, each with what it is."""
    found = (await client.list(resource.documents(), namespace, field_selector=question.fields)).items
    marks = {"apiVersion": resource.api_version, "kind": resource.kind}
    ordered = sorted(found, key=lambda one: (one.metadata.namespace, one.metadata.name))
    return [marks | one.content for one in ordered]


async def _pods(client: Client, question: Question, namespace: str) -> list[Pod]:
    from shoal.api.core import PODS  # noqa: PLC0415 - most answers need none

    listing = await client.list(PODS, namespace, label_selector=question.pod_labels, field_selector=PODS_THAT_TELL)
    return listing.items


async def _explain_nothing(client: Client, question: Question, namespace: str) -> None:
    """Fails where nothing is no answer: in a namespace that is not there, or to one who named something."""
    from shoal.api.core import NAMESPACES  # noqa: PLC0415 - seldom needed

    try:
        await client.get(NAMESPACES, namespace)
    except NotFound:
        raise CommandError(f"there is no namespace {namespace}") from None
    except Forbidden:
        pass
    if question.name and question.kind is Kind.TRAIN_JOBS:
        raise CommandError(f"there is no trainjob {question.name} in {namespace}")
    if question.name:
        raise CommandError(f"there is no runtime {question.name}, neither in {namespace} nor for all namespaces")


def _print_documents(question: Question, documents: list[dict[str, Any]]) -> None:
    if not question.with_managed_fields:
        documents = [_without_managed_fields(one) for one in documents]
    is_one = question.name and len(documents) == 1
    value = documents[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": documents}
    show(value, Format(question.output.value), table=Table(rows=()))


def _without_managed_fields(document: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {key: metadata if key == "metadata" else value for key, value in document.items()}
