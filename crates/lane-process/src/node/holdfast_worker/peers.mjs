// `peers.mjs NODE_MODULES`: do the installed packages use more of their peer `@framers/agentos` than the stand-in
// has? Ends with 0 if not; else with 3, and prints the names as a JSON list. It reads files, and runs nothing of
// them.

import { readFileSync, readdirSync } from "node:fs";
import { extname, join } from "node:path";

import * as standin from "./standin/index.js";

const PEER = "@framers/agentos";
const CODE = [".js", ".mjs", ".cjs"];
const MAX_FILES = 20_000;
const FROM = String.raw`["']@framers/agentos["']`;
const missing = new Set();
let files = 0;

for (const folder of packages(process.argv[2])) scan(folder);
if (missing.size > 0) {
  console.log(JSON.stringify([...missing].sort()));
  process.exitCode = 3;
}

/** The packages that name the peer. */
function packages(root) {
  const names = readdirSync(root).filter((it) => !it.startsWith("."));
  const all = names.flatMap((it) =>
    it.startsWith("@") ? readdirSync(join(root, it)).map((inner) => `${it}/${inner}`) : [it],
  );
  return all
    .filter((it) => it !== PEER)
    .map((it) => join(root, it))
    .filter(namesPeer);
}

function namesPeer(folder) {
  try {
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return [manifest.dependencies, manifest.peerDependencies, manifest.optionalDependencies].some(
      (it) => it?.[PEER] !== undefined,
    );
  } catch {
    return false;
  }
}

function scan(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === "node_modules" || files >= MAX_FILES) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) scan(path);
    else if (entry.isFile() && CODE.includes(extname(entry.name))) used(readFileSync(path, "utf8"));
  }
}

function used(text) {
  files += 1;
  if (!text.includes(PEER)) return;
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  const lists = new RegExp(
    String.raw`(?:import|export|const|let|var)\s*\{([^}]*)\}\s*(?:from\s*|=\s*(?:await\s+import|require)\()\s*${FROM}`,
    "g",
  );
  for (const [, list] of code.matchAll(lists))
    list.split(",").forEach((it) => need(it.trim().split(/\s+as\s+|\s*:\s*/)[0]));
  const wholes = new RegExp(
    String.raw`(?:import\s+\*\s+as\s+|import\s+|(?:const|let|var)\s+)(\w+)\s*(?:from\s*|=\s*(?:await\s+import|require)\()\s*${FROM}`,
    "g",
  );
  for (const [, name] of code.matchAll(wholes)) {
    for (const [, member] of code.matchAll(new RegExp(String.raw`\b${name}\.(\w+)`, "g"))) need(member);
  }
  if (new RegExp(String.raw`export\s*\*\s*from\s*${FROM}`).test(code)) missing.add("*");
  for (const [, path] of code.matchAll(/(?:from\s*|(?:require|import)\(\s*)["']@framers\/agentos\/([^"']+)["']/g))
    missing.add(`/${path}`);
}

function need(name) {
  if (name !== "" && name !== "default" && !(name in standin)) missing.add(name);
}
