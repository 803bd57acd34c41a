"""One cycle's working state: what is tried and may be undone, and the rules that say which nodes are fit."""
