// The hostile packs that the tests of the whole program use, as far as they need no confinement. Their README says what the directives mean.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { start } from "./driver.mjs";

const FOLDER = new URL("../../../holdfast/tests/extensions/packs/hostile/", import.meta.url);

for (const name of readdirSync(FOLDER).filter((it) => it.endsWith(".mjs"))) {
  const text = readFileSync(new URL(name, FOLDER), "utf8");
  const [, ...directives] = text
    .slice(0, text.indexOf("\n\n"))
    .split("\n")
    .map((line) => line.slice(3));
  if (directives.includes("host")) continue;
  test(`contains ${name}`, (test) => contained(start(test, text), directives));
}

async function contained(driven, directives) {
  for (const call of ["secret.get", "file.write", "agent.invoke", "no.such.call"])
    driven.answers[call] = new Error("refused");
  const about = { pack: { options: {}, activate_ms: 2000, deactivate_ms: 300 } };
  await driven.hello(about);
  const activation = driven.request("initialize");
  let welcome;
  let outcome;
  for (const directive of directives) {
    const [word, rest] = [directive.split(/[: ]/)[0], directive.replace(/^\w+:? ?/, "")];
    if (word === "load") {
      const failed = await assert.rejects(activation).then(() => activation.catch((error) => error.message));
      assert.ok(`${failed}${driven.printed}`.includes(rest), `${failed}${driven.printed}`);
      return;
    }
    welcome ??= await activation.then(() => driven.hello(about));
    if (word === "problem")
      assert.ok(
        welcome.problems.some((it) => it.includes(rest)),
        welcome.problems.join("\n"),
      );
    else if (word === "call") outcome = driven.tool(rest.split(" ")[0], JSON.parse(rest.slice(rest.indexOf(" "))));
    else if (word === "hook") outcome = asked(driven, ...rest.split(" "));
    else if (word === "answers") assert.deepEqual(await outcome, JSON.parse(rest));
    else if (word === "fails") assert.ok((await failure(outcome)).includes(rest), await failure(outcome));
    else if (word === "log") await driven.until(() => driven.logged.some((it) => it.text.includes(rest)));
    else if (word === "stop") await driven.request("stop").then(() => driven.request("destroy"));
    else if (word === "ends") {
      await failure(outcome);
      await driven.ended;
      return assert.ok(driven.printed.includes(rest), driven.printed);
    } else assert.fail(`unknown directive: ${directive}`);
  }
  assert.deepEqual(await driven.request("ping"), {});
  assert.deepEqual(driven.odd, []);
}

function asked(driven, id, point, text) {
  return driven.hook(`pack-test/guardrail/${id}/0`, point, text);
}

async function failure(outcome) {
  return outcome.then(
    (it) => assert.fail(`it has answered ${JSON.stringify(it)}`),
    (error) => error.message,
  );
}
