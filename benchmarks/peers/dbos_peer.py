"""DBOS: durable workflows on PostgreSQL, its queues, two worker processes.

python -m benchmarks.peers.dbos_peer postgres WHERE [--quick] W1 W2 W3 W5
"""

# mypy: ignore-errors

import signal
import subprocess
import sys
import time
from statistics import median

from dbos import DBOS, DBOSClient

from benchmarks.peers.work import STEPS, message, plan, report, timed

WHERE = sys.argv[2]
QUICK = "--quick" in sys.argv
#: Seconds between looks of its queues, its default, and between ours for a result.
POLL_S, LOOK_S = 1.0, 0.02
VERSION = "bench"


@DBOS.step()
def step(number):
    return message(number)


@DBOS.workflow()
def agent(_name):
    return len([step(number) for number in range(STEPS)])


@DBOS.workflow()
def item(number):
    return [number, step(0), step(1)]


@DBOS.workflow()
def mapped(count):
    handles = [DBOS.enqueue_workflow("items", item, number) for number in range(count)]
    return len([handle.get_result() for handle in handles])


@DBOS.workflow()
def nothing(name):
    return name


@DBOS.workflow()
def layered(quick):
    """Layer by layer, because it has no plan of tasks."""
    tasks = plan(quick)
    for layer in range(10):
        names = [name for name in tasks if name.startswith(f"t{layer}-")]
        handles = [DBOS.enqueue_workflow("items", nothing, name) for name in names]
        for handle in handles:
            handle.get_result()
    return len(tasks)


@DBOS.step()
def first():
    return time.time()


@DBOS.workflow()
def one():
    return first()


def launch(name):
    config = {"name": "bench", "system_database_url": WHERE, "application_version": VERSION, "executor_id": name}
    DBOS(config=config | {"log_level": "WARNING", "console_log_level": "WARNING"})
    DBOS.launch()
    DBOS.register_queue("runs", worker_concurrency=50, polling_interval_sec=POLL_S)
    DBOS.register_queue("items", worker_concurrency=500, polling_interval_sec=POLL_S)


class Client:
    def __init__(self):
        self._client = DBOSClient(system_database_url=WHERE, application_name="bench")

    def begin(self, workflow, *given):
        about = {"workflow_name": workflow.__qualname__, "queue_name": "runs", "app_version": VERSION}
        return self._client.enqueue(about, *given)

    def all(self, *begun):
        return [handle.get_result(polling_interval_sec=LOOK_S) for handle in begun]


def w1(client):
    runs = 20 if QUICK else 100
    client.all(*(client.begin(agent, f"warm {n}") for n in range(8)))
    begin = lambda: [client.begin(agent, str(n)) for n in range(runs)]  # noqa: E731
    report("W1", timed(lambda: client.all(*begin())) / runs / STEPS)


def w2(client):
    for count in (32,) if QUICK else (32, 1_000):
        report(f"W2/{count}", timed(lambda n=count: client.all(client.begin(mapped, n))))


def w3(client):
    report("W3", timed(lambda: client.all(client.begin(layered, QUICK))))


def w5(client):
    taken = []
    for _ in range(5 if QUICK else 15):
        begun = time.time()
        taken.append(client.all(client.begin(one))[0] - begun)
        time.sleep(0.137)
    report("W5", median(taken) * 1000)


def main():
    if sys.argv[1] == "worker":
        launch(sys.argv[3])
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        signal.pause()
    launch("setup")
    DBOS.destroy()
    command = [sys.executable, "-m", "benchmarks.peers.dbos_peer", "worker", WHERE]
    workers = [subprocess.Popen([*command, f"worker-{n}"], stdout=subprocess.PIPE) for n in (1, 2)]
    try:
        for worker in workers:
            worker.stdout.readline()
        client = Client()
        for workload in sys.argv[3:]:
            if workload != "--quick":
                globals()[workload.lower()](client)
    finally:
        for worker in workers:
            worker.kill()


if __name__ == "__main__":
    main()
