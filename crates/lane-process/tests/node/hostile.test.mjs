// Packs that break things: the messages go on, and the reason is told.

import assert from "node:assert/strict";
import { test } from "node:test";

import { packOf, start } from "./driver.mjs";

/** What a pack does to the objects of the language; afterwards every kind of message must still pass. */
const POLLUTION = {
  "a JSON that lies": `JSON.parse = () => ({}); JSON.stringify = () => "[]"; globalThis.JSON = undefined;`,
  "toJSON of all objects": `Object.prototype.toJSON = () => "mine"; Array.prototype.toJSON = () => "mine"; String.prototype.toJSON = () => "mine";`,
  "fields of all objects": `Object.prototype.method = "hello"; Object.prototype.error = { message: "mine" }; Object.prototype.id = 7; Object.prototype.code = 9;`,
  "accessors of all objects": `for (const name of ["value", "get", "set", "result", "params"]) Object.defineProperty(Object.prototype, name, Object.assign(Object.create(null), { configurable: true, get() { return "mine"; }, set() {} }));`,
  "array methods": `for (const name of ["push", "map", "join", "concat", "slice", "shift"]) Array.prototype[name] = () => { throw new Error("mine"); };`,
  "the iterator of arrays": `Array.prototype[Symbol.iterator] = function* () {};`,
  "maps and sets": `for (const type of [Map, Set]) for (const name of ["get", "set", "has", "delete", "add", "forEach"]) if (type.prototype[name]) type.prototype[name] = () => { throw new Error("mine"); };`,
  promises: `Promise.prototype.then = () => { throw new Error("mine"); }; Promise.resolve = () => { throw new Error("mine"); }; globalThis.Promise = undefined;`,
  strings: `for (const name of ["slice", "indexOf", "startsWith", "split", "replace", "toWellFormed"]) String.prototype[name] = () => { throw new Error("mine"); };`,
  timers: `globalThis.setTimeout = globalThis.clearTimeout = globalThis.setImmediate = globalThis.queueMicrotask = () => { throw new Error("mine"); };`,
  bytes: `Buffer.concat = Buffer.from = Buffer.byteLength = () => { throw new Error("mine"); }; globalThis.Buffer = undefined;`,
  "sockets and streams": `
    const { Socket } = await import("node:net"); const stream = await import("node:stream");
    for (const type of [Socket, stream.Writable, stream.Readable, stream.Duplex]) {
      for (const name of Object.getOwnPropertyNames(type.prototype)) {
        const { value, writable } = Object.getOwnPropertyDescriptor(type.prototype, name);
        if (name !== "constructor" && typeof value === "function" && writable) type.prototype[name] = () => { throw new Error("mine"); };
      }
    }`,
  process: `for (const name of ["on", "exit", "cwd", "hrtime"]) process[name] = () => { throw new Error("mine"); };`,
  "the listeners of process": `process.removeAllListeners();`,
  "function methods": `Function.prototype.call = Function.prototype.bind = () => { throw new Error("mine"); };`,
  "Reflect and Object": `for (const name of ["keys", "entries", "create", "defineProperty", "assign", "hasOwn"]) Object[name] = () => { throw new Error("mine"); }; Reflect.apply = Reflect.ownKeys = undefined;`,
};

for (const [name, code] of Object.entries(POLLUTION)) {
  test(`survives changes to ${name}`, async (test) => {
    const driven = start(
      test,
      packOf(
        `
      if (args.breaks) { ${code} }
      if (args.fails) throw new Error("as it says");
      if (args.asks) return await host("clock");
      if (args.logs) log("still here");
      return args.text;
    `,
        "const host = context.holdfast.ask; const log = context.logger.info;",
      ),
    );
    driven.answers.clock = 12;
    await driven.open();
    await driven.tool("act", { breaks: true, text: "a" });
    assert.equal(await driven.tool("act", { text: "b" }), "b");
    assert.deepEqual(await driven.request("ping"), {});
    await assert.rejects(driven.tool("act", { fails: true }), /as it says/);
    assert.equal(await driven.tool("act", { asks: true }), 12);
    const unknown = driven.tool("none");
    await assert.rejects(unknown, /there is no tool/);
    assert.deepEqual(driven.odd, []);
  });
}

test("a `then` that all objects inherit hurts only the call that it is used in", async (test) => {
  const driven = start(
    test,
    packOf(`
    if (args.breaks) Object.prototype.then = function () {};
    if (args.undoes) delete Object.prototype.then;
    return args.object ? { a: 1 } : "text";
  `),
  );
  await driven.open();
  assert.equal(await driven.tool("act", { breaks: true }), "text");
  const lost = driven.tool("act", { object: true });
  assert.equal(await driven.tool("act"), "text");
  driven.write({ method: "cancel", params: { id: lost.number } });
  await assert.rejects(lost, /cancelled/);
  assert.equal(await driven.tool("act", { undoes: true }), "text");
  assert.deepEqual(await driven.tool("act", { object: true }), { a: 1 });
});

test("prototype pollution by arguments reaches nothing", async (test) => {
  const driven = start(test, packOf(`return Object.keys(args);`));
  await driven.open();
  driven.socket.write(
    '{"jsonrpc":"2.0","id":77,"method":"tool","params":{"__proto__":{"tool":"x"},"call":1,"tool":"act","arguments":{"__proto__":{"a":1}},"turn":null}}\n',
  );
  const answer = new Promise((resolve, reject) => driven.waiting.set(77, { resolve, reject }));
  assert.deepEqual(await answer, ["__proto__"]);
});

const ENDS = {
  "process.exit in a call": [
    packOf("process.exit(3);"),
    3,
    /the extension has ended its process with process\.exit\(3\), at .*index\.mjs:5/,
  ],
  "process.exit in a timer": [
    packOf("setTimeout(() => process.exit(), 1); await new Promise(() => {});"),
    0,
    /ended its process with process\.exit\(\)/,
  ],
  "process.reallyExit": [packOf("process.reallyExit(4);"), 4, /^$/],
  "process.abort": [packOf("process.abort();"), null, /ended its process with process\.abort\(\)/],
};

for (const [name, [files, code, reason]] of Object.entries(ENDS)) {
  test(`${name} ends the process, and says who did that`, async (test) => {
    const driven = start(test, files);
    await driven.open();
    await assert.rejects(driven.tool("act"), /^Error: ended/);
    assert.equal((await driven.ended).code, code);
    assert.match(driven.printed, reason);
  });
}

test("a pack that breaks what Node itself uses ends its own process", async (test) => {
  const driven = start(test, packOf(`process.nextTick = process.emit = () => { throw new Error("mine"); }; return 1;`));
  await driven.open();
  await assert.rejects(async () => {
    for (;;) await driven.tool("act");
  }, /ended/);
  assert.match(driven.printed, /Error: mine\n\s+at process\.\S+ .*index\.mjs:5/);
});

test("process.exit while it is loaded", async (test) => {
  const driven = start(test, "process.exit(5);");
  await driven.hello();
  await assert.rejects(driven.request("initialize"), /ended/);
  assert.match(driven.printed, /the extension has ended its process with process\.exit\(5\), at .*index\.mjs:1/);
});

test("rejections and errors that nobody handles are logged, and end nothing", async (test) => {
  const driven = start(
    test,
    packOf(`
    Promise.reject(new Error("forgotten"));
    setTimeout(() => { throw new TypeError("in a timer"); }, 1);
    setTimeout(() => { throw null; }, 1);
    process.removeAllListeners("unhandledRejection");
    setTimeout(() => Promise.reject(new Error("without a listener")), 5);
    return 1;
  `),
  );
  await driven.open();
  assert.equal(await driven.tool("act"), 1);
  const errors = () =>
    driven.logged
      .filter((it) => it.level === "error")
      .map((it) => it.text)
      .join("\n");
  await driven.until(() => /without a listener/.test(errors()));
  assert.match(errors(), /an error that nobody catches: TypeError: in a timer \(.*index\.mjs:7:\d+\)/);
  assert.equal(await driven.tool("act"), 1);
});

test("a storm of rejections does not fill the log", async (test) => {
  const driven = start(test, packOf(`for (let n = 0; n < 5000; n += 1) Promise.reject(new Error("n" + n)); return 1;`));
  await driven.open();
  await driven.tool("act");
  await driven.until(() => driven.logged.some((it) => /more errors/.test(it.text)));
  await driven.request("ping");
  assert.ok(driven.logged.length < 200, String(driven.logged.length));
});

test("what a pack prints is no message", async (test) => {
  const driven = start(
    test,
    packOf(`
    console.log('{"jsonrpc":"2.0","id":1,"result":"mine"}'); process.stdout.write("out\\n"); console.error("err");
    return "fine";
  `),
  );
  await driven.open();
  assert.equal(await driven.tool("act"), "fine");
  await driven.stop();
  assert.match(driven.printed, /"mine"/);
  assert.deepEqual(driven.odd, []);
});

test("standard input is empty for a pack and for what it starts", async (test) => {
  const driven = start(
    test,
    packOf(`
    const chunks = []; for await (const chunk of process.stdin) chunks.push(chunk);
    const { execFileSync, spawnSync, spawn } = await import("node:child_process");
    const found = [chunks.length, spawnSync("cat", { stdio: ["inherit", "pipe", "pipe"] }).stdout.length, String(execFileSync("cat", { stdio: ["inherit", "pipe", "pipe"] }))];
    const child = spawn("cat", { stdio: ["inherit", "pipe", "inherit"] });
    let text = ""; for await (const chunk of child.stdout) text += chunk;
    return [...found, text];
  `),
  );
  await driven.open();
  const call = driven.tool("act");
  const other = driven.request("ping");
  assert.deepEqual(await call, [0, 0, "", ""]);
  assert.deepEqual(await other, {});
});

test("5,000 tools: the first thousand are used", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: Array.from({ length: 5000 }, (_, n) => ({ kind: "tool", id: "t" + n, payload: { execute: () => n } })) };`,
  );
  const welcome = await driven.open();
  assert.equal(welcome.tools.length, 1000);
  assert.match(welcome.problems[0], /the pack has 5000 descriptors: only the first 1000 are used/);
  assert.equal(await driven.tool("t999"), 999);
});

test("a description that is too long for a line is cut", async (test) => {
  const driven = start(
    test,
    `const inputSchema = { description: "x".repeat(60000) };
    export default { descriptors: Array.from({ length: 400 }, (_, n) => ({ kind: "tool", id: "t" + n, payload: { inputSchema, description: "y".repeat(9999), execute: () => n } })) };`,
  );
  const welcome = await driven.open();
  assert.ok(welcome.tools.length >= 50 && welcome.tools.length < 200, String(welcome.tools.length));
  assert.equal(welcome.tools[0].description.length, 4000);
  assert.match(welcome.problems.at(-1), /the description is too long: only the first \d+ tools are registered/);
});

test("schemas that are huge or refer to themselves", async (test) => {
  const driven = start(
    test,
    `const round = {}; round.properties = { round };
    export default { descriptors: [
      { kind: "tool", id: "a", payload: { inputSchema: round, execute() {} } },
      { kind: "tool", id: "b", payload: { inputSchema: { description: "x".repeat(1e6) }, execute() {} } },
      { kind: "tool", id: "c", payload: { get inputSchema() { throw new Error("no schema"); }, execute() {} } },
      { kind: "tool", id: "x".repeat(200), payload: { execute() {} } },
      { kind: "tool", id: "d", payload: { execute() {} } },
    ] };`,
  );
  const welcome = await driven.open();
  assert.deepEqual(
    welcome.tools.map((it) => it.name),
    ["d"],
  );
  assert.equal(welcome.problems.length, 4);
});

test("a list of descriptors that is a trap", async (test) => {
  const driven = start(
    test,
    `const list = [{ kind: "tool", id: "a", payload: { execute: () => 1 } }]; list.length = 4e9; list[Symbol.iterator] = () => { throw new Error("mine"); };
    export default { descriptors: list };`,
  );
  const welcome = await driven.open();
  assert.deepEqual(
    welcome.tools.map((it) => it.name),
    ["a"],
  );
  assert.equal(welcome.problems.length, 100);
});

test("garbage that a pack writes to the socket is what the host sees", async (test) => {
  const driven = start(test, packOf(`(await import("node:fs")).writeSync(0, "garbage\\n"); return 1;`));
  await driven.open();
  assert.equal(await driven.tool("act"), 1);
  assert.deepEqual(driven.odd, ["garbage"]);
});

test("the worker ends when the host is gone", async (test) => {
  const driven = start(
    test,
    packOf("setInterval(() => {}, 1000); process.on('exit', () => console.log('bye')); return 1;"),
  );
  await driven.open();
  await driven.tool("act");
  driven.socket.destroy();
  assert.equal((await driven.ended).code, 0);
});
