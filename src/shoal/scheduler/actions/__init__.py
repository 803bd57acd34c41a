"""What a cycle does, one action after the other: give out what is free, then see whether moving or ending helps."""
