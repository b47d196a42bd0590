"""The desk: pages for people. See the work, what it costs and what waits for a word; say it.

Plain pages first: each is whole without a script, and links work. A script renews the page while rows move, and sends
what a person says as JSON, as everything that changes something here has to be sent (`orchestrator.api.gate`).

    routing.py     who may look, and errors as pages
    rendering.py   templates, filters, headers: every text is made visible and escaped on its way out
    assets.py      style, script, fonts
    *_pages.py     the pages; `acts.py` what a person does on them; `pulse.py` says when something moved
    the rest       facts and drawings that pages show; they read rows and know nothing of HTTP
"""
