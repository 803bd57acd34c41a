"""Makes the kind tables of the embedded API server: from Go's types and from what a real server says of itself."""
