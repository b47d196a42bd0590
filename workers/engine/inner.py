"""What skills ask of models inside of a run: with its hooks, money and trace, and without using up a turn."""

import itertools
from dataclasses import replace

from registry.base import Json
from registry.errors import SkillError
from registry.skills.context import Caller
from registry.skills.ports import Ask, Painted, Said, Wanted
from workers.engine import hooks, money, thinking
from workers.engine.session import Session
from workers.models import asking
from workers.models.model import ModelFault, Request, Situation

#: Where the run remembers how often each skill has asked: the place in a stand-in's script.
MEMO = "asked"


class RunModel:
    """The `Llm` port of one call of a run."""

    def __init__(self, session: Session, call_id: str) -> None:
        self._session = session
        self._call_id = call_id
        self._numbers = itertools.count()

    def ask(self, caller: Caller, question: Ask) -> Said | None:
        """See `Llm`. The worst case is reserved before, what it cost is booked with the next write."""
        request = asking.request(question, caller.tier, self._situation(question))
        self._may(request)
        # The same call after a crash asks under the same key, and finds what it had reserved.
        key = f"{self._session.steps}:{self._call_id}:{next(self._numbers)}"
        client = self._session.services.model(self._session.record)
        try:
            money.hold(self._session, key, client.worst_micro(request))
            reply = client.generate(replace(request, lane=self._session.record.project_id or ""))
        except ModelFault as fault:
            money.let_go(self._session, key)
            return asking.unanswered(fault, question)
        with self._session.lock:
            self._session.tokens += reply.usage.total
            money.settle(self._session, key, reply.cost_micro)
        thinking.tell(self._session, request, reply, aside=question.skill)
        return asking.said(reply)

    def _situation(self, question: Ask) -> Situation:
        session, record = self._session, self._session.record
        with session.lock:
            asked: dict[str, Json] = session.memo.get(MEMO, {})
            turn = asked.get(question.skill, 0)
            session.memo[MEMO] = asked | {question.skill: turn + 1}
        return Situation(
            project_id=record.project_id,
            script=record.script,
            agent_id=session.agent.id,
            agent_name=session.agent.name,
            kind=record.kind,
            input={"text": question.prompt},
            turn=turn,
            results=list(session.results),
            skill=question.skill,
        )

    def _may(self, request: Request) -> None:
        facts: dict[str, Json] = {"turn": self._session.turns, "aside": request.situation.skill}
        named = request.model or request.tier
        effects = hooks.fire(self._session, "PreModelCall", named, model=named, tools=[], **facts)
        if effects.block is not None:
            raise SkillError("blocked", f"a hook refused the model call: {effects.block}")


class RunPainter:
    """The `Images` port of one call of a run."""

    def __init__(self, session: Session, call_id: str) -> None:
        self._session = session
        self._painter = session.services.painter
        self._key = f"{session.steps}:{call_id}:images"

    @property
    def placeholder(self) -> bool:
        return self._painter is not None and self._painter.placeholder

    def paint(self, caller: Caller, wanted: Wanted) -> Painted | None:
        """See `Images`. What it costs at most is reserved before, what it cost is booked with the next write."""
        if self._painter is None:
            return None
        painted = None
        money.hold(self._session, self._key, self._painter.worst_micro(wanted))
        try:
            painted = self._painter.paint(caller, wanted)
        finally:
            if painted is None:
                money.let_go(self._session, self._key)
        if painted is not None:
            with self._session.lock:
                money.settle(self._session, self._key, painted.cost_micro)
        return painted
