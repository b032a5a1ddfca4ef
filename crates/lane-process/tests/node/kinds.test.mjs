// What each kind of descriptor becomes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TURN, start } from "./driver.mjs";

const guard = (payload, more = "") =>
  `export default { descriptors: [{ kind: "guardrail", id: "g", payload: { ${payload} }, ${more} }] };`;
const points = (welcome) => welcome.descriptors[0].hooks.map((it) => it.point);

test("a guardrail's hooks follow from what it has", async (test) => {
  const both = `evaluateInput() {}, evaluateOutput() {}`;
  const open = async (payload, options = {}) => points(await start(test, guard(payload)).open({ pack: { options } }));
  assert.deepEqual(await open(`evaluateInput() {}`), ["guard_input"]);
  assert.deepEqual(await open(both), ["guard_input", "guard_output", "tool_gate", "guard_result"]);
  assert.deepEqual(await open(both, { toolPoints: false }), ["guard_input", "guard_output"]);
  assert.deepEqual(await open(`config: { canSanitize: true }, ${both}`, { toolPoints: false }), [
    "sanitize_input",
    "sanitize_output",
  ]);
  assert.deepEqual(await open(`config: { evaluateStreamingChunks: true }, ${both}`, { toolPoints: false }), [
    "guard_input",
    "guard_output",
    "guard_chunk",
  ]);
  assert.deepEqual(
    await open(`config: { evaluateStreamingChunks: true, canSanitize: true }, ${both}`, { toolPoints: false }),
    ["sanitize_input", "sanitize_output"],
  );
});

test("a guardrail's priority and time limit", async (test) => {
  const welcome = await start(test, guard(`config: { timeoutMs: 70 }, evaluateInput() {}`, "priority: 10")).open();
  assert.deepEqual(welcome.descriptors, [
    { kind: "guardrail", id: "g", priority: 10, hooks: [{ point: "guard_input", priority: 90, timeout_ms: 70 }] },
  ]);
});

test("a guardrail's decisions", async (test) => {
  const driven = start(
    test,
    guard(`config: { canSanitize: true }, evaluateInput: ({ input }) => JSON.parse(input.textInput), evaluateOutput: ({ chunk }) =>
    chunk.toolCalls ? JSON.parse(chunk.toolCalls[0].arguments.do) : JSON.parse(chunk.finalResponseText)`),
  );
  await driven.open();
  const input = (it) => driven.hook("pack-test/guardrail/g/0", "sanitize_input", JSON.stringify(it));
  const gate = (it) =>
    driven.hook("pack-test/guardrail/g/2", "tool_gate", null, {
      id: 3,
      tool: "rm",
      arguments: { do: JSON.stringify(it) },
    });
  assert.deepEqual(await input(null), { decision: "continue" });
  assert.deepEqual(await input({ action: "allow" }), { decision: "continue" });
  assert.deepEqual(await input({ action: "flag", reason: "odd" }), { decision: "flag", reason: "odd" });
  assert.deepEqual(await input({ action: "block", reasonCode: "PII" }), { decision: "block", reason: "PII" });
  assert.deepEqual(await input({ action: "sanitize", modifiedText: "[X]" }), { decision: "replace", content: "[X]" });
  assert.deepEqual(await input({ action: "sanitize" }), { decision: "replace", content: "" });
  await assert.rejects(input({ action: "praise" }), /guardrail `g` has decided on an unknown action: "praise"/);
  await assert.rejects(input(7), /unknown action: undefined/);
  assert.deepEqual(
    await driven.hook("pack-test/guardrail/g/1", "sanitize_output", '{"action":"block","reason":"no"}'),
    { decision: "block", reason: "no" },
  );
  assert.deepEqual(await gate({ action: "block", reason: "dangerous" }), { decision: "deny", reason: "dangerous" });
  assert.deepEqual(await gate({ action: "flag", reason: "hm" }), { decision: "allow" });
});

test("what a guardrail is shown", async (test) => {
  const driven = start(
    test,
    guard(`config: { evaluateStreamingChunks: true },
    evaluateInput: (it) => ({ action: "flag", reason: JSON.stringify(it) }), evaluateOutput: (it) => ({ action: "block", reason: JSON.stringify(it) })`),
  );
  await driven.open();
  const shown = async (index, point, subject, call) =>
    JSON.parse((await driven.hook(`pack-test/guardrail/g/${index}`, point, subject, call)).reason);
  const context = {
    userId: "ada",
    sessionId: "s1",
    conversationId: "s1",
    personaId: "main",
    mode: "test",
    metadata: { turn: 1 },
  };
  assert.deepEqual(await shown(0, "guard_input", "hello"), {
    context,
    input: { userId: "ada", sessionId: "s1", conversationId: "s1", textInput: "hello" },
  });
  const final = await shown(1, "guard_output", "bye");
  assert.equal(typeof final.chunk.timestamp, "string");
  delete final.chunk.timestamp;
  const base = { streamId: "s1/1", gmiInstanceId: "main", personaId: "main", isFinal: true };
  assert.deepEqual(final, {
    context,
    chunk: { ...base, type: "final_response", finalResponseText: "bye", finalResponseTextPlain: "bye" },
  });
  const chunks = [await shown(2, "guard_chunk", "one"), await shown(2, "guard_chunk", "two")];
  assert.deepEqual(
    chunks.map(({ chunk }) => [chunk.type, chunk.textDelta]),
    [
      ["text_delta", "one"],
      ["text_delta", "two"],
    ],
  );
  assert.notEqual(chunks[0].chunk.streamId, chunks[1].chunk.streamId);
  const call = { id: 3, tool: "rm", arguments: { path: "/" } };
  assert.deepEqual((await shown(3, "tool_gate", null, call)).chunk.toolCalls, [
    { id: "3", name: "rm", arguments: { path: "/" } },
  ]);
  const { toolName, toolResult } = (await shown(4, "guard_result", { removed: 1 }, call)).chunk;
  assert.deepEqual([toolName, toolResult], ["rm", { removed: 1 }]);
});

test("a guardrail that throws fails its hook", async (test) => {
  const driven = start(test, guard(`async evaluateInput() { throw new Error("model missing"); }`));
  await driven.open();
  await assert.rejects(driven.hook("pack-test/guardrail/g/0", "guard_input", "x"), /model missing/);
});

test("one id in two kinds: the hook's id says which", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [
    { kind: "planning-strategy", id: "x", payload: { generatePlan: () => "plan" } },
    { kind: "memory-provider", id: "x", payload: { store() {}, query: () => ["milk"] } },
  ] };`,
  );
  await driven.open();
  assert.match((await driven.hook("pack-test/planning-strategy/x/0", "context", "go")).content, /^Plan/);
  assert.match(
    (await driven.hook("pack-test/memory-provider/x/0", "context", "go")).content,
    /^Recalled from x:\n- milk/,
  );
  assert.match((await driven.hook("pack-test/x/0", "context", "go")).content, /^Plan/);
});

test("a response processor", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [
    { kind: "response-processor", id: "loud", payload: { process: (text) => text.toUpperCase() } },
    { kind: "response-processor", id: "same", payload: (text) => ({ text }) },
    { kind: "response-processor", id: "none", payload: {} },
  ] };`,
  );
  const welcome = await driven.open();
  assert.deepEqual(
    welcome.descriptors.map((it) => it.id),
    ["loud", "same"],
  );
  assert.deepEqual(await driven.hook("pack-test/response-processor/loud/0", "response_process", "hi"), {
    decision: "replace",
    content: "HI",
  });
  assert.equal(await driven.hook("pack-test/response-processor/same/0", "response_process", "hi"), null);
});

test("personas", async (test) => {
  const welcome = await start(
    test,
    `export default { descriptors: [
    { kind: "persona", id: "a", payload: { displayName: "Ada", description: "Exact.", baseSystemPrompt: "You are exact." } },
    { kind: "persona", id: "b", payload: { baseSystemPrompt: { template: "T" } } },
    { kind: "persona", id: "c", payload: { baseSystemPrompt: [{ content: "second", priority: 1 }, { content: "first", priority: 9 }] } },
    { kind: "persona", id: "d", payload: {} },
  ] };`,
  ).open();
  assert.deepEqual(
    welcome.descriptors.map((it) => it.payload),
    [
      { name: "Ada", description: "Exact.", prompt: "You are exact." },
      { name: "b", description: "", prompt: "T" },
      { name: "c", description: "", prompt: "first\n\nsecond" },
    ],
  );
  assert.match(welcome.problems[0], /persona `d` is left out/);
});

test("a planning strategy adds its plan where it applies", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [{ kind: "planning-strategy", id: "p", payload: {
    name: "Steps", shouldActivate: ({ goal }) => goal.includes("plan"), generatePlan: async (goal, { agentId }) => ({ goal, agentId }),
  } }] };`,
  );
  await driven.open();
  const decision = await driven.hook("pack-test/planning-strategy/p/0", "context", "plan it");
  assert.equal(decision.decision, "inject");
  assert.match(decision.content, /^Plan \(Steps\):\n\{\s+"goal": "plan it",\s+"agentId": "main"/);
  assert.equal(await driven.hook("pack-test/planning-strategy/p/0", "context", "do it"), null);
});

test("a memory provider has tools and adds what it recalls", async (test) => {
  const driven = start(
    test,
    `const kept = []; let open = false;
    export default { descriptors: [{ kind: "memory-provider", id: "notes", payload: {
      initialize() { open = true; }, shutdown() { console.log("closed"); },
      store(collection, it) { kept.push(it); return "id" + kept.length; },
      query: (collection, text, { limit }) => open ? kept.filter((it) => it.text.includes(text)).slice(0, limit) : [],
      delete(collection, ids) { kept.length = 0; },
    } }] };`,
  );
  const welcome = await driven.open();
  assert.deepEqual(
    welcome.tools.map((it) => [it.name, it.effects]),
    [
      ["notes_remember", "write"],
      ["notes_recall", "read"],
      ["notes_forget", "write"],
    ],
  );
  assert.equal(await driven.tool("notes_remember", { text: "buy milk" }), "id1");
  assert.deepEqual(await driven.tool("notes_recall", { query: "milk" }), [{ text: "buy milk" }]);
  assert.deepEqual(await driven.hook("pack-test/memory-provider/notes/0", "context", "milk"), {
    decision: "inject",
    content: "Recalled from notes:\n- buy milk",
  });
  assert.equal(await driven.hook("pack-test/memory-provider/notes/0", "context", "tea"), null);
  await driven.request("stop");
  await driven.stop();
  assert.match(driven.printed, /closed/);
});

test("a messaging channel sends and receives", async (test) => {
  const driven = start(
    test,
    `let handler; const sent = [];
    const adapter = { platform: "telegram", displayName: "Telegram",
      initialize(auth) { sent.push(auth); }, sendMessage(user, { blocks }) { sent.push([user, blocks]); },
      on(it) { handler = it; return () => { handler = undefined; }; } };
    export default { descriptors: [
      { kind: "messaging-channel", id: "t", payload: adapter, requiredSecrets: [{ id: "telegram.botToken" }] },
      { kind: "messaging-channel", id: "u", payload: adapter },
      { kind: "tool", id: "receive", payload: { execute: (event) => handler(event) } },
      { kind: "tool", id: "sent", payload: { execute: () => sent } },
    ] };`,
    { environment: { TELEGRAM_BOT_TOKEN: "token" } },
  );
  const welcome = await driven.open();
  assert.deepEqual(welcome.functions.channel, ["send-to-user"]);
  assert.deepEqual(Object.keys(welcome.functions), ["channel", "lifecycle", "service"]);
  assert.match(welcome.problems[0], /messaging-channel `u` is left out: the pack has a channel already/);
  await driven.function("channel", "send-to-user", { user: "42", text: "hello" });
  await driven.tool("receive", { type: "message", conversationId: 42, data: { text: "hi", messageId: 7 } });
  await driven.tool("receive", { type: "typing", conversationId: 42 });
  assert.deepEqual(
    driven.asked.map((it) => [it.name, it.arguments]),
    [
      [
        "event.publish",
        { topic: "user.message", payload: { text: "hi", user_id: "42", channel_id: "pack-test", message_id: "7" } },
      ],
    ],
  );
  assert.deepEqual(await driven.tool("sent"), [
    { platform: "telegram", credential: "token", params: {} },
    ["42", [{ type: "text", text: "hello" }]],
  ]);
});

test("an approver is asked where the host offers that, and only a boolean is an answer", async (test) => {
  const pack = `const told = []; let answer;
    export default { descriptors: [
      { kind: "hitl-handler", id: "h", payload: { name: "h", sendNotification(it) { told.push(it); }, handle: () => answer } },
      { kind: "tool", id: "answer", payload: { execute: (it) => { answer = it.is; return told.length; } } },
    ] };`;
  const without = await start(test, pack).open();
  assert.deepEqual(without.functions, {});
  assert.match(without.problems[0], /hitl-handler `h` is not asked/);
  const driven = start(test, pack);
  const welcome = await driven.open({ features: ["approvals"] });
  assert.deepEqual(welcome.functions.approver, ["ask-approval"]);
  const request = { session: "s1", request: 9, tool: "rm", arguments: { path: "/" }, reasons: ["writes"] };
  const ask = async (is, more) => {
    await driven.tool("answer", { is });
    return driven.function("approver", "ask-approval", { ...request, ...more });
  };
  assert.deepEqual(await ask(true), { approved: true });
  assert.deepEqual(await ask({ approved: false, reason: "no", arguments: { path: "/tmp" } }), {
    approved: false,
    reason: "no",
    arguments: { path: "/tmp" },
  });
  assert.equal(await ask("yes"), null);
  assert.equal(await ask({ approved: "yes" }), null);
  assert.equal(await ask(true, { notify_only: true }), null);
  assert.equal(await driven.tool("answer"), 5);
});

test("provenance is told of frames where the host offers them", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [{ kind: "provenance", id: "p", payload: { onFrame(it) { console.log("frame " + it.kind); } } }] };`,
  );
  const welcome = await driven.open({ features: ["frames"] });
  assert.deepEqual(welcome.functions.subscriber, ["on-event"]);
  assert.equal(
    await driven.function("subscriber", "on-event", { topic: "frames", payload: { kind: "tool.called" } }),
    null,
  );
  await driven.stop();
  assert.match(driven.printed, /frame tool.called/);
});

test("any other kind is told with its data", async (test) => {
  const welcome = await start(
    test,
    `export default { descriptors: [
    { kind: "stt-provider", id: "s", priority: 2, payload: { description: "Hears.", languages: ["de"], listen() {} } },
    { kind: "workflow-executor", id: "w", payload: () => {} },
    { kind: "corpus", id: "big", payload: { text: "x".repeat(20000) } },
  ] };`,
  ).open();
  assert.deepEqual(welcome.descriptors, [
    {
      kind: "stt-provider",
      id: "s",
      description: "Hears.",
      priority: 2,
      payload: { description: "Hears.", languages: ["de"] },
    },
    { kind: "workflow-executor", id: "w" },
    { kind: "corpus", id: "big" },
  ]);
  assert.equal(TURN.session, "s1");
});
