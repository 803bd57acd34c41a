"""One PodCliqueSet of many replicas: made, scaled up, scaled down and deleted, watched from outside."""
