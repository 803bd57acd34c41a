"""Training: TrainJobs and their runtimes, and JobSets, which run them."""
