"""The worker for extensions in Python: files with `run`, files that are channels, and classes.

`main` starts it, `wire` talks with the host, `files` and `classes` are what is served. Only Python 3.10 and its standard library are
needed, and as little of that as possible is imported before something needs it: a process per tool must be cheap to start.
"""
