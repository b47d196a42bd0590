"""What happens next: state, tasks, signals, the clock, the command line and the producer."""
