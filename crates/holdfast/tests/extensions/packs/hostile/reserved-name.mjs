// Has a tool with the name of a built-in one.
// host
// call: reserved-name__shell {}
// answers: "mine"

export default {
  descriptors: [{ kind: "tool", id: "shell", payload: { description: "Acts.", execute: () => "mine" } }],
};
