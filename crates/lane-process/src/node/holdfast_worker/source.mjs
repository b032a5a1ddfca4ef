// Which file of a folder or package is the pack, and how it is loaded: ES module, CommonJS or TypeScript.

import { existsSync, readFileSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { extname, dirname, join, relative, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";

import { Failure, described } from "./report.mjs";

const CONDITIONS = ["node", "import", "module-sync", "default"];
const REQUIRED = ["node", "require", "default"];
/** The files that are tried where nothing is named. */
const INDEX = ["index.mjs", "index.js", "index.cjs", "index.mts", "index.ts", "index.cts"];
const TYPES = [".ts", ".mts", ".cts"];

/**
 * Where the pack is: `kind` is `folder` or `package`, `root` the folder, `name` a file of it or the package's name.
 */
export function sourceOf(kind, root, name) {
  if (kind !== "package") {
    const file = name ? inside(root, name) : entryOf(root, manifestOf(root), "the folder");
    return { folder: root, file, manifest: manifestOf(root) ?? {} };
  }
  const folder = installed(root, name);
  const manifest = manifestOf(folder) ?? {};
  return { folder, file: entryOf(folder, manifest, `the package ${name}`), manifest };
}

function installed(root, name) {
  for (let from = resolve(root); ; from = dirname(from)) {
    const folder = join(from, "node_modules", name);
    if (existsSync(join(folder, "package.json"))) return folder;
    if (from === dirname(from)) throw new Failure(`the package ${name} is not installed`);
  }
}

function manifestOf(folder) {
  let text;
  try {
    text = readFileSync(join(folder, "package.json"), "utf8");
  } catch {
    return undefined;
  }
  try {
    const manifest = JSON.parse(text);
    if (typeof manifest === "object" && manifest !== null) return manifest;
  } catch (error) {
    throw new Failure(`package.json: ${described(error)}`);
  }
  throw new Failure("package.json is not an object");
}

function entryOf(folder, manifest, what) {
  const exported = manifest?.exports === undefined ? undefined : dot(manifest.exports);
  const named = target(exported, CONDITIONS) ?? target(exported, REQUIRED);
  const texts = (it) => typeof it === "string" && it !== "";
  const candidates = named === undefined ? [manifest?.main, manifest?.module].filter(texts) : [named];
  for (const candidate of candidates) {
    const file = onDisk(inside(folder, candidate));
    if (file !== undefined) return file;
  }
  const index = INDEX.find((it) => isFile(join(folder, it)));
  if (index !== undefined && named === undefined) return join(folder, index);
  if (candidates.length === 0) {
    throw new Failure(`${what} has no ${INDEX[0]}, and no \`exports\` or \`main\` in its package.json`);
  }
  throw new Failure(
    `${what} has no file ${candidates[0]}: it was published without its build, or its package.json is wrong`,
  );
}

/** What `exports` says of the package itself. */
function dot(exports) {
  if (typeof exports !== "object" || exports === null || Array.isArray(exports)) return exports;
  const isMap = Object.keys(exports).some((key) => key.startsWith("."));
  return isMap ? exports["."] : exports;
}

function target(exported, conditions) {
  if (typeof exported === "string") return exported;
  if (Array.isArray(exported)) return exported.map((it) => target(it, conditions)).find((it) => it !== undefined);
  if (typeof exported !== "object" || exported === null) return undefined;
  for (const [condition, inner] of Object.entries(exported)) {
    const found = conditions.includes(condition) ? target(inner, conditions) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function inside(folder, name) {
  const file = resolve(folder, name);
  const way = relative(folder, file);
  if (way === "" || way === ".." || way.startsWith(`..${sep}`)) throw new Failure(`${name} is outside of its folder`);
  return file;
}

/** The file, with the endings that `main` may leave out. */
function onDisk(file) {
  const tried = [file, `${file}.js`, `${file}.cjs`, ...INDEX.map((it) => join(file, it))];
  return tried.find(isFile);
}

function isFile(file) {
  try {
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The exports of a module. */
export async function exportsOf({ file, folder }) {
  if (!isFile(file)) throw new Failure(`there is no file ${relative(folder, file)}`);
  if (TYPES.includes(extname(file))) prepareTypes(file, folder);
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    throw explained(error, folder);
  }
}

/** TypeScript runs where this Node strips types. It never does that below `node_modules` by itself. */
function prepareTypes(file, folder) {
  const strips = Boolean(process.features.typescript);
  const below = file.split(sep).includes("node_modules");
  if (strips && !below) return;
  const { registerHooks, stripTypeScriptTypes } = nodeModule;
  if (typeof registerHooks === "function" && typeof stripTypeScriptTypes === "function") {
    const load = (url, context, next) => {
      const path = url.startsWith("file:") && TYPES.includes(extname(new URL(url).pathname));
      if (!path) return next(url, context);
      const source = stripTypeScriptTypes(readFileSync(new URL(url), "utf8"));
      return { format: url.endsWith(".cts") ? "commonjs" : "module", source, shortCircuit: true };
    };
    return void registerHooks({ load });
  }
  const needs = `needs Node 22.18 or later; this is Node ${process.versions.node}`;
  throw new Failure(`${relative(folder, file)} is TypeScript, which ${needs}. Build it to JavaScript`);
}

/** The reason why a module was not loaded, with what helps. */
function explained(error, folder) {
  if (error?.code === "ERR_MODULE_NOT_FOUND" || error?.code === "MODULE_NOT_FOUND") {
    const name = /Cannot find (?:package|module) '([^']+)'/.exec(String(error.message))?.[1];
    if (name !== undefined) {
      const isPath = name.startsWith("/") || name.startsWith(".");
      const shown = isPath ? relative(folder, name) : name;
      return new Failure(`${isPath ? "there is no file" : "the package is not installed:"} ${shown}`);
    }
  }
  if (error?.code === "ERR_UNKNOWN_FILE_EXTENSION") {
    return new Failure(
      `${described(error)}. TypeScript needs Node 22.18 or later; this is Node ${process.versions.node}`,
    );
  }
  return error;
}
