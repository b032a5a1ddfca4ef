//! The home folder: where it is, what it contains, and which process owns it.
//!
//! Start at [`Home`]: [`Home::locate`] finds it, [`Home::init`] creates it, [`Home::own`] locks it, [`Home::examine`] checks it.
//!
//! - `settings`: `config/settings.yaml` ([`Settings`])
//! - `environment`: `.env` and the process's variables ([`HomeEnvironment`])
//! - `prompts`: `prompts/*.jinja2` ([`Prompts`])
//! - `policy_file`: `config/policy.yaml`, read by [`Home::policy`] and extended by [`Home::remember_rule`]
//! - `owner`: the lock and the control socket
//! - `workspace`: the folder that file tools work in
//! - `files`: reading with limits and replacing atomically
//!
//! `docs/home.md` is the user's page. Use this crate for files that the user edits. Do not put frames here, which are in the store,
//! nor decisions, which are the policy's. Nothing here reads the process's environment: callers pass what is needed.

mod doctor;
mod environment;
mod files;
mod home;
mod init;
mod owner;
mod policy_file;
mod prompts;
mod settings;
mod workspace;

#[cfg(test)]
mod doctor_tests;
#[cfg(test)]
mod environment_tests;
#[cfg(test)]
mod home_tests;
#[cfg(test)]
mod init_tests;
#[cfg(test)]
mod owner_tests;
#[cfg(test)]
mod policy_file_tests;
#[cfg(test)]
mod prompts_tests;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
mod testing;

pub use doctor::Check;
pub use environment::HomeEnvironment;
pub use home::Home;
pub use init::{CreatedHome, DetectedModel, InitOptions};
pub use owner::{HomeOwner, OwnerInfo};
pub use policy_file::named_profile;
pub use prompts::{ORCHESTRATOR, PromptContext, PromptTool, Prompts};
pub use settings::{
    AgentSettings, BreakerSettings, CallSettings, Channels, HostCallRate, LimitSettings, LoadedSettings,
    LogLevelSetting, LogSettings, McpServerSettings, McpSettings, McpToolSettings, ModelSettings, Models,
    OFFLINE, PackSettings, RemoteSettings, RetentionSettings, SecretPlace, SecretSettings, ServeSettings,
    SessionRule, Settings, ToolSettings, schema,
};
