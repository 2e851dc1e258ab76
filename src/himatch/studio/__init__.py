"""The studio: a page on this machine on which one draws what a robot's future should look like, and watches it happen.

``server`` runs it, ``app`` is its API and ``sockets`` its views; ``catalog`` holds the runs that were named at start.
FastAPI and uvicorn come with the extra ``studio``.
"""
