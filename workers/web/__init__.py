"""The web as skills read it: pages turned into text, searches asked of providers. All of it through the guard."""
