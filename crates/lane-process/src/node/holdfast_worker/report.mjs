// Errors of a pack in words, and what happens to those that nobody catches.

import { fileURLToPath } from "node:url";

import {
  OwnError,
  apply,
  bare,
  defineProperty,
  exit,
  find,
  now,
  printError,
  replaced,
  slice,
  split,
  startsWith,
} from "./own.mjs";

/** Characters of a message that are sent. */
const MAX_MESSAGE_CHARS = 4000;
/** Uncaught errors that are logged in one second. */
const MAX_LOGGED = 20;
export const INVALID = -32602;
const WORKER = fileURLToPath(new URL(".", import.meta.url));
const text = String;

/** An error of the worker itself, in words for the user. */
export class Failure extends OwnError {
  constructor(message, code = 1) {
    super(message);
    this.code = code;
  }
}

/** What an error says. A name is added where it tells more than `Error`. */
export function described(error) {
  try {
    if (typeof error !== "object" || error === null)
      return limited(`something was thrown that is not an error: ${text(error)}`);
    const message = typeof error.message === "string" ? error.message : "";
    const name = typeof error.name === "string" ? error.name : "";
    const told = name === "" || name === "Error" || error instanceof Failure ? message : `${name}: ${message}`;
    return limited(told === "" ? "an error without a message" : told);
  } catch {
    return "an error that cannot be read";
  }
}

function limited(message) {
  return message.length > MAX_MESSAGE_CHARS ? `${slice(message, 0, MAX_MESSAGE_CHARS)} …` : message;
}

/** Where it happened: the first line of the stack outside of the worker and of Node, as `file:line:column`. */
export function placeOf(error) {
  const lines = stackLines(error);
  for (let index = 0; index < lines.length; index += 1) {
    const place = placeIn(lines[index]);
    if (place !== undefined && !startsWith(place, WORKER) && !startsWith(place, "node:")) return place;
  }
  return undefined;
}

/** Whether the worker's own code failed. */
function isOurs(error) {
  const lines = stackLines(error);
  for (let index = 0; index < lines.length; index += 1) {
    const place = placeIn(lines[index]);
    if (place !== undefined) return startsWith(place, WORKER);
  }
  return false;
}

function stackLines(error) {
  try {
    return typeof error?.stack === "string" ? split(slice(error.stack, 0, 20_000), "\n", 40) : [];
  } catch {
    return [];
  }
}

function placeIn(line) {
  const at = find(line, " at ");
  if (at < 0) return undefined;
  const open = find(line, "(");
  const place = replaced(open < 0 ? slice(line, at + 4) : slice(line, open + 1), /\)$|^async /g, "");
  return find(place, ":") < 0 ? undefined : replaced(place, "file://", "");
}

/** An error as JSON-RPC has it. */
export function asRpcError(error) {
  let code = 1;
  try {
    if (error?.code === INVALID) code = INVALID;
  } catch {
    // A getter that throws: the code stays.
  }
  const place = error instanceof Failure ? undefined : placeOf(error);
  return place === undefined
    ? bare({ code, message: described(error) })
    : bare({ code, message: described(error), data: place });
}

/** An error in one line: what it says, and where. */
export function line(error) {
  const place = error instanceof Failure ? undefined : placeOf(error);
  return place === undefined ? described(error) : `${described(error)} (${place})`;
}

/** Logs what nobody catches, and goes on; says who ends the process. Called before any code of a pack is loaded. */
export function guardProcess(log) {
  let second = 0;
  let logged = 0;
  const uncaught = (what, error) => {
    if (isOurs(error)) {
      printError(`the worker has failed: ${error.stack}\n`);
      exit(70);
    }
    const when = now();
    if (when - second > 1000) {
      second = when;
      logged = 0;
    }
    logged += 1;
    if (logged < MAX_LOGGED) log("error", `${what}: ${line(error)}`);
    if (logged === MAX_LOGGED) log("error", "more errors that nobody catches are not logged in this second");
  };
  process.on("unhandledRejection", (error) => uncaught("a promise was rejected and nobody handled it", error));
  // It also gets what the listener above would have got, if a pack removes that.
  process.setUncaughtExceptionCaptureCallback((error) => uncaught("an error that nobody catches", error));
  const end = process.exit;
  replace(process, "exit", (code) => {
    leaving(`process.exit(${code === undefined ? "" : text(code)})`);
    apply(end, process, [code]);
  });
  const abort = process.abort;
  replace(process, "abort", () => {
    leaving("process.abort()");
    apply(abort, process, []);
  });
}

function leaving(how) {
  const place = placeOf(new OwnError());
  printError(`the extension has ended its process with ${how}${place === undefined ? "" : `, at ${place}`}\n`);
}

function replace(object, name, value) {
  defineProperty(object, name, bare({ value, writable: true, configurable: true, enumerable: true }));
}
