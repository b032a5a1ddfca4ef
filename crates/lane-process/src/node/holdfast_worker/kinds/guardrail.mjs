// Kind `guardrail`: judges or rewrites what the user says, what the agent answers, tool calls and their results.

import { turnOf } from "../context.mjs";
import { Failure } from "../report.mjs";

let streams = 0;

export function guardrail(payload, { priority, shown, pack }) {
  const config = payload.config ?? {};
  const sanitises = config.canSanitize === true;
  const hooks = [];
  const add = (point, decide) => {
    const timeout_ms = Number.isInteger(config.timeoutMs) && config.timeoutMs > 0 ? config.timeoutMs : undefined;
    hooks.push({
      point,
      decide,
      timeout_ms,
      priority: priority === undefined ? undefined : 100 - Math.max(-1000, Math.min(1000, priority)),
    });
  };
  const at = (point, evaluate) => async (request) => decision(await evaluate(request), point, shown, pack);
  if (typeof payload.evaluateInput === "function") {
    const point = sanitises ? "sanitize_input" : "guard_input";
    add(
      point,
      at(point, (request) => payload.evaluateInput(inputOf(request))),
    );
  }
  if (typeof payload.evaluateOutput === "function") {
    const evaluate = (chunk) => (request) =>
      payload.evaluateOutput({ context: contextOf(request), chunk: { ...base(request), ...chunk(request) } });
    const point = sanitises ? "sanitize_output" : "guard_output";
    add(point, at(point, evaluate(finalOf)));
    // One that rewrites gets the whole answer, which is held back for it.
    if (config.evaluateStreamingChunks === true && !sanitises) add("guard_chunk", at("guard_chunk", evaluate(deltaOf)));
    if (pack.given.options?.toolPoints !== false) {
      add("tool_gate", at("tool_gate", evaluate(callOf)));
      add("guard_result", at("guard_result", evaluate(emissionOf)));
    }
  }
  if (hooks.length === 0) throw new Failure("its payload has neither `evaluateInput` nor `evaluateOutput`");
  return { hooks };
}

function contextOf(request) {
  const turn = turnOf(request) ?? {};
  return {
    userId: turn.user ?? "local",
    sessionId: turn.session,
    conversationId: turn.session,
    personaId: turn.agent,
    mode: turn.channel,
    metadata: { turn: turn.turn },
  };
}

function inputOf(request) {
  const context = contextOf(request);
  const textInput = textOf(request.params.subject);
  return {
    context,
    input: { userId: context.userId, sessionId: context.sessionId, conversationId: context.sessionId, textInput },
  };
}

function base(request) {
  const turn = turnOf(request) ?? {};
  return {
    streamId: `${turn.session}/${turn.turn}`,
    gmiInstanceId: turn.agent,
    personaId: turn.agent,
    isFinal: true,
    timestamp: new Date().toISOString(),
  };
}

function finalOf(request) {
  const text = textOf(request.params.subject);
  return { type: "final_response", finalResponseText: text, finalResponseTextPlain: text };
}

/** Each chunk is judged by itself, with the end of the one before it: so it is a stream of its own. */
function deltaOf(request) {
  streams += 1;
  return {
    type: "text_delta",
    streamId: `${base(request).streamId}/${streams}`,
    textDelta: textOf(request.params.subject),
  };
}

function callOf({ params }) {
  const { id, tool, arguments: args } = params.call ?? {};
  return { type: "tool_call_request", toolCalls: [{ id: String(id), name: tool, arguments: args }], rationale: "" };
}

function emissionOf({ params }) {
  const { id, tool } = params.call ?? {};
  return {
    type: "tool_result_emission",
    toolCallId: String(id),
    toolName: tool,
    toolResult: params.subject,
    isSuccess: true,
  };
}

function textOf(subject) {
  if (typeof subject === "string") return subject;
  if (subject === undefined || subject === null) return "";
  return typeof subject.text === "string" ? subject.text : JSON.stringify(subject);
}

/**
 * What a guardrail has decided, as the hook point has it. An action that is unknown is a failure: it is not taken for
 * consent.
 */
function decision(result, point, shown, pack) {
  // Who rewrites has nothing to allow.
  const consent = { decision: point.startsWith("sanitize_") ? "continue" : "allow" };
  if (result === null || result === undefined) return consent;
  const action = result.action;
  const reason = reasonOf(result);
  if (action === "allow") return consent;
  if (action === "block") return point === "tool_gate" ? { decision: "deny", reason } : { decision: "block", reason };
  if (action === "sanitize" && point.startsWith("sanitize_"))
    return { decision: "replace", content: String(result.modifiedText ?? "") };
  if (action !== "flag" && action !== "sanitize")
    throw new Failure(`${shown} has decided on an unknown action: ${JSON.stringify(action)}`);
  if (action === "sanitize")
    pack.wire.log("warning", `${shown} rewrites, but does not say so in \`config.canSanitize\`: it is only noted`);
  if (point !== "tool_gate") return { decision: "flag", reason };
  pack.wire.log("warning", `${shown} remarks on a tool call: ${reason}`);
  return { decision: "allow" };
}

function reasonOf({ reason, reasonCode, action }) {
  const said = [reason, reasonCode].find((it) => typeof it === "string" && it !== "");
  return (said ?? `the guardrail says ${action}`).slice(0, 2_000);
}
