// Throws something that is not an error.
// load: something was thrown that is not an error

export function createExtensionPack() {
  throw 7;
}
