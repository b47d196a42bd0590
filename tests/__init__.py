"""Tests, in folders by what they cost: unit, contract, integration, crash."""
