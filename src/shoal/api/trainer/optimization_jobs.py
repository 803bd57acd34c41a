"""OptimizationJobs: the definition alone, so that objects can be stored. Nothing acts on them yet, here or upstream."""

from __future__ import annotations

from typing import Annotated

from shoal.api.crd import CustomResource, Int32, Int64, Rule, Version, field_schema, struct_schema
from shoal.api.meta import Condition, Object, Resource, Wire
from shoal.api.trainer.embedded import TEMPLATE_METADATA, TemplateMetadata
from shoal.api.trainer.names import GROUP, VERSION
from shoal.api.trainer.train_jobs import TrainJobSpec

_NUMBER_PATTERN = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_ORDERED = Rule("double(self.min) < double(self.max)", "min must be strictly less than max")


class Uniform(Wire, frozen=True, kw_only=True):
    """Any number between two."""

    SCHEMA = struct_schema(rules=[_ORDERED])

    min: Annotated[str, field_schema("The least.", min_length=1, max_length=64, pattern=_NUMBER_PATTERN)]
    max: Annotated[str, field_schema("The most.", min_length=1, max_length=64, pattern=_NUMBER_PATTERN)]
    type: Annotated[str, field_schema("Whether it is whole.", default="Float", enum=("Int", "Float"))] = "Float"


class LogUniform(Wire, frozen=True, kw_only=True):
    """Any number between two, small ones as often as large ones."""

    SCHEMA = struct_schema(rules=[Rule("double(self.min) > 0.0", "min must be strictly greater than 0"), _ORDERED])

    min: Annotated[str, field_schema("The least.", min_length=1, max_length=64, pattern=_NUMBER_PATTERN)]
    max: Annotated[str, field_schema("The most.", min_length=1, max_length=64, pattern=_NUMBER_PATTERN)]
    type: Annotated[str, field_schema("Whether it is whole.", default="Float", enum=("Int", "Float"))] = "Float"


class Categorical(Wire, frozen=True, kw_only=True):
    """One of several values."""

    choices: Annotated[
        list[Annotated[str, field_schema(max_length=64)]],
        field_schema("The values.", list_type="set", min_items=1, max_items=100),
    ]


class SearchSpace(Wire, frozen=True, kw_only=True):
    """What a parameter may be."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "[has(self.uniform),has(self.logUniform),has(self.categorical)].filter(x,x==true).size() == 1",
                "exactly one of the fields in [uniform logUniform categorical] must be set",
            )
        ]
    )

    uniform: Annotated[Uniform | None, field_schema("Any number between two.")] = None
    log_uniform: Annotated[LogUniform | None, field_schema("Any number between two, on a logarithmic scale.")] = None
    categorical: Annotated[Categorical | None, field_schema("One of several values.")] = None


class Parameter(Wire, frozen=True, kw_only=True):
    """What is varied from trial to trial."""

    name: Annotated[str, field_schema("Its name.", min_length=1, max_length=64)]
    search_space: Annotated[SearchSpace, field_schema("What it may be.")]


class Objective(Wire, frozen=True, kw_only=True):
    """What is sought."""

    metric: Annotated[str, field_schema("The metric that counts.", min_length=1, max_length=64)]
    direction: Annotated[
        str, field_schema("Whether more is better.", default="Minimize", enum=("Maximize", "Minimize"))
    ] = "Minimize"


class RandomSearch(Wire, frozen=True, kw_only=True):
    """Trials at random."""

    seed: Annotated[Int64 | None, field_schema("Where the random numbers begin.")] = None


class GridSearch(Wire, frozen=True, kw_only=True):
    """Every combination."""


class SearchAlgorithm(Wire, frozen=True, kw_only=True):
    """How the next trial is chosen."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "[has(self.random),has(self.grid)].filter(x,x==true).size() == 1",
                "exactly one of the fields in [random grid] must be set",
            )
        ]
    )

    random: Annotated[RandomSearch | None, field_schema("At random.")] = None
    grid: Annotated[GridSearch | None, field_schema("Every combination.")] = None


class TrainJobTemplate(Wire, frozen=True, kw_only=True):
    """The TrainJob of each trial."""

    metadata: Annotated[
        TemplateMetadata | None,
        field_schema(
            "Labels and annotations of the TrainJobs.",
            shape=TEMPLATE_METADATA,
            rules=[Rule("!has(self.name) && !has(self.namespace)", "name and namespace cannot be set in a template.")],
        ),
    ] = None
    spec: Annotated[TrainJobSpec, field_schema("The TrainJobs.")]


class OptimizationJobSpec(Wire, frozen=True, kw_only=True):
    """A search for the best parameters."""

    SCHEMA = struct_schema(
        rules=[
            Rule("self == oldSelf", "OptimizationJobSpec is immutable and cannot be updated after creation"),
            Rule("self.parallelTrials <= self.numTrials", "parallelTrials cannot exceed numTrials"),
            Rule(
                "!has(self.searchAlgorithm.grid) || self.parameters.all(p, has(p.searchSpace.categorical))",
                "Grid search requires all parameters to be Categorical; Uniform and LogUniform are not supported.",
            ),
        ]
    )

    objectives: Annotated[
        list[Objective],
        field_schema("What is sought.", list_type="map", list_map_keys=["metric"], min_items=1, max_items=1),
    ]
    parameters: Annotated[
        list[Parameter],
        field_schema("What is varied.", list_type="map", list_map_keys=["name"], min_items=1, max_items=100),
    ]
    num_trials: Annotated[Int32, field_schema("How many trials.", default=1, minimum=1, maximum=100)] = 1
    parallel_trials: Annotated[Int32, field_schema("How many at a time.", default=1, minimum=1, maximum=100)] = 1
    search_algorithm: Annotated[
        SearchAlgorithm | None, field_schema("How the next trial is chosen.", default={"random": {}})
    ] = None
    train_job_template: Annotated[TrainJobTemplate, field_schema("The TrainJob of each trial.")]


class ParameterValue(Wire, frozen=True, kw_only=True):
    """What a parameter was."""

    name: Annotated[str, field_schema("The parameter.", min_length=1, max_length=64)]
    value: Annotated[str, field_schema("Its value.", min_length=1, max_length=64)]


class OptimizationResult(Wire, frozen=True, kw_only=True):
    """The best trial."""

    train_job_name: Annotated[str, field_schema("Its TrainJob.", min_length=1, max_length=63)]
    parameters: Annotated[
        list[ParameterValue],
        field_schema("What its parameters were.", list_type="map", list_map_keys=["name"], max_items=100),
    ] = []


class OptimizationJobStatus(Wire, frozen=True, kw_only=True):
    """How a search is."""

    conditions: Annotated[
        list[Condition],
        field_schema("Its state.", list_type="map", list_map_keys=["type"], max_items=100),
    ] = []
    result: Annotated[OptimizationResult | None, field_schema("The best trial.")] = None


class OptimizationJob(Object, frozen=True, kw_only=True):
    """A search for the best parameters of a training run."""

    spec: Annotated[OptimizationJobSpec, field_schema("What is asked for.")]
    status: Annotated[OptimizationJobStatus, field_schema("What there is.")] = OptimizationJobStatus()


OPTIMIZATION_JOBS = Resource(
    type=OptimizationJob, group=GROUP, version=VERSION, kind="OptimizationJob", plural="optimizationjobs"
)

DEFINITION = CustomResource(versions=(Version(resource=OPTIMIZATION_JOBS, status=True),))
