// A gate over tool calls. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml.

import { allow, deny, toolGate } from "holdfast";

// Asked about each call that the manifest's matcher fits. A gate that fails or is late has denied.
toolGate((call) => (call.tool.startsWith("delete_") ? deny(`${call.tool} is not allowed here`) : allow()));
