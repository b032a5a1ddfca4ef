// The stand-in for the package by which packs refer to their host, and the check whether it is enough.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { folder } from "./driver.mjs";

const MAIN = process.env.WORKER ?? fileURLToPath(new URL("../../src/node/holdfast_worker/main.mjs", import.meta.url));
const WORKER = dirname(MAIN);
const PEER = "@framers/agentos";
const NEEDS = { peerDependencies: { [PEER]: "*" } };

/** What is missing of the peer for a package with this code; nothing if the stand-in is enough. */
function missing(test, code, manifest = NEEDS) {
  const root = folder(test, {
    "node_modules/@a/pack/package.json": manifest,
    "node_modules/@a/pack/dist/index.js": code,
    "node_modules/@a/pack/dist/types.d.ts": `import { Everything } from "${PEER}";`,
    [`node_modules/${PEER}/package.json`]: {},
  });
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(WORKER, "peers.mjs"), join(root, "node_modules")],
    { encoding: "utf8" },
  );
  assert.equal(stderr, "");
  assert.equal(status, stdout === "" ? 0 : 3);
  return stdout === "" ? [] : JSON.parse(stdout);
}

const ENOUGH = [
  `import { GuardrailAction, EXTENSION_KIND_TOOL as TOOL } from "${PEER}";`,
  `const { SharedServiceRegistry: Services } = require('${PEER}');`,
  `import * as host from "${PEER}"; console.log(host.GuardrailAction.BLOCK);`,
  `/** import { Agent } from "${PEER}" */\n// import { Agent } from "${PEER}"`,
  `import { Agent } from "@framers/agentos-ext-other";`,
];
const MORE = [
  [`import { Agent, GuardrailAction } from "${PEER}";`, ["Agent"]],
  [`import {\n  Agent as A,\n  Planner,\n} from "${PEER}";`, ["Agent", "Planner"]],
  [`const { Agent } = await import("${PEER}");`, ["Agent"]],
  [`const host = require("${PEER}"); new host.Agent();`, ["Agent"]],
  [`export { Agent } from "${PEER}";`, ["Agent"]],
  [`export * from "${PEER}";`, ["*"]],
  [`import { Agent } from "${PEER}/core/agents";`, ["/core/agents"]],
];

for (const code of ENOUGH)
  test(`the stand-in is enough for ${code}`, (test) => assert.deepEqual(missing(test, code), []));
for (const [code, names] of MORE)
  test(`the stand-in lacks what is in ${code}`, (test) => assert.deepEqual(missing(test, code), names));

test("packages that do not name the peer are not read", (test) => {
  assert.deepEqual(missing(test, `import { Agent } from "${PEER}";`, {}), []);
});

test("the stand-in has the same names for both kinds of modules", async () => {
  const module = await import(join(WORKER, "standin/index.js"));
  const { createRequire } = await import("node:module");
  const common = createRequire(import.meta.url)(join(WORKER, "standin/index.cjs"));
  assert.deepEqual({ ...module }, { ...common });
});
