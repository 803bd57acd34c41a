"""The ClusterTrainingRuntimes that come with Shoal, a manifest each, by the names that Kubeflow Trainer gives them."""

from shoal.training.runtimes.loading import built_in_runtimes, chosen_runtimes

__all__ = ["built_in_runtimes", "chosen_runtimes"]
