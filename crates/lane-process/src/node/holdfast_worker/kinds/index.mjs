// What each kind of descriptor becomes: tools, hooks, functions of a role, or data that the host shows.

import { NotPlain, encoded, plain } from "../plain.mjs";
import { Failure } from "../report.mjs";
import { approver } from "./approver.mjs";
import { channel } from "./channel.mjs";
import { guardrail } from "./guardrail.mjs";
import { memory } from "./memory.mjs";
import { persona } from "./persona.mjs";
import { planning, processor } from "./texts.mjs";
import { provenance } from "./provenance.mjs";
import { tool } from "./tool.mjs";

const KINDS = {
  tool,
  guardrail,
  persona,
  "response-processor": processor,
  "planning-strategy": planning,
  "memory-provider": memory,
  "messaging-channel": channel,
  "hitl-handler": approver,
  provenance,
};
const MAX_PAYLOAD_BYTES = 16 << 10;
const MAX_DESCRIPTION_CHARS = 4_000;

/**
 * A descriptor as an entry: `tools`, `hooks`, `functions` by role, and `payload`, as far as it has them. `lasts` says
 * that it needs a process that stays.
 */
export async function adapted({ descriptor, kind, id, shown, pack }) {
  const payload = descriptor.payload;
  if (payload === undefined || payload === null) throw new Failure("it has no `payload`");
  const priority = descriptor.priority;
  const base = { kind, id, shown, priority: Number.isInteger(priority) ? clamped(priority) : undefined };
  const adapter = Object.hasOwn(KINDS, kind) ? KINDS[kind] : anything;
  const entry = await adapter(payload, { ...base, pack, descriptor });
  const description = limited(
    entry.description ?? textOf(payload.description) ?? textOf(descriptor.metadata?.description) ?? "",
  );
  return { ...base, ...entry, description };
}

/** Of a kind without an adapter the data is told. */
function anything(payload) {
  return { payload: data(payload) };
}

/** A copy of the data of a payload, if it is small. */
function data(payload) {
  if (typeof payload !== "object") return undefined;
  try {
    encoded(payload, MAX_PAYLOAD_BYTES);
    return plain(payload, MAX_PAYLOAD_BYTES);
  } catch (error) {
    if (error instanceof NotPlain) return undefined;
    throw error;
  }
}

function clamped(priority) {
  return Math.max(-1_000_000, Math.min(1_000_000, priority));
}

function textOf(value) {
  return typeof value === "string" ? value : undefined;
}

export function limited(text) {
  return text.length > MAX_DESCRIPTION_CHARS ? `${text.slice(0, MAX_DESCRIPTION_CHARS)} …` : text;
}
