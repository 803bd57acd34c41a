"""What the server adds to a request, or refuses, before it is carried out: the built-in plugins and the webhooks."""
