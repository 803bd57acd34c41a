"""A researcher's program, run with the Kubeflow SDK as it is on PyPI; prints what it was given as one JSON object.

sdk_program.py STORY SETTINGS    settings as JSON: kubeconfig, namespace, and what the story asks for
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, CustomTrainerContainer, TrainerClient
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    Name,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainerArgs,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)

Settings = dict[str, Any]
WITHIN = 150


def train_alone(word: str) -> None:
    import os  # noqa: PLC0415 - the function travels by itself

    rank = os.environ.get("JAX_PROCESS_ID") or os.environ.get("PET_NODE_RANK")
    print(f"rank {rank} says {word}, and {os.environ['GREETING']}", flush=True)


def train_with_torch() -> None:
    import torch  # noqa: PLC0415
    from torch import distributed  # noqa: PLC0415

    distributed.init_process_group("gloo")
    total = torch.tensor([float(distributed.get_rank() + 1)])
    distributed.all_reduce(total)
    print(f"rank {distributed.get_rank()} sum {total.item():.0f}", flush=True)


def train_with_mpi() -> None:
    from mpi4py import MPI  # noqa: PLC0415

    everybody = MPI.COMM_WORLD
    total = everybody.allreduce(everybody.Get_rank() + 1)
    print(f"rank {everybody.Get_rank()} sum {total}", flush=True)


def fail() -> None:
    raise RuntimeError("the data are not there")


FUNCTIONS = {"torch": train_with_torch, "mpi": train_with_mpi, "fail": fail}


def a_life(client: TrainerClient, settings: Settings) -> Settings:
    """A function from its submission to its removal, by every call that there is."""
    runtimes = {runtime.name: runtime for runtime in client.list_runtimes()}
    name = client.train(
        runtime=client.get_runtime(settings["runtime"]),
        trainer=CustomTrainer(
            func=train_alone,
            func_args={"word": "hello"},
            num_nodes=2,
            env={"GREETING": "good morning"},
            resources_per_node=settings.get("resources"),
        ),
        options=[
            Name("greeting"),
            Labels({"team": "fish"}),
            Annotations({"note": "by the SDK"}),
            *patches(settings),
        ],
    )
    seen: list[str] = []
    running = client.wait_for_job_status(name, {"Running", "Complete"}, timeout=WITHIN, polling_interval=1)
    followed = list(client.get_job_logs(name, follow=True, step="node-1"))
    done = client.wait_for_job_status(
        name, timeout=WITHIN, polling_interval=1, callbacks=[lambda job: seen.append(job.status)]
    )
    got = client.get_job(name)
    logs = list(client.get_job_logs(name))
    events = client.get_job_events(name)
    listed = [job.name for job in client.list_jobs()]
    others = [job.name for job in client.list_jobs(runtime=runtimes["xgboost-distributed"])]
    client.delete_job(name)
    return {
        "runtimes": {
            one.name: {
                "framework": one.trainer.framework,
                "nodes": one.trainer.num_nodes,
                "image": one.trainer.image,
                "kind": one.kind.value,
            }
            for one in runtimes.values()
        },
        "name": name,
        "running": running.status,
        "done": done.status,
        "nodes": got.num_nodes,
        "runtime": got.runtime.name,
        "steps": sorted([step.name, step.status, step.device, str(step.device_count)] for step in got.steps),
        "followed": followed,
        "logs": logs,
        "events": sorted({(event.involved_object_kind, event.reason) for event in events}),
        "listed": listed,
        "of another runtime": others,
        "after": [job.name for job in client.list_jobs()],
    }


def a_container(client: TrainerClient, settings: Settings) -> Settings:
    """An image with a command and arguments."""
    name = client.train(
        runtime=settings["runtime"],
        trainer=CustomTrainerContainer(
            image=settings["image"], num_nodes=2, env={"GREETING": "good evening"}, resources_per_node={"cpu": 1}
        ),
        options=[
            TrainerCommand(["sh", "-c"]),
            TrainerArgs(['echo "$0, $GREETING"; exit 0', "hello"]),
            ActiveDeadlineSeconds(600),
            *patches(settings),
        ],
    )
    done = client.wait_for_job_status(name, timeout=WITHIN, polling_interval=1)
    return {
        "name": name,
        "done": done.status,
        "steps": sorted([step.name, step.device, str(step.device_count)] for step in done.steps),
        "logs": list(client.get_job_logs(name, step="node-1")),
    }


def a_function(client: TrainerClient, settings: Settings) -> Settings:
    """One of the functions, to its end, on two nodes."""
    name = client.train(
        runtime=settings.get("runtime"),
        trainer=CustomTrainer(func=FUNCTIONS[settings["function"]], num_nodes=2),
        options=[Name(settings["name"]), *patches(settings)],
    )
    done = client.wait_for_job_status(name, {"Complete", "Failed"}, timeout=WITHIN, polling_interval=1)
    return {
        "done": done.status,
        "steps": sorted(step.name for step in done.steps),
        "logs": list(client.get_job_logs(name)) if done.status == "Complete" else [],
        "events": sorted({(event.involved_object_kind, event.reason) for event in client.get_job_events(name)}),
    }


def patches(settings: Settings) -> list[RuntimePatch]:
    """Annotations of the nodes' pods, where the story has some."""
    if not settings.get("pod annotations"):
        return []
    pods = PodTemplatePatch(metadata={"annotations": settings["pod annotations"]})
    job = ReplicatedJobPatch(name="node", template=JobTemplatePatch(spec=JobSpecPatch(template=pods)))
    spec = JobSetSpecPatch(replicated_jobs=[job])
    return [RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=JobSetTemplatePatch(spec=spec)))]


STORIES = {"life": a_life, "container": a_container, "function": a_function}


def main() -> None:
    story, settings = sys.argv[1], json.loads(sys.argv[2])
    config = KubernetesBackendConfig(config_file=settings["kubeconfig"], namespace=settings["namespace"])
    print(json.dumps(STORIES[story](TrainerClient(backend_config=config), settings)))


if __name__ == "__main__":
    main()
