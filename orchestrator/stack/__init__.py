"""The processes of the embedded stack: a Redis server, Flower, and whatever else its owner supervises."""
