"""The HTTP API: rows seen and moved over HTTP, and traces as they grow (spec: skills 20)."""
