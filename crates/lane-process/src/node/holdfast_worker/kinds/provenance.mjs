// Kind `provenance`: is told of what is recorded.

import { Failure } from "../report.mjs";

export function provenance(payload, { pack, shown }) {
  const method = [payload.onFrame, payload.onEvent, payload.record, payload.append, payload].find(
    (it) => typeof it === "function",
  );
  if (method === undefined) throw new Failure("its payload has no function `onFrame`");
  if (!(pack.hello.features ?? []).includes("frames")) {
    pack.problem(`${shown} is told nothing: this program does not offer frames to extensions`);
    return {};
  }
  const tell = async ({ params }) => {
    await method.call(payload, params.arguments?.payload ?? params.arguments);
    return null;
  };
  return { functions: { subscriber: { "on-event": tell } }, lasts: true };
}
