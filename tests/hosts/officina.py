"""The command `officina`, with the counted skills in it and in the workers it starts; nothing else is changed."""

from typing import Any

from tests.faults import skills
from workers.commands import worker


def main() -> None:
    from workers import cli

    skills.install()
    shipped = worker.worker_command

    def with_proofs(*args: Any, **named: Any) -> list[str]:
        return ["tests.faults.worker" if word == "workers.commands.child" else word for word in shipped(*args, **named)]

    worker.worker_command = with_proofs
    cli.main()


if __name__ == "__main__":
    main()
