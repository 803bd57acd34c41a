"""Trains a function on two nodes with the Kubeflow SDK, and prints what the first of them says."""

from kubeflow.trainer import CustomTrainer, TrainerClient


def train(word: str) -> None:
    """Runs on every node; it travels by itself, so it brings its imports along."""
    import os  # noqa: PLC0415

    import jax  # noqa: PLC0415

    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
    )
    print(f"{word} from node {jax.process_index()} of {jax.process_count()}", flush=True)
    jax.distributed.shutdown()


client = TrainerClient()
name = client.train(
    runtime="jax-distributed",
    trainer=CustomTrainer(func=train, func_args={"word": "hello"}, num_nodes=2),
)
client.wait_for_job_status(name, {"Complete"})
print(*client.get_job_logs(name), sep="\n")
client.delete_job(name)
