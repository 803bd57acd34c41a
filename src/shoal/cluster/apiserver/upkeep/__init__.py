"""What the server does by itself: its first objects, the kinds of definitions, and roles that gather other roles."""
