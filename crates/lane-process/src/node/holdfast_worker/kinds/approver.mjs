// Kind `hitl-handler`: tells a person that something waits for an answer, and may answer it. Whether an answer counts
// is decided by the host: it needs a grant, and never counts for calls of the pack itself.

import { Failure } from "../report.mjs";

export function approver(payload, { pack, shown }) {
  const answer = [payload.handle, payload.requestApproval, payload.handleRequest].find(
    (it) => typeof it === "function",
  );
  if (answer === undefined && typeof payload.sendNotification !== "function") {
    throw new Failure("its payload has no function `sendNotification`");
  }
  const names = { name: payload.name, supportedTypes: payload.supportedTypes, answers: answer !== undefined };
  if (!(pack.hello.features ?? []).includes("approvals")) {
    pack.problem(`${shown} is not asked: this program does not offer approvals to extensions`);
    return { payload: names };
  }
  const ask = async ({ params }) => {
    const request = params.arguments;
    const type = "approval";
    const summary = request.summary ?? `${request.tool} ${JSON.stringify(request.arguments ?? {})}`.slice(0, 2_000);
    const told = { type, requestId: String(request.request), summary, urgency: request.urgency ?? "medium" };
    if (typeof payload.sendNotification === "function") await payload.sendNotification(told);
    if (answer === undefined || request.notify_only === true) return null;
    return verdict(
      await answer.call(payload, {
        ...told,
        tool: request.tool,
        arguments: request.arguments,
        reasons: request.reasons ?? [],
        sessionId: request.session,
      }),
    );
  };
  return { functions: { approver: { "ask-approval": ask } }, payload: names, lasts: true };
}

/** Nothing but an explicit boolean is an answer. */
function verdict(answer) {
  const approved = typeof answer === "boolean" ? answer : answer?.approved;
  if (typeof approved !== "boolean") return null;
  const made = { approved };
  if (typeof answer.reason === "string") made.reason = answer.reason;
  const changed = answer.arguments ?? answer.modifications;
  if (changed !== undefined && changed !== null) made.arguments = changed;
  return made;
}
