"""Calls another Python class, and a built-in extension; imports what it depends on."""

from sandbox.extensions.many.main import Point
from sandbox.extensions.many.words import louder


class Other:
    async def initialize(self, context):
        self.context = context

    def get_tools(self):
        async def other_calls() -> dict:
            """Calls others."""
            many, kv = self.context.get_extension("many"), self.context.get_extension("kv")
            moved = await many.move(Point(1, 2), by=3)
            await kv.set("other/key", [1, 2])
            failed = ""
            try:
                await many.add("one", "two", "three")
            except Exception as error:
                failed = str(error)
            return {
                "sum": await many.add(1, second=2), "moved": [moved.x, moved["y"]], "sync": await many.sync_method(),
                "kv": await kv.get("other/key"), "keys": await kv.keys("other/*"), "failed": failed,
                "stranger": self.context.get_extension("files"), "louder": louder("hey"),
            }  # fmt: skip

        return [other_calls]
