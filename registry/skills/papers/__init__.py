"""From Markdown to a file: one pipeline for every format (spec: skills 7.13, 7.14).

`markdown` reads a text into the tree of `blocks`; a writer per format (`docx`) makes a file of that tree.
"""
