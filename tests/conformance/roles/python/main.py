"""The same roles as a component in Python."""

import json

from holdfast import (
    Failure, execute_task, on_event, run_background, send_file, send_message, send_question, send_to_user, setup,
    streaming_channel,
)


def given(*what):
    raise Failure(json.dumps(what, separators=(",", ":")))


@execute_task
def task(task):
    return None if task == "nothing" else {"text": task}


@on_event
def event(event):
    given(event.id, event.topic, event.payload, event.key, event.correlation, event.attempt, event.repeat)


@run_background
def background():
    given("over")


@send_to_user
def to_user(user, text, delivery):
    given(user, text, delivery.id, delivery.repeat)


@send_message
def message(text, delivery):
    given(text, delivery.id, delivery.repeat)


@send_file
def file(user, file, delivery):
    given(user, file.name, file.media_type, list(file.content), delivery.id)


@send_question
def question(user, text, choices, delivery):
    given(user, text, [[choice.label, choice.answer] for choice in choices], delivery.id)


@streaming_channel
class Screen:
    def start(self, user, id):
        given(user, id)

    def chunk(self, user, id, text):
        given(user, id, text)

    def status(self, user, id, status):
        given(user, id, status)

    def end(self, user, id, text, delivery):
        given(user, id, text, delivery.id)


@setup
class Parameters:
    def schema(self):
        return [{"name": "token", "description": "The token.", "secret": True, "required": True}]

    def apply(self, values):
        given(values)

    def complete(self):
        return "ready"
