// Calls: tools, host calls from them, cancellation, progress, results of every shape, and plain extensions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TURN, packOf, start } from "./driver.mjs";

test("a tool's sheet", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [
    { id: "web.find", kind: "tool", priority: 5, payload: { name: "find", displayName: "Find", description: "Finds.", hasSideEffects: false,
      inputSchema: { type: "object", properties: { q: { type: "string" } }, required: ["q"] }, outputSchema: { type: "string" }, execute() {} } },
    { id: "b", kind: "tool", payload: { effects: "pure", timeout_ms: 5, concurrency: 1, execute() {} } },
    { id: "c", kind: "tool", payload: { inputSchema: "no", execute() {} } },
  ] };`,
  );
  const welcome = await driven.open({ pack: { options: {}, timeout_ms: 9000 } });
  assert.deepEqual(welcome.tools, [
    {
      name: "web_find",
      description: "Finds.",
      effects: "read",
      timeout_ms: 9000,
      priority: 5,
      render: { title: "Find" },
      input_schema: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
      output_schema: { type: "string" },
    },
    { name: "b", description: "", input_schema: { type: "object" }, effects: "pure", timeout_ms: 5, concurrency: 1 },
  ]);
  assert.match(welcome.problems[0], /its `inputSchema` is not a JSON Schema/);
});

test("results of the contract, other results, and failures", async (test) => {
  const driven = start(test, packOf("return eval(args.js);"));
  await driven.open();
  const act = (js) => driven.tool("act", { js });
  assert.equal(await act(`({ success: true, output: "text" })`), "text");
  assert.equal(await act(`({ success: true, output: undefined })`), null);
  assert.deepEqual(await act(`({ success: true, url: "u" })`), { success: true, url: "u" });
  assert.deepEqual(await act(`({ a: 1 })`), { a: 1 });
  assert.equal(await act(`undefined`), null);
  await assert.rejects(act(`({ success: false, error: "no disk", details: { free: 0 } })`), (error) => {
    assert.deepEqual(error.rpc, { code: 1, message: "no disk", data: { free: 0 } });
    return true;
  });
  await assert.rejects(act(`({ success: false })`), /the tool has failed and does not say why/);
  await assert.rejects(act(`{ throw new Error("bad") }`), /^Error: bad$/);
  await assert.rejects(
    act(`{ throw Object.assign(new Error("n must be positive"), { code: -32602 }) }`),
    (error) => error.rpc.code === -32602,
  );
  await assert.rejects(driven.tool("nothing"), /there is no tool `nothing`/);
});

test("arguments that the tool does not accept are invalid", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [{ id: "a", kind: "tool", payload: {
    validateArgs: (it) => it.n > 0 ? { isValid: true } : { isValid: false, errors: ["n must be positive", { message: "really" }] }, execute: (it) => it.n,
  } }] };`,
  );
  await driven.open();
  assert.equal(await driven.tool("a", { n: 1 }), 1);
  await assert.rejects(driven.tool("a", { n: 0 }), (error) => {
    assert.deepEqual(error.rpc, { code: -32602, message: "the arguments do not fit: n must be positive; really" });
    return true;
  });
});

test("values that JSON does not have", async (test) => {
  const driven = start(test, packOf("return eval(args.js);"));
  await driven.open();
  const act = (js) => driven.tool("act", { js });
  assert.deepEqual(
    await act(`({ n: 10n, big: 2n ** 70n, no: undefined, f() {}, s: Symbol("x"), nan: NaN, when: new Date(0) })`),
    {
      n: 10,
      big: "1180591620717411303424",
      nan: null,
      when: "1970-01-01T00:00:00.000Z",
    },
  );
  assert.deepEqual(
    await act(`[new Map([["a", 1]]), new Set([2]), Buffer.from("hi"), new Error("e"), [undefined, () => 1]]`),
    [{ a: 1 }, [2], { base64: "aGk=" }, { name: "Error", message: "e" }, [null, null]],
  );
  assert.deepEqual(await act(`({ toJSON: () => ({ ok: true }) })`), { ok: true });
  assert.deepEqual(await act(`(() => { const it = { n: 1 }; return [it, it]; })()`), [{ n: 1 }, { n: 1 }]);
  assert.equal(await act(`"a\\ud800b"`), "a\ufffdb");
  await assert.rejects(
    act(`(() => { const it = { a: {} }; it.a.b = it; return it; })()`),
    /`a\.b` refers to a value that contains it/,
  );
  await assert.rejects(act(`({ get x() { throw new Error("no"); } })`), /`x` cannot be read: no/);
  await assert.rejects(
    act(`(() => { let it = 1; for (let n = 0; n < 200; n += 1) it = [it]; return it; })()`),
    /nested too deeply/,
  );
});

test("a result that is too large for a line is refused, and the worker goes on", async (test) => {
  const driven = start(test, packOf("return args.n > 0 ? 'x'.repeat(args.n) : 'ok';"));
  await driven.open({ line_bytes: 100_000 });
  await assert.rejects(
    driven.tool("act", { n: 120_000 }),
    /the answer cannot be sent: it is too large: more than \d+ bytes/,
  );
  await assert.rejects(driven.tool("act", { n: 100_000_000 }), /too large/);
  assert.equal(await driven.tool("act", { n: 0 }), "ok");
});

test("who calls", async (test) => {
  const driven = start(test, packOf("delete call.signal; return [call, context.holdfast.turn];"));
  await driven.open();
  assert.deepEqual(await driven.tool("act"), [
    {
      gmiId: "main",
      personaId: "main",
      userContext: { userId: "ada" },
      correlationId: "5",
      sessionData: { sessionId: "s1", turn: 1, channel: "test" },
    },
    TURN,
  ]);
});

test("calls at the same time, and host calls of each", async (test) => {
  const driven = start(
    test,
    packOf(`
    const text = await context.holdfast.ask("state.get", { key: args.key });
    context.holdfast.progress("half");
    return await context.holdfast.ask("state.get", { key: text });
  `),
  );
  driven.answers["state.get"] = ({ key }, { call }) => `${key}@${call}`;
  await driven.open();
  const calls = ["a", "b", "c"].map((key) => driven.tool("act", { key }));
  const answers = await Promise.all(calls);
  assert.deepEqual(
    answers,
    calls.map((it, at) => `${"abc"[at]}@${it.number}@${it.number}`),
  );
  assert.deepEqual(
    driven.progress.map((it) => it.text),
    ["half", "half", "half"],
  );
  assert.deepEqual(new Set(driven.progress.map((it) => it.call)), new Set(calls.map((it) => it.number)));
});

test("a refused host call is an error with its code; arguments that cannot be sent do not reach it", async (test) => {
  const driven = start(
    test,
    packOf(
      `return context.holdfast.ask("file.write", args.big ? { n: 1n, f: "x".repeat(9e6) } : {}).catch((it) => [it.message, it.problem ?? null]);`,
    ),
  );
  driven.answers["file.write"] = new Error("not granted");
  await driven.open();
  assert.deepEqual(await driven.tool("act"), ["not granted", "HF-4103"]);
  assert.match(
    (await driven.tool("act", { big: true }))[0],
    /the arguments of `file.write` cannot be sent: it is too large/,
  );
  assert.equal(driven.asked.length, 1);
});

test("updates of a host call", async (test) => {
  const driven = start(
    test,
    packOf(`
    const heard = [];
    const answer = await context.holdfast.ask("agent.invoke", {}, { updated: (it) => heard.push(it.text), timeout_ms: 70 });
    return [heard, answer];
  `),
  );
  driven.answers["agent.invoke"] = (_, params) => {
    assert.equal(params.updates, true);
    assert.equal(params.timeout_ms, 70);
    driven.write({ method: "update", params: { question: driven.asked.length, text: "one" } });
    return "all";
  };
  await driven.open();
  assert.deepEqual(await driven.tool("act"), [["one"], "all"]);
});

test("a call that is cancelled is answered at once, and its signal is aborted", async (test) => {
  const driven = start(
    test,
    packOf(`
    context.logger.info("begun");
    await new Promise((done) => (context.holdfast.signal ?? call.signal).addEventListener("abort", done));
    context.logger.info("aborted");
    return await context.holdfast.ask("clock").catch((it) => context.logger.info(it.message));
  `),
  );
  await driven.open();
  const call = driven.tool("act");
  await driven.until(() => driven.logged.some((it) => it.text === "begun"));
  driven.write({ method: "cancel", params: { id: call.number } });
  await assert.rejects(call, /^Error: cancelled$/);
  await driven.until(() => driven.logged.some((it) => it.text === "`clock` was asked outside of any call of the host"));
  driven.write({ method: "cancel", params: { id: 999 } });
  assert.deepEqual(driven.odd, []);
});

test("a timer of a pack that lasts asks in the background call, which ends with the pack", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [], onActivate({ holdfast }) { setTimeout(() => holdfast.ask("clock"), 1); } };`,
  );
  await driven.open();
  const background = driven.function("service", "run-background");
  await driven.until(() => driven.asked.length === 1);
  assert.equal(driven.asked[0].call, background.number);
  await driven.request("stop");
  assert.equal(await background, null);
});

test("a ping is answered while calls wait", async (test) => {
  const driven = start(test, packOf("return new Promise(() => {});"));
  await driven.open();
  const call = driven.tool("act");
  assert.deepEqual(await driven.request("ping"), {});
  assert.ok(call);
});

test("an unknown method, function, hook and kind of call", async (test) => {
  const driven = start(test, packOf("return 1;"));
  await driven.open();
  await assert.rejects(driven.request("dance"), /the method `dance` is unknown/);
  await assert.rejects(driven.request("constructor"), /the method `constructor` is unknown/);
  await assert.rejects(
    driven.function("channel", "send-to-user"),
    /there is no function `send-to-user` of the role channel/,
  );
  await assert.rejects(driven.hook("pack-test/tool_gate/0", "tool_gate"), /there is no hook/);
  await assert.rejects(driven.request("api", { method: "m", arguments: {} }), /there is no method `m`/);
  await assert.rejects(driven.request("task", { task: "t" }), /there is no function `executeTask`/);
});

test("a plain extension: tools, hooks, an agent, commands, methods, renderers and a life", async (test) => {
  const driven = start(
    test,
    `
    let host;
    export const initialize = (context) => { host = context.holdfast; };
    export const tools = { add: ({ a, b }) => a + b, clock: { effects: "read", description: "Tells.", run: () => host.ask("clock") } };
    export const hooks = { tool_gate: ({ call }) => call.tool === "add" ? null : { decision: "deny", reason: "no" } };
    export const agent = { name: "helper", description: "Helps.", invoke: (task, turn) => task + " by " + turn.user };
    export const commands = [{ name: "obey", description: "Obeys.", run: (text) => text.toUpperCase() }];
    export const methods = { twice: (n) => n * 2 };
    export const render = { call: (tool, args) => tool + args.n, result: (tool, result) => tool + result };
    export const health = () => false;
    export const executeTask = (task) => ({ text: task });
  `,
  );
  const welcome = await driven.open();
  driven.answers.clock = 12;
  assert.deepEqual(
    welcome.tools.map((it) => it.name),
    ["add", "clock"],
  );
  assert.deepEqual(welcome.hooks, ["tool_gate"]);
  assert.deepEqual(welcome.agent, { name: "helper", description: "Helps." });
  assert.deepEqual(welcome.commands, [{ name: "obey", description: "Obeys." }]);
  assert.deepEqual(welcome.methods, [{ name: "twice", description: "" }]);
  assert.deepEqual(Object.keys(welcome.functions), [
    "agent",
    "commands",
    "renderer",
    "scheduler",
    "lifecycle",
    "service",
  ]);
  assert.equal(await driven.tool("add", { a: 1, b: 2 }), 3);
  assert.equal(await driven.tool("clock"), 12);
  assert.equal(await driven.hook("x/tool_gate/0", "tool_gate", null, { id: 1, tool: "add", arguments: {} }), null);
  assert.deepEqual(await driven.hook("x/tool_gate/0", "tool_gate", null, { id: 1, tool: "rm", arguments: {} }), {
    decision: "deny",
    reason: "no",
  });
  assert.equal(await driven.function("agent", "invoke", { task: "work", turn: TURN }), "work by ada");
  assert.equal(await driven.function("commands", "run", { name: "obey", arguments: "now" }), "NOW");
  assert.equal(await driven.request("api", { method: "twice", arguments: 4 }), 8);
  assert.equal(await driven.function("renderer", "render-call", { tool: "t", arguments: { n: 1 } }), "t1");
  assert.equal(await driven.function("renderer", "render-result", { tool: "t", result: 2 }), "t2");
  assert.deepEqual(await driven.request("task", { task: "daily" }), { text: "daily" });
  assert.equal(await driven.request("health"), false);
});
