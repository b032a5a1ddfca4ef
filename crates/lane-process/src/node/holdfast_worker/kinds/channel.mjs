// Kind `messaging-channel`: a way to the user. A process has one channel, which has the extension's name.

import { Failure } from "../report.mjs";

export async function channel(payload, { id, pack, descriptor }) {
  if (typeof payload.sendMessage !== "function") throw new Failure("its payload has no function `sendMessage`");
  if (pack.entries.some((it) => it.functions?.channel !== undefined))
    throw new Failure("the pack has a channel already, and one is used");
  const activates = [pack.pack, descriptor].some((it) => typeof it.onActivate === "function");
  // A pack that activates its channel has given it its credential already.
  if (!activates)
    await payload.initialize?.({
      platform: payload.platform ?? id,
      credential: credential(pack, descriptor),
      params: {},
    });
  const stop = typeof payload.on === "function" ? payload.on((event) => received(event, pack)) : undefined;
  const send = async ({ params }) => {
    const { user, text } = params.arguments;
    if (typeof user !== "string") throw new Failure("a message without a conversation cannot be sent");
    await payload.sendMessage(user, { blocks: [{ type: "text", text }] });
    return null;
  };
  const deactivate = async () => {
    if (typeof stop === "function") stop();
    if (!activates) await payload.shutdown?.();
  };
  const name = payload.displayName ?? payload.platform ?? id;
  return { functions: { channel: { "send-to-user": send } }, payload: { name }, lasts: true, deactivate };
}

function credential(pack, descriptor) {
  const needs = Array.isArray(descriptor.requiredSecrets) ? descriptor.requiredSecrets : [];
  return needs.map((need) => pack.context.getSecret(need?.id)).find((it) => it !== undefined) ?? "";
}

async function received(event, pack) {
  if (event?.type !== "message") return;
  const data = event.data ?? {};
  const text = typeof data.text === "string" ? data.text : textOf(data.content);
  const conversation = event.conversationId ?? data.conversationId ?? data.sender?.id;
  if (text === "" || conversation === undefined) return;
  const payload = { text, user_id: String(conversation), channel_id: pack.hello.id };
  if (data.messageId !== undefined) payload.message_id = String(data.messageId);
  await pack.wire.ask("event.publish", { topic: "user.message", payload });
}

function textOf(blocks) {
  return (Array.isArray(blocks) ? blocks : [])
    .map((it) => it?.text ?? it?.caption ?? "")
    .filter((it) => it !== "")
    .join("\n");
}
