"""One agent in this process against a script, `officina graph run`: a store in memory, and all else as in a worker."""
