"""What a person may do to work under way: cancel a project, try a task again. Rows first, wake-ups after."""

from orchestrator import desk, events, queue
from orchestrator.settings import Settings
from orchestrator.store import projects, tasks
from orchestrator.store.database import get_database
from registry.errors import Refused


def cancel(settings: Settings, project_id: str, *, by: str) -> None:
    """Ends a project and everything in it; what runs sees it at its next write or check.

    Raises:
        Refused: `unknown_project`, `project_ended`.
    """
    database = get_database(settings)
    if not database.write(lambda c: projects.cancel(c, project_id, f"cancelled by {by}")):
        raise Refused(f"project {project_id} has ended already", code="project_ended")
    events.publish(settings, project_id, 0)
    desk.refresh(settings, settings.owner)


def retry(settings: Settings, task_id: str, *, by: str) -> None:
    """Runs a failed task again; dependents that were skipped open again.

    Raises:
        Refused: `unknown_task`, `not_failed`.
    """
    ready = get_database(settings).write(lambda c: tasks.retry(c, task_id))
    queue.send(settings, ready)
