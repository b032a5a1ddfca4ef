// The worker's own copies of what it needs from the language and from Node, taken before any code of a pack runs: a
// pack that replaces `JSON.parse` or adds to `Object.prototype` then breaks itself, and not the messages between the
// worker and its host.

import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";

const { bind, call } = Function.prototype;
/** A method as a function whose first argument is the object. */
export const uncurried = bind.bind(call);

export const { parse, stringify } = JSON;
export const { isArray, from: arrayFrom } = Array;
export const {
  create,
  defineProperty,
  entries,
  freeze,
  getOwnPropertyDescriptor,
  getOwnPropertyDescriptors,
  getOwnPropertyNames,
  getPrototypeOf,
  hasOwn,
  keys,
  setPrototypeOf,
} = Object;
export const { apply, ownKeys } = Reflect;
export const { isFinite, isInteger, isSafeInteger } = Number;
export const { byteLength } = Buffer;
export const { min } = Math;
export const now = Date.now;
export const timeout = setTimeout;
export const clear = clearTimeout;
export const soon = setImmediate;
export const printError = (text) => {
  try {
    writeSync(2, text);
  } catch {
    // Nobody reads the log any more.
  }
};

export const push = uncurried(Array.prototype.push);
export const join = uncurried(Array.prototype.join);
export const sort = uncurried(Array.prototype.sort);
export const slice = uncurried(String.prototype.slice);
export const find = uncurried(String.prototype.indexOf);
export const startsWith = uncurried(String.prototype.startsWith);
export const split = uncurried(String.prototype.split);
export const replaced = uncurried(String.prototype.replace);
export const upper = uncurried(String.prototype.toUpperCase);
export const wellFormed = uncurried(String.prototype.toWellFormed);
export const matches = uncurried(RegExp.prototype.test);
export const mapGet = uncurried(Map.prototype.get);
export const mapSet = uncurried(Map.prototype.set);
export const mapDelete = uncurried(Map.prototype.delete);
export const mapEach = uncurried(Map.prototype.forEach);
export const setAdd = uncurried(Set.prototype.add);
export const setHas = uncurried(Set.prototype.has);
export const setDelete = uncurried(Set.prototype.delete);
export const setEach = uncurried(Set.prototype.forEach);
export const then = uncurried(Promise.prototype.then);
export const abort = uncurried(AbortController.prototype.abort);
export const signalOf = uncurried(getOwnPropertyDescriptor(AbortController.prototype, "signal").get);
export const OwnMap = Map;
export const OwnSet = Set;
export const OwnPromise = Promise;
export const OwnError = Error;
export const OwnAbortController = AbortController;

const storage = new AsyncLocalStorage();
export const runWith = bind.call(storage.run, storage);
export const current = bind.call(storage.getStore, storage);

const processExit = process.exit;
/** Ends the process. */
export const exit = (code) => apply(processExit, process, [code]);

/**
 * An object that inherits nothing: what a pack adds to `Object.prototype` is not seen in it, and no promise takes it
 * for another one.
 */
export const bare = (fields) => {
  const made = create(null);
  const names = keys(fields);
  for (let index = 0; index < names.length; index += 1) made[names[index]] = fields[names[index]];
  return made;
};

/** Copies every inherited method to the object itself, so that it keeps working when its prototypes are changed. */
export function independent(object) {
  for (let from = getPrototypeOf(object); from !== null && from !== Object.prototype; from = getPrototypeOf(from)) {
    for (const name of ownKeys(from)) {
      if (name === "constructor" || hasOwn(object, name)) continue;
      defineProperty(object, name, setPrototypeOf(getOwnPropertyDescriptor(from, name), null));
    }
  }
  return object;
}
