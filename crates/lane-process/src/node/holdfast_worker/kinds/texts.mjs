// Kinds `response-processor` and `planning-strategy`: they change the answer, and add to the instructions.

import { callContext } from "./tool.mjs";
import { Failure } from "../report.mjs";
import { turnOf } from "../context.mjs";

const MAX_PLAN_CHARS = 4_000;

export function processor(payload) {
  const process =
    typeof payload === "function" ? payload : (payload.process ?? payload.transform ?? payload.processResponse);
  if (typeof process !== "function") throw new Failure("its payload has no function `process`");
  const decide = async (request) => {
    const subject = request.params.subject;
    const text = typeof subject === "string" ? subject : JSON.stringify(subject);
    const answer = await process.call(payload, text, callContext(request));
    const changed = [answer, answer?.text, answer?.modifiedText, answer?.content].find((it) => typeof it === "string");
    return changed === undefined || changed === text ? null : { decision: "replace", content: changed };
  };
  return { hooks: [{ point: "response_process", decide }] };
}

export function planning(payload, { id }) {
  if (typeof payload.generatePlan !== "function") throw new Failure("its payload has no function `generatePlan`");
  const decide = async (request) => {
    const subject = request.params.subject;
    const goal = typeof subject === "string" ? subject : JSON.stringify(subject ?? "");
    const turn = turnOf(request) ?? {};
    const about = { goal, complexity: Math.min(1, goal.length / 1000), agentCapabilities: [] };
    if (typeof payload.shouldActivate === "function" && !(await payload.shouldActivate(about))) return null;
    const plan = await payload.generatePlan(goal, {
      ...about,
      sessionId: turn.session,
      agentId: turn.agent,
      userId: turn.user,
    });
    if (plan === undefined || plan === null || plan === "") return null;
    const text = typeof plan === "string" ? plan : JSON.stringify(plan, null, 1);
    return { decision: "inject", content: `Plan (${payload.name ?? id}):\n${text.slice(0, MAX_PLAN_CHARS)}` };
  };
  return { hooks: [{ point: "context", decide }] };
}
