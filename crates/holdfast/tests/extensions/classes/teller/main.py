"""Uses a service that another class owns."""


class Teller:
    def initialize(self, context):
        self.context = context

    def get_tools(self):
        async def teller_book(line: str) -> dict:
            """Books a line."""
            ledger = await self.context.get_service("clerk/ledger", {"first": "begin"})
            return {"report": ledger.report, "lines": await ledger.add(line, times=2)}

        async def teller_asks(name: str) -> str:
            """Asks for another service."""
            return str(await self.context.get_service(f"clerk/{name}"))

        return [teller_book, teller_asks]
