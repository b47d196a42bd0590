"""What exists: definitions and rules. Pure: no database, no broker, no network."""
