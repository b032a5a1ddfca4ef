//! Use this crate for turning a home into a running system: [`Application::open`] reads the settings, the policy, the prompts and
//! the extensions, builds models, lanes and secret stores, and starts the runtime with them. It does not show anything and does
//! not own the terminal or the socket: that is the surface's part.
//!
//! | file | contents |
//! |---|---|
//! | `application.rs` | the running home |
//! | `config.rs` | what it is made from, and the built-in extensions |
//! | `home_configuration.rs` | the settings of extensions, and the watcher of the home's folder |
//! | `session_factory.rs` | sessions of the main agent |
//! | `models.rs` | configured and detected models |
//! | `lanes.rs` | the lanes that run extensions, and those for replay |
//! | `secrets.rs` | the chain of secret stores |
//! | `schemas.rs` | JSON Schemas by name |
//! | `unused_settings.rs` | warnings about settings for what is not installed |
//! | `zone.rs` | the machine's time zone |

mod application;
mod config;
mod home_configuration;
mod http_client;
mod lanes;
mod models;
mod schemas;
mod secrets;
mod session_factory;
mod unused_settings;
mod zone;

pub use application::{Application, ClientSession, Purpose};
pub use config::{ApplicationConfig, BuiltInContext, BuiltIns, MakeBuiltIns, reserved_names};
pub use holdfast_contract::log::Progress;
pub use lanes::{recorded_lanes, room};
pub use models::ModelCatalog;
pub use schemas::schema;
pub use secrets::{keyring, secret_chain, secrets};
