"""What does it: the Celery application, the engine, the model client and the sandbox."""
