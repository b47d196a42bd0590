"""What Officina costs beside the cheapest honest thing Celery can do for the same work, measured in one run."""
