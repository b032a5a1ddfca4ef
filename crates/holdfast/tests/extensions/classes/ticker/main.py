"""The older shapes: a schedule of its own, and a channel with `send_to_user` alone that is told of events by their older names."""


class Ticker:
    id = "ticker"
    name = "Ticker"
    version = "1.0.0"

    async def initialize(self, context):
        self.context, self.count = context, 0
        context.subscribe("user_message", self.heard)

    async def heard(self, event):
        self.note(f"heard {event.payload['text']}")
        self.context.unsubscribe("user_message", self.heard)

    def note(self, text):
        with open(self.context.data_dir / "notes", "a") as file:
            file.write(text + "\n")

    def get_schedule(self) -> str:
        return "every 1s"

    async def execute(self):
        self.count += 1
        self.note(f"tick {self.count}")
        return {"text": f"tick {self.count}"} if self.count == 1 else None

    async def send_to_user(self, user_id: str, message: str) -> None:
        self.note(f"to {user_id}: {message}")
