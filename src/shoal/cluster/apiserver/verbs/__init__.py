"""What can be asked of a kind: get, list, watch, create, update, patch, apply, delete; pipelines of pure steps."""
