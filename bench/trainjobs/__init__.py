"""Many TrainJobs from their request to their end, by Shoal's controllers or by upstream's, watched from outside."""
