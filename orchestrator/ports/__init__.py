"""The stateful sides of skills."""
