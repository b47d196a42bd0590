"""What people see in a terminal: pages, the live view, and the questions asked on the way."""
