// Paths into a document: names with dots between, positions in brackets, `[*]` for every item.

import { invalidArguments } from "holdfast";

/** The value at the path; undefined if there is none. */
export function follow(document, path) {
  return walk(document, steps(path));
}

function steps(path) {
  const found = [...path.matchAll(/\[(\*|\d+)\]|([^.[\]]+)/g)];
  const read = found.map(([, position, name]) => name ?? (position === "*" ? "*" : Number(position)));
  const written = found.map(([text]) => text).join("");
  if (written !== path.replaceAll(".", "")) throw invalidArguments(`\`${path}\` is not a path`);
  return read;
}

function walk(value, [step, ...rest]) {
  if (step === undefined || value === undefined || value === null) return step === undefined ? value : undefined;
  if (step !== "*") return walk(Object.hasOwn(Object(value), step) ? value[step] : undefined, rest);
  if (!Array.isArray(value)) return undefined;
  return value.map((item) => walk(item, rest)).filter((item) => item !== undefined);
}
