"""What the server does by itself: its first objects, kinds of definitions, roles that gather others, old events."""
