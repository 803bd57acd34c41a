"""The way in and out: URLs, media types, representations of objects, and the HTTP server itself."""
