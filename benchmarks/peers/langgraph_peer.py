"""LangGraph with a checkpointer that writes before each step goes on (`durability="sync"`).

    python -m benchmarks.peers.langgraph_peer postgres|sqlite WHERE [--quick] W1 W2 W3 W5

It has no workers: for W1 two processes carry half of the runs each; a map and a plan stay in one process.
"""

# mypy: ignore-errors

import multiprocessing
import operator
import sys
import time
from statistics import median
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from benchmarks.peers.work import STEPS, message, plan, report, timed

KIND, WHERE = sys.argv[1:3]
QUICK = "--quick" in sys.argv


class State(TypedDict):
    step: int
    messages: Annotated[list, operator.add]


class Map(TypedDict):
    items: int
    out: Annotated[list, operator.add]


class Item(TypedDict):
    number: int
    said: Any
    out: list


class Plan(TypedDict):
    done: Annotated[int, operator.add]


def saver(connections: int = 4):
    if KIND == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        found = PostgresSaver(ConnectionPool(WHERE, min_size=1, max_size=connections, open=True, kwargs=options))
    else:
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        found = SqliteSaver(sqlite3.connect(WHERE, check_same_thread=False, timeout=60))
    found.setup()
    return found


def agent(kept):
    def step(state):
        return {"step": state["step"] + 1, "messages": [message(state["step"])]}

    graph = StateGraph(State)
    graph.add_node("model", step)
    graph.add_node("tool", step)
    graph.add_edge(START, "model")
    graph.add_edge("model", "tool")
    graph.add_conditional_edges("tool", lambda state: END if state["step"] >= STEPS else "model")
    return graph.compile(checkpointer=kept)


def run(graph, given, name):
    about = {"configurable": {"thread_id": name}, "recursion_limit": 2_000, "max_concurrency": 8}
    return graph.invoke(given, about, durability="sync")


def half(names, ready, done):
    graph = agent(saver())
    run(graph, {"step": 0, "messages": []}, f"warm {names[0]}")
    ready.wait()
    for name in names:
        run(graph, {"step": 0, "messages": []}, name)
    done.put(1)


def w1():
    names = [f"w1 {time.time()} {n}" for n in range(20 if QUICK else 100)]
    ready, done = multiprocessing.Barrier(3), multiprocessing.Queue()
    halves = [multiprocessing.Process(target=half, args=(names[k::2], ready, done)) for k in (0, 1)]
    for process in halves:
        process.start()
    ready.wait()
    report("W1", timed(lambda: [done.get(), done.get()]) / len(names) / STEPS)


def w2():
    child = StateGraph(Item)
    child.add_node("model", lambda _: {"said": message(0)})
    child.add_node("tool", lambda item: {"out": [(item["number"], message(1))]})
    child.add_edge(START, "model")
    child.add_edge("model", "tool")
    child.add_edge("tool", END)
    graph = StateGraph(Map)
    graph.add_node("plan", lambda _: {})
    graph.add_node("child", child.compile())
    graph.add_node("join", lambda state: {"items": len(state["out"])})
    graph.add_edge(START, "plan")
    items = lambda state: [Send("child", {"number": n}) for n in range(state["items"])]  # noqa: E731
    graph.add_conditional_edges("plan", items, ["child"])
    graph.add_edge("child", "join")
    graph.add_edge("join", END)
    made = graph.compile(checkpointer=saver(10))
    for count in (32,) if QUICK else (32, 1_000):
        report(f"W2/{count}", timed(lambda n=count: run(made, {"items": n, "out": []}, f"w2 {n} {time.time()}")))


def w3():
    graph = StateGraph(Plan)
    tasks = plan(QUICK)
    for name in tasks:
        graph.add_node(name, lambda _: {"done": 1})
    for name, after in tasks.items():
        graph.add_edge(after or START, name)
    made = graph.compile(checkpointer=saver(10))
    report("W3", timed(lambda: run(made, {"done": 0}, f"w3 {time.time()}")))


def w5():
    seen: list[float] = []
    graph = StateGraph(State)
    graph.add_node("model", lambda _: (seen.append(time.perf_counter()), {"messages": [message(0)]})[1])
    graph.add_edge(START, "model")
    made, begun = graph.compile(checkpointer=saver()), []
    for number in range(20):
        begun.append(time.perf_counter())
        run(made, {"step": 0, "messages": []}, f"w5 {number} {time.time()}")
    report("W5", median(at - start for at, start in zip(seen, begun, strict=True)) * 1000)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    # Its tables are made by one process alone: two that make them at once wait for each other.
    making = multiprocessing.Process(target=saver)
    making.start()
    making.join()
    for workload in sys.argv[3:]:
        if workload != "--quick":
            globals()[workload.lower()]()
