"""The same work on other systems, each in one file that needs nothing but its library: `make bench-peers`.

What they need is in `requirements.txt` and goes into an environment of its own, never into ours.
"""
