"""What the server serves: each kind's names, schema and rules; and how bodies become values in their normal form."""
