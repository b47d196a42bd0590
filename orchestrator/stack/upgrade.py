"""Bring the schema up in a process of its own: `python -m orchestrator.stack.upgrade`.

The one that supervises the stack stays small for it: the database library alone is larger than all it holds.
"""

import sys


def main() -> int:
    from orchestrator.commands.faults import report
    from orchestrator.settings import get_settings
    from orchestrator.store.database import upgrade

    try:
        upgrade(get_settings())
    except Exception as error:
        return report(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
