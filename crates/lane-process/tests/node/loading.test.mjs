// How a pack is found and loaded.

import assert from "node:assert/strict";
import { test } from "node:test";

import { packOf, start } from "./driver.mjs";

const ONE = `{ name: "p", descriptors: [{ id: "act", kind: "tool", payload: { name: "act", description: "Acts.", inputSchema: {}, execute: async () => ({ success: true, output: 1 }) } }] }`;

const SHAPES = {
  "a named factory": { "index.mjs": `export const createExtensionPack = () => (${ONE});` },
  "an asynchronous factory": { "index.mjs": `export async function createExtensionPack() { return ${ONE}; }` },
  "a default factory": { "index.mjs": `export default () => (${ONE});` },
  "a default pack": { "index.mjs": `export default ${ONE};` },
  "a named pack": { "index.mjs": `export const pack = ${ONE};` },
  "a factory of another name": { "index.mjs": `export const createThingPack = () => (${ONE});` },
  "CommonJS with a named factory": { "index.cjs": `exports.createExtensionPack = () => (${ONE});` },
  "CommonJS with one export": { "index.js": `module.exports = () => (${ONE});` },
  "CommonJS as compilers write it": {
    "index.js": `Object.defineProperty(exports, "__esModule", { value: true }); exports.default = () => (${ONE});`,
  },
  "exports with conditions": {
    "package.json": { type: "module", exports: { ".": { types: "./no.d.ts", import: "./dist/a.js" } } },
    "dist/a.js": `export const createExtensionPack = () => (${ONE});`,
  },
  "exports for require": {
    "package.json": { exports: { require: "./a.cjs" } },
    "a.cjs": `exports.createExtensionPack = () => (${ONE});`,
  },
  "main without an ending": {
    "package.json": { main: "lib/a" },
    "lib/a.js": `exports.createExtensionPack = () => (${ONE});`,
  },
};

for (const [name, files] of Object.entries(SHAPES)) {
  test(`loads ${name}`, async (test) => {
    const driven = start(test, files);
    const welcome = await driven.open();
    assert.deepEqual(
      welcome.tools.map((it) => it.name),
      ["act"],
    );
    assert.equal(await driven.tool("act"), 1);
  });
}

test("loads a package from node_modules above", async (test) => {
  const driven = start(
    test,
    {
      "node_modules/@a/b/package.json": {
        name: "@a/b",
        version: "2.1.0",
        type: "module",
        exports: { import: "./i.js" },
      },
      "node_modules/@a/b/i.js": packOf("return { success: true, output: context.source };"),
    },
    { name: { package: "@a/b" } },
  );
  await driven.open();
  assert.deepEqual(await driven.tool("act"), { sourceName: "@a/b", sourceVersion: "2.1.0", identifier: "pack-test" });
});

test("the first hello loads nothing, and says what lasts", async (test) => {
  const driven = start(test, "throw new Error('not yet')");
  assert.deepEqual(await driven.hello(), {
    protocol: "0.1",
    later: true,
    functions: { lifecycle: ["initialize", "start", "stop", "destroy", "health-check"] },
  });
  await assert.rejects(driven.request("initialize"), /^Error: not yet$/);
});

const REFUSED = {
  "a folder with nothing in it": [{ "readme.txt": "" }, /the folder has no index.mjs, and no `exports` or `main`/],
  "a package without its build": [
    { "package.json": { main: "dist/index.js" } },
    /the folder has no file dist\/index.js: it was published/,
  ],
  "a path outside": [{ "package.json": { main: "../../etc/passwd" } }, /is outside of its folder/],
  "package.json that is no JSON": [{ "package.json": "{" }, /package.json: SyntaxError/],
  "an error of the syntax": ["export const = 1;", /SyntaxError/],
  "a package that is missing": ["import 'left-pad-of-nobody';", /the package is not installed: left-pad-of-nobody/],
  "a file that is missing": ["import './other.mjs';", /there is no file other.mjs/],
  "a module without a pack": ["export const a = 1;", /exports no `createExtensionPack` and no pack: it exports a/],
  "a factory that throws": [
    "export function createExtensionPack() { throw new Error('no token'); }",
    /^Error: no token$/,
  ],
  "a factory that gives nothing": ["export function createExtensionPack() {}", /has returned undefined, and no pack/],
  "a pack without descriptors": [
    "export const createExtensionPack = () => ({ name: 'p' });",
    /the pack has no list `descriptors`/,
  ],
  "descriptors that throw": [
    "export const createExtensionPack = () => ({ get descriptors() { throw new Error('bad'); } });",
    /reading the pack's `descriptors` failed: bad/,
  ],
  "an `onActivate` that throws": [
    "export const createExtensionPack = () => ({ descriptors: [], onActivate() { throw new Error('no service'); } });",
    /^Error: no service$/,
  ],
  "a module that throws no error": ["throw 7;", /something was thrown that is not an error: 7/],
};

for (const [name, [files, reason]] of Object.entries(REFUSED)) {
  test(`refuses ${name}`, async (test) => {
    const driven = start(test, files);
    await driven.hello();
    await assert.rejects(driven.request("initialize"), reason);
    // It is alive, and says the same again.
    await assert.rejects(driven.tool("act"), (error) => error.message.length > 0);
  });
}

test("TypeScript runs where Node strips types, and says so elsewhere", async (test) => {
  const driven = start(test, { "index.ts": `const n: number = 3;\n${packOf("return { success: true, output: n };")}` });
  await driven.hello();
  if (process.features.typescript) {
    await driven.request("initialize");
    assert.equal(await driven.tool("act"), 3);
  } else {
    await assert.rejects(
      driven.request("initialize"),
      /index.ts is TypeScript, which needs Node 22.18 or later; this is Node \d+/,
    );
  }
});

test("a module that never ends loading is given up", async (test) => {
  const driven = start(test, "await new Promise(() => {});");
  await driven.hello({ pack: { options: {}, activate_ms: 50 } });
  await assert.rejects(driven.request("initialize"), /loading the module has not ended within 0.05 s/);
});

test("a call before `initialize` activates", async (test) => {
  const driven = start(test, packOf("return 4;"));
  await driven.hello();
  assert.equal(await driven.tool("act"), 4);
});

test("the place of an error is told", async (test) => {
  const driven = start(test, packOf("null.x;"));
  await driven.open();
  await assert.rejects(driven.tool("act"), (error) => {
    assert.match(error.message, /^TypeError: Cannot read properties of null/);
    assert.match(error.rpc.data, /index\.mjs:5:\d+$/);
    return true;
  });
});
