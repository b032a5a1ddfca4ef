// Values of a pack as JSON: what cannot be said in JSON is said otherwise, or refused with the place where it stands.

import {
  OwnError,
  OwnMap,
  OwnSet,
  bare,
  byteLength,
  create,
  isArray,
  isFinite,
  isSafeInteger,
  keys,
  mapEach,
  push,
  setAdd,
  setDelete,
  setEach,
  setHas,
  setPrototypeOf,
  stringify,
  uncurried,
  wellFormed,
} from "./own.mjs";

/** The deepest nesting of a value. */
const MAX_DEPTH = 120;
const dateText = uncurried(Date.prototype.toISOString);
const dateNumber = uncurried(Date.prototype.getTime);
const bytesText = uncurried(Buffer.prototype.toString);
const bufferOf = Buffer.from;
const { isView } = ArrayBuffer;
const text = String;
const number = Number;

/** A value that is too large, or that JSON cannot express. */
export class NotPlain extends OwnError {}

/** A copy with own, enumerable data only. `most` is about how many bytes of JSON it may be. */
export function plain(value, most = 8 << 20) {
  return copied(value, bare({ left: most, most, open: new OwnSet(), depth: 0 }), "");
}

/** The value as a line of JSON. */
export function encoded(value, most) {
  const line = stringify(plain(value, most)) ?? "null";
  const bytes = byteLength(line);
  if (bytes > most) throw tooLarge(bytes, most);
  return line;
}

function tooLarge(bytes, most) {
  return new NotPlain(`it is too large: ${bytes} bytes of JSON, and at most ${most} are sent`);
}

function spend(state, bytes) {
  state.left -= bytes;
  if (state.left < 0) throw new NotPlain(`it is too large: more than ${state.most} bytes of JSON`);
}

function copied(value, state, place) {
  switch (typeof value) {
    case "string":
      spend(state, value.length + 2);
      return wellFormed(value);
    case "number":
      spend(state, 4);
      return isFinite(value) ? value : null;
    case "boolean":
      return value;
    case "bigint":
      spend(state, 8);
      return isSafeInteger(number(value)) ? number(value) : text(value);
    case "object":
      return value === null ? null : object(value, state, place);
    default:
      return undefined;
  }
}

function object(value, state, place) {
  if (setHas(state.open, value)) throw new NotPlain(`${shown(place)} refers to a value that contains it`);
  if (state.depth >= MAX_DEPTH) throw new NotPlain(`${shown(place)} is nested too deeply`);
  setAdd(state.open, value);
  state.depth += 1;
  spend(state, 2);
  const made = contents(value, state, place);
  state.depth -= 1;
  setDelete(state.open, value);
  return made;
}

function contents(value, state, place) {
  if (isArray(value)) return list(value, state, place);
  if (value instanceof Date) return isFinite(dateNumber(value)) ? dateText(value) : null;
  if (isView(value)) return bytes(bufferOf(value.buffer, value.byteOffset, value.byteLength), state);
  if (value instanceof ArrayBuffer) return bytes(bufferOf(value), state);
  if (value instanceof OwnMap) return mapped(value, state, place);
  if (value instanceof OwnSet) return listed(value, state, place);
  if (value instanceof OwnError) return { name: text(value.name), message: text(value.message) };
  const toJson = read(value, "toJSON", place);
  // One that every object inherits is nobody's wish.
  if (typeof toJson === "function" && toJson !== Object.prototype.toJSON)
    return copied(toJson.call(value), state, place);
  return fields(value, state, place);
}

function bytes(buffer, state) {
  spend(state, buffer.length * 1.4);
  return bare({ base64: bytesText(buffer, "base64") });
}

function list(value, state, place) {
  const made = setPrototypeOf([], null);
  const length = value.length;
  spend(state, length);
  for (let index = 0; index < length; index += 1) {
    const item = copied(read(value, index, place), state, `${place}[${index}]`);
    made[index] = item === undefined ? null : item;
  }
  return made;
}

function listed(value, state, place) {
  const items = [];
  setEach(value, (item) => push(items, item));
  return list(items, state, place);
}

function mapped(value, state, place) {
  const made = create(null);
  mapEach(value, (item, key) => {
    const name = wellFormed(text(key));
    spend(state, name.length + 3);
    const copy = copied(item, state, `${place}.${name}`);
    if (copy !== undefined) made[name] = copy;
  });
  return made;
}

function fields(value, state, place) {
  const made = create(null);
  const names = keys(value);
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index];
    const copy = copied(read(value, name, place), state, `${place}.${name}`);
    if (copy === undefined) continue;
    spend(state, name.length + 4);
    made[wellFormed(name)] = copy;
  }
  return made;
}

function read(value, name, place) {
  try {
    return value[name];
  } catch (error) {
    throw new NotPlain(`${shown(`${place}.${text(name)}`)} cannot be read: ${error?.message ?? "an error"}`);
  }
}

/** A place in a value, as a message names it. */
function shown(place) {
  return place === "" ? "the value" : `\`${place[0] === "." ? place.substring(1) : place}\``;
}
