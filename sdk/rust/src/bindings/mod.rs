// @generated from `wit/` by `HOLDFAST_UPDATE=1 cargo test -p holdfast-tests --test bindings`.

#[rustfmt::skip]
pub mod types;
#[rustfmt::skip]
pub mod lifecycle_initialize;
#[rustfmt::skip]
pub mod lifecycle_start;
#[rustfmt::skip]
pub mod lifecycle_stop;
#[rustfmt::skip]
pub mod lifecycle_destroy;
#[rustfmt::skip]
pub mod lifecycle_health;
#[rustfmt::skip]
pub mod tools;
#[rustfmt::skip]
pub mod api;
#[rustfmt::skip]
pub mod agent;
#[rustfmt::skip]
pub mod commands;
#[rustfmt::skip]
pub mod scheduler;
#[rustfmt::skip]
pub mod setup;
#[rustfmt::skip]
pub mod render_call;
#[rustfmt::skip]
pub mod render_result;
#[rustfmt::skip]
pub mod channel;
#[rustfmt::skip]
pub mod channel_message;
#[rustfmt::skip]
pub mod channel_file;
#[rustfmt::skip]
pub mod channel_question;
#[rustfmt::skip]
pub mod streaming_channel;
#[rustfmt::skip]
pub mod streaming_status;
#[rustfmt::skip]
pub mod subscriber;
#[rustfmt::skip]
pub mod service;
#[rustfmt::skip]
pub mod session_start;
#[rustfmt::skip]
pub mod session_end;
#[rustfmt::skip]
pub mod session_cancel;
#[rustfmt::skip]
pub mod turn_start;
#[rustfmt::skip]
pub mod turn_end;
#[rustfmt::skip]
pub mod input_normalise;
#[rustfmt::skip]
pub mod verdicts;
#[rustfmt::skip]
pub mod sanitize_input;
#[rustfmt::skip]
pub mod guard_input;
#[rustfmt::skip]
pub mod context;
#[rustfmt::skip]
pub mod model_route;
#[rustfmt::skip]
pub mod tool_modify;
#[rustfmt::skip]
pub mod tool_gate;
#[rustfmt::skip]
pub mod tool_after;
#[rustfmt::skip]
pub mod sanitize_result;
#[rustfmt::skip]
pub mod guard_result;
#[rustfmt::skip]
pub mod sanitize_output;
#[rustfmt::skip]
pub mod guard_output;
#[rustfmt::skip]
pub mod guard_chunk;
#[rustfmt::skip]
pub mod response_process;
#[rustfmt::skip]
pub mod compaction_before;
#[rustfmt::skip]
pub mod compaction_provide;
#[rustfmt::skip]
pub mod log;
#[rustfmt::skip]
pub mod config;
#[rustfmt::skip]
pub mod session;
#[rustfmt::skip]
pub mod state;
#[rustfmt::skip]
pub mod messages;
#[rustfmt::skip]
pub mod clock;
#[rustfmt::skip]
pub mod random;
#[rustfmt::skip]
pub mod events;
#[rustfmt::skip]
pub mod subscriptions;
#[rustfmt::skip]
pub mod ui;
#[rustfmt::skip]
pub mod secrets;
#[rustfmt::skip]
pub mod timers;
#[rustfmt::skip]
pub mod extensions;
#[rustfmt::skip]
pub mod services;
#[rustfmt::skip]
pub mod agents;
#[rustfmt::skip]
pub mod channels;
#[rustfmt::skip]
pub mod prompts;
#[rustfmt::skip]
pub mod conversations;
#[rustfmt::skip]
pub mod results;
#[rustfmt::skip]
pub mod discovery;
#[rustfmt::skip]
pub mod maintenance;
#[rustfmt::skip]
pub mod system;
#[rustfmt::skip]
pub mod http;
#[rustfmt::skip]
pub mod files;
#[rustfmt::skip]
pub mod environment;
