"""Graphs as pictures: where everything goes (`layout`), what an agent's graph shows (`scene`), and the SVG (`svg`).

The layout knows nothing of agents: boxes with sizes and links go in, coordinates and curves come out.
"""
