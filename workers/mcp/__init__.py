"""The client of MCP servers: programs and addresses that people configured, and what they offer as tools (spec: 18)."""
