// A gate over tool calls. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.

import { allow, deny, toolGate } from "holdfast";

// Called for each tool call that the manifest's matcher fits. A gate that fails or times out denies the call.
toolGate((call) => (call.tool.startsWith("delete_") ? deny(`${call.tool} is not allowed here`) : allow()));
