// Kind `tool`: something that a model may call.

import { apply } from "../own.mjs";
import { encoded, plain } from "../plain.mjs";
import { Failure, INVALID } from "../report.mjs";
import { turnOf } from "../context.mjs";
import { signal } from "../wire.mjs";

const MAX_SCHEMA_BYTES = 64 << 10;
const EFFECTS = ["pure", "read", "write", "exec", "network", "unknown"];
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export function tool(payload, { id, pack }) {
  return { tools: [toolOf(payload, id, pack)] };
}

/** A tool of a pack or of a plain extension: its sheet for the host, and `run(request)`. */
export function toolOf(payload, id, pack) {
  const execute = [payload.execute, payload.run, payload.handler].find((it) => typeof it === "function");
  if (execute === undefined) throw new Failure("its payload has no function `execute`");
  const name = id.replace(/[^A-Za-z0-9_-]/g, "_");
  if (!NAME.test(name)) throw new Failure("its id is longer than 64 characters");
  if (typeof payload.name === "string" && payload.name !== id) {
    pack.wire.log("debug", `the tool \`${id}\` calls itself \`${payload.name}\`; it is called \`${name}\``);
  }
  const sheet = {
    name,
    description: descriptionOf(payload),
    input_schema: schema(payload.inputSchema ?? payload.input_schema ?? payload.parameters, "inputSchema") ?? {
      type: "object",
    },
    output_schema: schema(payload.outputSchema ?? payload.output_schema, "outputSchema"),
    effects: effectsOf(payload),
    timeout_ms: positive(payload.timeout_ms) ?? positive(pack.given?.timeout_ms),
    concurrency: positive(payload.concurrency),
    render:
      payload.render ??
      (typeof payload.displayName === "string" ? { title: payload.displayName.slice(0, 200) } : undefined),
  };
  return { sheet, run: (request) => called(payload, execute, request) };
}

function descriptionOf(payload) {
  return typeof payload.description === "string" ? payload.description.slice(0, 4_000) : "";
}

function positive(value) {
  return Number.isInteger(value) && value > 0 ? value : undefined;
}

/**
 * A pack that says that a tool has no side effects is believed that it changes nothing; nothing said counts as
 * anything.
 */
function effectsOf(payload) {
  if (EFFECTS.includes(payload.effects)) return payload.effects;
  return payload.hasSideEffects === false ? "read" : "unknown";
}

function schema(value, what) {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) throw new Failure(`its \`${what}\` is not a JSON Schema`);
  encoded(value, MAX_SCHEMA_BYTES);
  return plain(value, MAX_SCHEMA_BYTES);
}

async function called(payload, execute, request) {
  const args = request.params.arguments ?? {};
  const checked = typeof payload.validateArgs === "function" ? payload.validateArgs(args) : undefined;
  if (checked?.isValid === false) throw new Failure(invalid(checked.errors), INVALID);
  return resultOf(await apply(execute, payload, [args, callContext(request)]));
}

function invalid(errors) {
  const texts = Array.isArray(errors)
    ? errors.map((it) => (typeof it === "string" ? it : (it?.message ?? JSON.stringify(it))))
    : [];
  return `the arguments do not fit: ${texts.join("; ") || "the tool does not say why"}`;
}

/** Who calls, for a tool. */
export function callContext(request) {
  const turn = turnOf(request) ?? {};
  return {
    gmiId: turn.agent ?? "agent",
    personaId: turn.agent ?? "agent",
    userContext: { userId: turn.user ?? "local" },
    correlationId: String(request.params.call ?? request.id),
    sessionData: { sessionId: turn.session, turn: turn.turn, channel: turn.channel },
    // Made when a tool looks at it, which few do.
    get signal() {
      return signal(request);
    },
  };
}

/** A result of the contract has `success`; anything else is the result itself. */
function resultOf(result) {
  if (typeof result !== "object" || result === null || typeof result.success !== "boolean") return result;
  if (result.success) return "output" in result ? result.output : result;
  const failure = new Failure(reasonOf(result));
  if (result.details !== undefined) failure.details = result.details;
  throw failure;
}

function reasonOf({ error, output }) {
  if (typeof error === "string" && error !== "") return error.slice(0, 4_000);
  if (typeof error?.message === "string") return error.message.slice(0, 4_000);
  return typeof output === "string" && output !== ""
    ? output.slice(0, 4_000)
    : "the tool has failed and does not say why";
}
