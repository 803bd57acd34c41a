"""A large cluster's view, a server that publishes one after the other, and somebody who asks."""
