// Asks for secrets that it was not granted.
// call: others-secrets {}
// answers: [null,null,"refused"]

export function createExtensionPack(context) {
  const ask = () =>
    context.holdfast.ask("secret.get", "OTHERS_KEY").then(
      () => "served",
      () => "refused",
    );
  const execute = async () => [context.getSecret("others.key") ?? null, process.env.OTHERS_KEY ?? null, await ask()];
  return { descriptors: [{ kind: "tool", id: "others-secrets", payload: { execute } }] };
}
