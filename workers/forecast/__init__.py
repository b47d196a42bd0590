"""What a project would do, before it is submitted: who is asked, what limits hold, what it may cost."""
