"""The folders projects and conversations work in: what is written there goes through here."""
