// The follower in JavaScript.
import { agents, clock, tool } from "holdfast";

const told = (update) => update.text ?? update.tool + JSON.stringify(update.arguments);

tool(
  {
    name: "follow",
    description: "Follows an agent while it answers.",
    effects: "write",
    parameters: { agent: "string", task: "string", first: "boolean?" },
  },
  ({ agent, task, first }) => {
    const invocation = agents.invokeStreamed(task, agent);
    const updates = [];
    for (const update of invocation) {
      updates.push(told(update));
      if (first) break;
    }
    if (first) {
      invocation.close();
      return updates.join(" ");
    }
    const answer = invocation.answer();
    invocation.close();
    clock.now();
    return `${updates.join(" ")} = ${answer}`;
  },
);
