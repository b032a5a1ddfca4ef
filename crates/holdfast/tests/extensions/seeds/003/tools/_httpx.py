"""In place of a library that needs a network."""

from types import SimpleNamespace


class AsyncClient:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *error): ...

    async def get(self, url):
        return SimpleNamespace(text=f"sunny at {url}")
