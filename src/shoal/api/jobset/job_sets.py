"""JobSets: several kinds of Jobs that run, succeed, fail and restart as one."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from shoal.api.crd import Column, CustomResource, Int32, Rule, Version, field_schema, struct_schema
from shoal.api.jobset.names import CONTROLLER, GROUP
from shoal.api.jobset.templates import ClaimTemplate, JobTemplate
from shoal.api.meta import Condition, Object, Resource, Wire

ALL, ANY = "All", "Any"
"""Of how many Jobs success is asked for."""
ANY_ORDER, IN_ORDER = "AnyOrder", "InOrder"
"""In what order replicated jobs start."""
READY, COMPLETE = "Ready", "Complete"
"""What a replicated job may wait for in another."""
RECREATE, BLOCKING_RECREATE, IN_PLACE = "Recreate", "BlockingRecreate", "InPlaceRestart"
"""How a JobSet is restarted."""
FAIL_JOB_SET = "FailJobSet"
RESTART_JOB_SET = "RestartJobSet"
RESTART_JOB_SET_AND_IGNORE_MAX = "RestartJobSetAndIgnoreMaxRestarts"
RESTART_JOB = "RestartJob"
RESTART_JOB_AND_IGNORE_MAX = "RestartJobAndIgnoreMaxRestarts"
"""What a rule of a failure policy may do."""
DELETE, RETAIN = "Delete", "Retain"
"""What becomes of claims when their JobSet is deleted."""
DEFAULT_GROUP = "default"

_IMMUTABLE = Rule("self == oldSelf", "Value is immutable")
_Names: TypeAlias = Annotated[list[str], field_schema(list_type="atomic")]


class DependsOn(Wire, frozen=True, kw_only=True):
    """What a replicated job waits for."""

    name: Annotated[str, field_schema("A replicated job that comes earlier in the list.")]
    status: Annotated[Literal["Ready", "Complete"], field_schema("What it must have reached.")]


class ReplicatedJob(Wire, frozen=True, kw_only=True):
    """Jobs made from one template."""

    name: Annotated[str, field_schema("Unique in the JobSet; part of the names of Jobs and pods.")]
    group_name: Annotated[str, field_schema("A group whose Jobs are numbered together.", default=DEFAULT_GROUP)] = ""
    template: Annotated[JobTemplate, field_schema("Each of the Jobs.")]
    replicas: Annotated[Int32 | None, field_schema("How many Jobs.", default=1, minimum=0)] = None
    depends_on: Annotated[
        list[DependsOn],
        field_schema(
            "What must be reached before these Jobs start.",
            max_items=5,
            list_type="map",
            list_map_keys=["name"],
            rules=[_IMMUTABLE],
        ),
    ] = []

    @property
    def count(self) -> int:
        """How many Jobs."""
        return 1 if self.replicas is None else self.replicas

    @property
    def group(self) -> str:
        """The group whose Jobs are numbered together."""
        return self.group_name or DEFAULT_GROUP

    @property
    def job_spec(self) -> dict[str, Any]:
        """The specification of each Job."""
        return self.template.get("spec") or {}

    @property
    def pod_template(self) -> dict[str, Any]:
        """The pods of each Job."""
        return self.job_spec.get("template") or {}


class Network(Wire, frozen=True, kw_only=True):
    """How pods find each other."""

    # "DNS" is one word on the wire and the camel case of "dns" is not.
    enable_dns_hostnames: Annotated[bool | None, field_schema("Whether pods have names under the subdomain.")] = (
        msgspec.field(default=None, name="enableDNSHostnames")
    )
    subdomain: Annotated[str, field_schema("The headless service; the JobSet's name where unset.")] = ""
    publish_not_ready_addresses: Annotated[
        bool | None, field_schema("Whether pods are found before they are ready.")
    ] = None


class SuccessPolicy(Wire, frozen=True, kw_only=True):
    """Which Jobs must succeed."""

    operator: Annotated[Literal["All", "Any"], field_schema("All of them, or any one.")]
    target_replicated_jobs: Annotated[_Names, field_schema("Jobs that count; all where empty.")] = []


Action: TypeAlias = Literal[
    "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob", "RestartJobAndIgnoreMaxRestarts"
]


class FailureRule(Wire, frozen=True, kw_only=True):
    """What to do about a Job that failed in a certain way."""

    name: Annotated[str, field_schema("Unique in the policy.", required=True)] = ""
    action: Annotated[Action, field_schema("What to do.")]
    on_job_failure_reasons: Annotated[
        list[str], field_schema("Reasons of a Job's Failed condition; any where empty.")
    ] = []
    on_job_failure_message_patterns: Annotated[
        list[str], field_schema("Patterns (RE2) of that condition's message; any where empty.")
    ] = []
    target_replicated_jobs: Annotated[_Names, field_schema("Whose Jobs it is about; all where empty.")] = []


class FailurePolicy(Wire, frozen=True, kw_only=True):
    """What to do about failed Jobs; the first rule that matches decides, and a restart where none does."""

    max_restarts: Annotated[Int32 | None, field_schema("How often the JobSet may be restarted; never where unset.")] = (
        None
    )
    restart_strategy: Annotated[
        str,
        field_schema("How it is restarted.", default=RECREATE, enum=(RECREATE, BLOCKING_RECREATE, IN_PLACE)),
    ] = ""
    rules: Annotated[list[FailureRule], field_schema("Rules, in order.")] = []

    @property
    def most_restarts(self) -> int:
        """How often the JobSet may be restarted."""
        return self.max_restarts or 0


class StartupPolicy(Wire, frozen=True, kw_only=True):
    """In what order replicated jobs start. Superseded by ``dependsOn``."""

    startup_policy_order: Annotated[Literal["AnyOrder", "InOrder"], field_schema("The order.")]


class Coordinator(Wire, frozen=True, kw_only=True):
    """The pod that the others turn to."""

    replicated_job: Annotated[str, field_schema("Its replicated job.")]
    job_index: Annotated[int | None, field_schema("Its Job; the first where unset.")] = None
    pod_index: Annotated[int | None, field_schema("Its index in the Job; the first where unset.")] = None


class ClaimRetention(Wire, frozen=True, kw_only=True):
    """What becomes of claims."""

    when_deleted: Annotated[
        Literal["Delete", "Retain"] | None, field_schema("When the JobSet is deleted.", default=DELETE)
    ] = None


class VolumeClaimPolicy(Wire, frozen=True, kw_only=True):
    """Volume claims that all Jobs share, and what becomes of them."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)",
                "namespace cannot be set for VolumeClaimPolicies templates",
            )
        ]
    )

    templates: Annotated[list[ClaimTemplate], field_schema("The claims.", max_items=50, list_type="atomic")] = []
    retention_policy: Annotated[ClaimRetention | None, field_schema("What becomes of them.")] = None

    @property
    def is_retained(self) -> bool:
        """Whether the claims outlive the JobSet."""
        return self.retention_policy is not None and self.retention_policy.when_deleted == RETAIN


class JobSetSpec(Wire, frozen=True, kw_only=True):
    """Which Jobs run, in what order, and when they are done."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder'"
                " && self.replicatedJobs.exists(x, has(x.dependsOn)))",
                "StartupPolicy and DependsOn APIs are mutually exclusive",
            )
        ]
    )

    replicated_jobs: Annotated[
        list[ReplicatedJob], field_schema("The Jobs, by template.", list_type="map", list_map_keys=["name"])
    ] = []
    network: Annotated[Network | None, field_schema("How pods find each other.", rules=[_IMMUTABLE])] = None
    success_policy: Annotated[
        SuccessPolicy | None, field_schema("Which Jobs must succeed; all where unset.", rules=[_IMMUTABLE])
    ] = None
    failure_policy: Annotated[
        FailurePolicy | None, field_schema("What to do about failed Jobs; fail where unset.", rules=[_IMMUTABLE])
    ] = None
    startup_policy: Annotated[StartupPolicy | None, field_schema("In what order Jobs start.", rules=[_IMMUTABLE])] = (
        None
    )
    suspend: Annotated[bool | None, field_schema("Whether all Jobs wait.")] = None
    coordinator: Annotated[Coordinator | None, field_schema("The pod that the others turn to.")] = None
    managed_by: Annotated[str | None, field_schema("Who looks after the JobSet; its controller where unset.")] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, field_schema("How long the JobSet is kept after its end.", minimum=0)
    ] = None
    volume_claim_policies: Annotated[
        list[VolumeClaimPolicy],
        field_schema("Volume claims that Jobs share.", max_items=50, list_type="atomic", rules=[_IMMUTABLE]),
    ] = []

    @property
    def is_suspended(self) -> bool:
        """Whether all Jobs wait."""
        return bool(self.suspend)

    @property
    def starts_in_order(self) -> bool:
        """Whether each replicated job waits for the one before it."""
        return self.startup_policy is not None and self.startup_policy.startup_policy_order == IN_ORDER

    @property
    def total(self) -> int:
        """How many Jobs there are in all."""
        return sum(each.count for each in self.replicated_jobs)


class ReplicatedJobStatus(Wire, frozen=True, kw_only=True):
    """How the Jobs of one template are. The counters are on the wire even when they are zero."""

    name: Annotated[str, field_schema("The replicated job.")]
    ready: Annotated[Int32, field_schema("Jobs whose pods are ready or done.", required=True)] = msgspec.field(
        default_factory=int
    )
    succeeded: Annotated[Int32, field_schema("Jobs that completed.", required=True)] = msgspec.field(
        default_factory=int
    )
    failed: Annotated[Int32, field_schema("Jobs that failed.", required=True)] = msgspec.field(default_factory=int)
    active: Annotated[Int32, field_schema("Jobs with pods.", required=True)] = msgspec.field(default_factory=int)
    suspended: Annotated[Int32, field_schema("Jobs that wait.", required=True)] = msgspec.field(default_factory=int)
    job_restarts: Annotated[
        list[Int32], field_schema("How often each Job was restarted by itself.", max_items=1024, list_type="atomic")
    ] = []
    job_restarts_count_towards_max: Annotated[
        list[Int32], field_schema("Of those, what counts as a restart.", max_items=1024, list_type="atomic")
    ] = []


class JobSetStatus(Wire, frozen=True, kw_only=True):
    """How far a JobSet has come."""

    conditions: Annotated[list[Condition], field_schema("Its state.", list_type="map", list_map_keys=["type"])] = []
    restarts: Annotated[Int32, field_schema("How often it was restarted.")] = msgspec.field(default_factory=int)
    restarts_count_towards_max: Annotated[Int32, field_schema("Restarts that count towards the maximum.")] = 0
    terminal_state: Annotated[str, field_schema("Completed or Failed, once it has ended.")] = ""
    replicated_jobs_status: Annotated[
        list[ReplicatedJobStatus],
        field_schema("How the Jobs of each template are.", list_type="map", list_map_keys=["name"]),
    ] = []
    previous_in_place_restart_attempt: Annotated[
        Int32 | None, field_schema("The attempt that pods leave.", minimum=0)
    ] = None
    current_in_place_restart_attempt: Annotated[
        Int32 | None, field_schema("The attempt that pods are in.", minimum=0)
    ] = None


class JobSet(Object, frozen=True, kw_only=True):
    """Several kinds of Jobs that run, succeed, fail and restart as one."""

    spec: Annotated[JobSetSpec, field_schema("What is asked for.")] = JobSetSpec()
    status: Annotated[JobSetStatus, field_schema("What there is.")] = JobSetStatus()

    @property
    def subdomain(self) -> str:
        """The name of the headless service, under which pods are found."""
        return (self.spec.network and self.spec.network.subdomain) or self.metadata.name

    @property
    def has_dns(self) -> bool:
        """Whether pods have names under the subdomain."""
        return self.spec.network is not None and bool(self.spec.network.enable_dns_hostnames)

    @property
    def manager(self) -> str:
        """Who looks after it."""
        return self.spec.managed_by or CONTROLLER


JOB_SETS = Resource(type=JobSet, group=GROUP, version="v1alpha2", kind="JobSet", plural="jobsets")

DEFINITION = CustomResource(
    versions=(
        Version(
            resource=JOB_SETS,
            status=True,
            columns=(
                Column(name="TerminalState", path=".status.terminalState"),
                Column(name="Restarts", path=".status.restarts"),
                Column(name="Completed", path='.status.conditions[?(@.type=="Completed")].status'),
                Column(name="Suspended", path=".spec.suspend"),
                Column(name="Age", path=".metadata.creationTimestamp", type="date"),
            ),
        ),
    ),
)
