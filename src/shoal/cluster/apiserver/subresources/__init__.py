"""What is not a plain object: scale, binding, eviction, tokens, reviews, finalize, and the parts of a running pod."""
