// Stands in for the package `@framers/agentos`, which packs name as a peer: what they use of it while they run, and
// nothing else.

"use strict";

const GuardrailAction = { ALLOW: "allow", FLAG: "flag", SANITIZE: "sanitize", BLOCK: "block" };

const AgentOSResponseChunkType = {
  TEXT_DELTA: "text_delta",
  SYSTEM_PROGRESS: "system_progress",
  TOOL_CALL_REQUEST: "tool_call_request",
  TOOL_RESULT_EMISSION: "tool_result_emission",
  UI_COMMAND: "ui_command",
  FINAL_RESPONSE: "final_response",
  ERROR: "error",
  METADATA_UPDATE: "metadata_update",
  WORKFLOW_UPDATE: "workflow_update",
  AGENCY_UPDATE: "agency_update",
  PROVENANCE_EVENT: "provenance_event",
};

/** Services by their keys: each is created once, by the first one that asks, and all get the same one. */
class SharedServiceRegistry {
  #ready = new Map();
  #pending = new Map();

  /**
   * The service. While it is created, others wait for it; a creation that failed is tried again by the next one who
   * asks.
   */
  getOrCreate(key, factory, options = {}) {
    const made = this.#ready.get(key);
    if (made !== undefined) return Promise.resolve(made.service);
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const creation = (async () => {
      try {
        // Not before this creation is known: a factory may throw at once.
        const service = await Promise.resolve().then(() => factory());
        this.#ready.set(key, { service, dispose: options?.dispose, tags: options?.tags ?? [] });
        return service;
      } finally {
        this.#pending.delete(key);
      }
    })();
    this.#pending.set(key, creation);
    return creation;
  }

  /** The service, if it was created. */
  get(key) {
    return this.#ready.get(key)?.service;
  }

  /** Whether the service was created. */
  has(key) {
    return this.#ready.has(key);
  }

  /** Disposes of a service: by what it was created with, or by its own `shutdown` or `dispose`. */
  async release(key) {
    const made = this.#ready.get(key);
    if (made === undefined) return;
    this.#ready.delete(key);
    if (typeof made.dispose === "function") await made.dispose(made.service);
    else if (typeof made.service?.shutdown === "function") await made.service.shutdown();
    else if (typeof made.service?.dispose === "function") await made.service.dispose();
  }

  /** Disposes of all, the last one first. All are tried; the first error is thrown. */
  async releaseAll() {
    const errors = [];
    for (const key of [...this.#ready.keys()].reverse()) {
      await this.release(key).catch((error) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }

  /** The keys of what was created, in this order. */
  keys() {
    return [...this.#ready.keys()];
  }
}

module.exports = {
  AgentOSResponseChunkType,
  GuardrailAction,
  SharedServiceRegistry,
  EXTENSION_KIND_TOOL: "tool",
  EXTENSION_KIND_GUARDRAIL: "guardrail",
  EXTENSION_KIND_RESPONSE_PROCESSOR: "response-processor",
  EXTENSION_KIND_WORKFLOW: "workflow",
  EXTENSION_KIND_WORKFLOW_EXECUTOR: "workflow-executor",
  EXTENSION_KIND_PERSONA: "persona",
  EXTENSION_KIND_PLANNING_STRATEGY: "planning-strategy",
  EXTENSION_KIND_HITL_HANDLER: "hitl-handler",
  EXTENSION_KIND_COMM_CHANNEL: "communication-channel",
  EXTENSION_KIND_MEMORY_PROVIDER: "memory-provider",
  EXTENSION_KIND_MESSAGING_CHANNEL: "messaging-channel",
  EXTENSION_KIND_PROVENANCE: "provenance",
};
