"""``shoal up`` beside a real Kubernetes with kwok: started, filled with nodes and pods, watched, and emptied."""
