"""Commands that need the worker's side: each module loads its heavy parts only when it runs."""
