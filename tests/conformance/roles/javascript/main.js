// The same roles in JavaScript.
import {
  Failure, executeTask, onEvent, runBackground, sendFile, sendMessage, sendQuestion, sendToUser, setup, streamingChannel,
} from "holdfast";

function given(...what) {
  throw new Failure(JSON.stringify(what));
}

executeTask((task) => (task === "nothing" ? null : { text: task }));
onEvent((event) =>
  given(event.id, event.topic, event.payload, event.key, event.correlation, event.attempt, event.repeat),
);
runBackground(() => given("over"));
sendToUser((user, text, delivery) => given(user, text, delivery.id, delivery.repeat));
sendMessage((text, delivery) => given(text, delivery.id, delivery.repeat));
sendFile((user, file, delivery) => given(user, file.name, file.mediaType, [...file.content], delivery.id));
sendQuestion((user, text, choices, delivery) =>
  given(user, text, choices.map((choice) => [choice.label, choice.answer]), delivery.id),
);
streamingChannel({
  start: (user, id) => given(user, id),
  chunk: (user, id, text) => given(user, id, text),
  status: (user, id, status) => given(user, id, status),
  end: (user, id, text, delivery) => given(user, id, text, delivery.id),
});
setup({
  schema: () => [{ name: "token", description: "The token.", secret: true, required: true }],
  apply: (values) => given(values),
  complete: () => "ready",
});
