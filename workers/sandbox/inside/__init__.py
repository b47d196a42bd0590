"""What runs on the far side of the wall: the keeper, started by a bare interpreter for every execution.

These modules import the standard library and each other only, start fast, and run on Python 3.9 and later, because the
interpreter inside may be the system's.
"""
