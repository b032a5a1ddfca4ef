// The life of a pack: in which order its steps are called, what a failure of one does, secrets and services.

import assert from "node:assert/strict";
import { test } from "node:test";

import { packOf, start } from "./driver.mjs";

const TOOL = (id, more = "") =>
  `{ id: "${id}", kind: "tool", payload: { name: "${id}", description: "", async execute() { return "${id}"; } }, ${more} }`;
const STEPS = `onActivate(it) { it.logger.info(NAME + " on"); }, onDeactivate(it) { it.logger.info(NAME + " off"); }`;
const steps = (name) => STEPS.replaceAll("NAME", JSON.stringify(name));
const said = (driven) => driven.logged.filter((it) => it.level === "info").map((it) => it.text);

test("the pack is activated before its descriptors, and ended after them", async (test) => {
  const driven = start(
    test,
    `export const createExtensionPack = () => ({
    ${steps("pack")},
    descriptors: [${TOOL("a", steps("a"))}, ${TOOL("b", steps("b"))}],
  });`,
  );
  await driven.open();
  await driven.request("start");
  await driven.request("stop");
  await driven.request("destroy");
  assert.deepEqual(said(driven), ["pack on", "a on", "b on", "b off", "a off", "pack off"]);
});

test("descriptors are read after the pack's `onActivate`", async (test) => {
  const driven = start(
    test,
    `export function createExtensionPack() {
    let made = "old";
    return { onActivate() { made = "new"; }, get descriptors() {
      const it = made;
      return [{ id: "act", kind: "tool", payload: { name: "act", description: it, async execute() { return it; } } }];
    } };
  }`,
  );
  const welcome = await driven.open();
  assert.equal(welcome.tools[0].description, "new");
  assert.equal(await driven.tool("act"), "new");
});

test("a descriptor that fails is left out, with its reason", async (test) => {
  const driven = start(
    test,
    `export const createExtensionPack = () => ({ descriptors: [
    ${TOOL("a", `onActivate() { throw new Error("no disk"); }`)}, ${TOOL("b")},
    { id: "c", kind: "tool", payload: {} }, { id: "d", kind: "tool" }, null, { kind: "Tool", id: "e", payload: {} }, { kind: "tool", payload: {} },
    { id: "f", kind: "tool", get payload() { throw new Error("unreadable"); } },
  ] });`,
  );
  const welcome = await driven.open();
  assert.deepEqual(
    welcome.tools.map((it) => it.name),
    ["b"],
  );
  const reasons = welcome.problems.join("\n");
  for (const reason of [
    /^tool `a` is left out: no disk/m,
    /^tool `c` is left out: its payload has no function `execute`/m,
    /^tool `d` is left out: it has no `payload`/m,
    /^a descriptor is left out: TypeError/m,
    /its kind is not lower-case words with `-`: "Tool"/,
    /its id is not a name: undefined/,
    /^tool `f` is left out: unreadable/m,
  ])
    assert.match(reasons, reason);
  assert.equal(await driven.tool("b"), "b");
});

test("an `onActivate` that hangs costs its descriptor alone", async (test) => {
  const driven = start(
    test,
    `export const createExtensionPack = () => ({ descriptors: [
    ${TOOL("a", `onActivate: () => new Promise(() => {})`)}, ${TOOL("b")},
  ] });`,
  );
  const welcome = await driven.open({ pack: { options: {}, activate_ms: 2000 } });
  assert.deepEqual(welcome.problems, ["tool `a` is left out: `onActivate` of tool `a` has not ended within 2 s"]);
});

test("an `onDeactivate` that hangs or fails keeps nobody", async (test) => {
  const driven = start(
    test,
    `export const createExtensionPack = () => ({
    ${steps("pack")},
    descriptors: [${TOOL("a", `onDeactivate: () => new Promise(() => {})`)}, ${TOOL("b", `onDeactivate() { throw new Error("stuck"); }`)}],
  });`,
  );
  await driven.open({ pack: { options: {}, deactivate_ms: 50 } });
  await driven.request("stop");
  assert.deepEqual(said(driven), ["pack on", "pack off"]);
  const warnings = driven.logged.filter((it) => it.level === "warning").map((it) => it.text);
  assert.match(warnings[0], /`onDeactivate` of tool `b` failed: stuck/);
  assert.match(warnings[1], /`onDeactivate` of tool `a` failed: .* has not ended within 0.05 s/);
});

test("of two descriptors with one kind and id the later is used", async (test) => {
  const driven = start(
    test,
    `const one = ${TOOL("a")}; const two = ${TOOL("a")}; two.payload.description = "second";
    export default { descriptors: [one, two] };`,
  );
  const welcome = await driven.open();
  assert.deepEqual(
    welcome.tools.map((it) => it.description),
    ["second"],
  );
  assert.match(welcome.problems[0], /two descriptors tool `a`/);
});

test("a pack without steps needs no process that stays; one with a step does", async (test) => {
  const plain = await start(test, packOf("return 1;")).open();
  assert.deepEqual(plain.functions, {});
  const lasting = await start(test, `export default { descriptors: [], onDeactivate() {} };`).open();
  assert.deepEqual(Object.keys(lasting.functions), ["lifecycle", "service"]);
});

test("after a failed activation the next one tries again", async (test) => {
  const driven = start(
    test,
    `let tries = 0;
    export const createExtensionPack = () => { if (tries++ === 0) throw new Error("not yet"); return { descriptors: [${TOOL("a")}] }; };`,
  );
  await driven.hello();
  await assert.rejects(driven.request("initialize"), /not yet/);
  await driven.request("initialize");
  assert.equal(await driven.tool("a"), "a");
});

// Secrets.

const READS = packOf("return args.ids.map((id) => context.getSecret(id) ?? null);");

test("a secret set for the pack comes before its options, and those before the environment", async (test) => {
  const driven = start(test, READS, {
    environment: { A_KEY: "environment", B_KEY: "environment", C_KEY: "environment", OTHER_NAME: "by catalogue" },
  });
  driven.answers["secret.get"] = (name) =>
    ({ STORED: "explicit", B_KEY: "stored" })[name] ?? new Error("no such secret");
  await driven.open({
    secrets: ["STORED", "B_KEY", "MISSING"],
    catalogue: { "d.secret": "OTHER_NAME" },
    pack: { options: { secrets: { "a.key": "option", "e.key": "option" } }, secrets: { "a.key": "STORED" } },
  });
  const values = await driven.tool("act", { ids: ["a.key", "b.key", "cKey", "d.secret", "e.key", "f.key"] });
  assert.deepEqual(values, ["explicit", "stored", "environment", "by catalogue", "option", null]);
});

test("secrets can be read while the module is loaded and in the factory", async (test) => {
  const driven = start(
    test,
    `export function createExtensionPack(context) {
    const found = [context.getSecret("a.key"), context.options.secrets["a.key"], context.secrets["a.key"]];
    return { descriptors: [{ id: "act", kind: "tool", payload: { async execute() { return found; } } }] };
  }`,
  );
  driven.answers["secret.get"] = "value";
  await driven.open({ secrets: ["NAME"], pack: { options: {}, secrets: { "a.key": "NAME" } } });
  assert.deepEqual(await driven.tool("act"), ["value", "value", "value"]);
  assert.deepEqual(
    driven.asked.map((it) => it.arguments),
    ["NAME"],
  );
});

test("only granted secrets are asked for", async (test) => {
  const driven = start(test, READS);
  await driven.open({ pack: { options: {}, secrets: { "a.key": "SOMEBODY_ELSES" } } });
  assert.deepEqual(await driven.tool("act", { ids: ["a.key", "SOMEBODY_ELSES"] }), [null, null]);
  assert.deepEqual(driven.asked, []);
});

test("a tool without a secret that it needs is told with it, and cannot be called; an optional one can", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [
    ${TOOL("a", `requiredSecrets: [{ id: "x.apiKey" }], onActivate() { throw new Error("not reached"); }`)},
    ${TOOL("b", `requiredSecrets: [{ id: "y.key", optional: true }]`)}, ${TOOL("c", `requiredSecrets: [{ id: "z.key" }]`)},
    { kind: "persona", id: "d", payload: { prompt: "You are." }, requiredSecrets: [{ id: "D_KEY" }] },
    { kind: "guardrail", id: "e", payload: { evaluateInput() {} }, requiredSecrets: [{ id: "e.key" }] },
  ] };`,
    { environment: { Z_KEY: "there" } },
  );
  const welcome = await driven.open();
  assert.deepEqual(
    welcome.tools.map((it) => [it.name, it.required_secrets]),
    [
      ["a", [{ id: "X_API_KEY" }]],
      ["b", [{ id: "Y_KEY", optional: true }]],
      ["c", undefined],
    ],
  );
  assert.deepEqual(welcome.problems, [
    "tool `a` is not activated: it needs the secret `x.apiKey` (X_API_KEY)",
    "persona `d` is left out: it needs the secret `D_KEY`",
    "guardrail `e` is not activated: it needs the secret `e.key` (E_KEY)",
  ]);
  await assert.rejects(driven.tool("a"), /it needs the secret `x.apiKey`/);
  assert.deepEqual(
    welcome.descriptors.map((it) => it.id),
    ["e"],
  );
  await assert.rejects(driven.hook("pack-test/guardrail/e/0", "guard_input", "x"), /it needs the secret `e.key`/);
});

// Services.

test("a service is created once, while others wait; a failed creation is tried again", async (test) => {
  const driven = start(
    test,
    `let made = 0; let tried = 0;
    ${packOf(`
      if (args.fails) {
        const failing = () => { tried += 1; if (tried < 3) throw new Error("attempt " + tried); return "third"; };
        const first = await context.services.getOrCreate("f", failing).catch((it) => it.message);
        const second = await context.services.getOrCreate("f", failing).catch((it) => it.message);
        return [first, second, await context.services.getOrCreate("f", failing)];
      }
      const make = async () => { made += 1; await new Promise((done) => setTimeout(done, 5)); return { made }; };
      const all = await Promise.all([1, 2, 3].map(() => context.services.getOrCreate("s", make)));
      return [made, all[0] === all[2], context.services.has("s"), context.services.has("t"), context.services.get("s").made];
    `)}`,
  );
  await driven.open();
  assert.deepEqual(await driven.tool("act"), [1, true, true, false, 1]);
  assert.deepEqual(await driven.tool("act", { fails: true }), ["attempt 1", "attempt 2", "third"]);
});

test("services are disposed of at the end, the last one first", async (test) => {
  const driven = start(
    test,
    `export default { descriptors: [], async onActivate(it) {
    const log = (text) => () => it.logger.info(text);
    await it.services.getOrCreate("a", () => ({ shutdown: log("a by itself") }));
    await it.services.getOrCreate("b", () => 1, { dispose: log("b as it was told") });
    await it.services.getOrCreate("c", () => 1, { dispose() { throw new Error("stuck"); } });
    await it.services.getOrCreate("d", () => 1, { dispose: () => new Promise(() => {}) });
    await it.services.getOrCreate("e", () => 1, { dispose: log("e") });
    await it.services.release("e");
  } };`,
  );
  await driven.open({ pack: { options: {}, deactivate_ms: 50 } });
  await driven.request("stop");
  await driven.request("destroy");
  assert.deepEqual(said(driven), ["e", "b as it was told", "a by itself"]);
  const warnings = driven.logged.filter((it) => it.level === "warning").map((it) => it.text);
  assert.match(warnings.join("\n"), /service `d` failed: .* within 0.05 s[^]*service `c` failed: stuck/);
});

test("the options, the identity and the logger of the context", async (test) => {
  const driven = start(
    test,
    packOf(`
    context.logger.child({ part: "x" }).warn("careful", { n: 1 }, new Error("e"));
    return [context.options, context.manifestEntry.priority, context.source, context.holdfast.workspace, context.holdfast.config];
  `),
  );
  await driven.open({
    config: { c: 1 },
    pack: { options: { mark: "!" }, priority: 7, workspace: "/w", package: "p@1", identifier: "i" },
  });
  assert.deepEqual(await driven.tool("act"), [
    { mark: "!" },
    7,
    { sourceName: "p@1", sourceVersion: "1.0.0", identifier: "i" },
    "/w",
    { c: 1 },
  ]);
  assert.deepEqual(driven.logged.at(-1), { level: "warning", text: 'careful {"n":1} e part=x' });
});
