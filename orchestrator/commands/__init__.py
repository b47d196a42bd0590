"""The orchestrator's commands. Each imports what it needs when it runs, so that `officina --help` stays light."""
