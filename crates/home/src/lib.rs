//! The home folder: where it is, what is in it, and who owns it.
//!
//! Start at [`Home`]: [`Home::locate`] finds it, [`Home::init`] makes it, [`Home::own`] locks it, [`Home::examine`] says whether all is
//! well. [`Settings`] is `config/settings.yaml`, [`HomeEnvironment`] is `.env` under the process's variables, [`Prompts`] is
//! `prompts/*.jinja2`; the policy is read by [`Home::policy`] and added to by [`Home::remember_rule`]. `docs/home.md` is the user's page.
//!
//! Use this crate for files that a person edits. Do not put frames here, which are the store's, nor a decision, which is the policy's.
//! Nothing here reads the process's environment by itself: what it needs is handed in.

mod doctor;
mod environment;
mod files;
mod home;
mod make;
mod owner;
mod policies;
mod prompts;
mod settings;
mod socket;
mod workspace;

#[cfg(test)]
mod environment_tests;
#[cfg(test)]
mod examine_tests;
#[cfg(test)]
mod home_tests;
#[cfg(test)]
mod make_tests;
#[cfg(test)]
mod owner_tests;
#[cfg(test)]
mod policies_tests;
#[cfg(test)]
mod prompts_tests;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
mod testing;

pub use doctor::Check;
pub use environment::HomeEnvironment;
pub use home::Home;
pub use make::{CreatedHome, DetectedModel, InitOptions};
pub use owner::{HomeOwner, OwnerInfo};
pub use prompts::{ORCHESTRATOR, PromptContext, PromptTool, Prompts};
pub use settings::{
    AgentSettings, BreakerSettings, CallSettings, Channels, LimitSettings, LoadedSettings, LogLevelSetting,
    LogSettings, Mcp, ModelSettings, Models, OFFLINE, RetentionSettings, SecretPlace, SecretSettings,
    SessionRule, Settings, StoreSettings, ToolSettings, Web, schema,
};
