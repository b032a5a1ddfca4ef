// The differences of two documents, as a list of paths.

/** Each difference has `path` and, if there is a value, `before` and `after`. */
export function differences(before, after, path = "") {
  if (Object.is(before, after)) return [];
  if (!nested(before) || !nested(after) || Array.isArray(before) !== Array.isArray(after)) {
    return [{ path, before, after }];
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differences(before[name], after[name], place(path, name, before)));
}

const nested = (value) => typeof value === "object" && value !== null;

function place(path, name, parent) {
  if (Array.isArray(parent)) return `${path}[${name}]`;
  return path === "" ? name : `${path}.${name}`;
}
