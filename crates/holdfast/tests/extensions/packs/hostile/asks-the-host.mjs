// Makes host calls without grants, and outside of calls.
// call: asks-the-host {}
// answers: ["refused","refused","refused"]

export function createExtensionPack({ holdfast }) {
  const ask = (name, args) =>
    holdfast.ask(name, args).then(
      () => "served",
      () => "refused",
    );
  const execute = async () => [
    await ask("file.write", { path: "/etc/passwd", content: "x" }),
    await ask("agent.invoke", { agent: "main", task: "x" }),
    await ask("no.such.call"),
  ];
  return { descriptors: [{ kind: "tool", id: "asks-the-host", payload: { execute } }] };
}
