//! What an application is made from: the home, the built-in extensions, and where progress and log lines go.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, Progress};
use holdfast_contract::problem::Problem;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::Lane;
use holdfast_home::{Home, LogLevelSetting, Settings};
use holdfast_kernel::registry::ReservedNames;
use holdfast_loader::EmbeddedComponent;

/// What built-in extensions are made from.
pub struct BuiltInContext<'a> {
    /// The home.
    pub home: &'a Home,
    /// The folder that the settings name for sessions without a workspace of their own.
    pub workspace: Option<&'a Path>,
    /// The settings.
    pub settings: &'a Settings,
}

/// The extensions that are built into the program.
#[derive(Default)]
pub struct BuiltIns {
    /// The lanes that run them.
    pub lanes: Vec<Arc<dyn Lane>>,
    /// What is there.
    pub extensions: Vec<FoundExtension>,
    /// Those that the home's own lanes run.
    pub components: Vec<EmbeddedComponent>,
    /// What is not there, and why.
    pub warnings: Vec<Problem>,
}

/// Makes the built-in extensions.
pub type MakeBuiltIns = fn(&BuiltInContext<'_>) -> BuiltIns;

/// What an application is made from.
pub struct ApplicationConfig {
    /// The home.
    pub home: Home,
    /// The policy profile that takes the place of the file's.
    pub profile: Option<String>,
    /// The built-in extensions.
    pub built_ins: MakeBuiltIns,
    /// A variable of the process.
    pub environment: fn(&str) -> Option<OsString>,
    /// The folder that the program was started in.
    pub current: PathBuf,
    /// Receives progress while extensions start.
    pub progress: fn(&ExtensionId, Progress),
    /// Receives the log lines of extensions; `None` drops them.
    pub log: Option<fn(&ExtensionId, LogLevel, &str)>,
    /// The least that it receives, in place of what the settings name.
    pub log_level: Option<LogLevelSetting>,
}

/// The names of tools that no extension of this home gets, because they are those of built-in ones.
pub fn reserved_names(plan: &ApplicationConfig, settings: &Settings) -> ReservedNames {
    let context = BuiltInContext { home: &plan.home, workspace: None, settings };
    let built_ins = (plan.built_ins)(&context);
    let mut reserved = ReservedNames::default();
    for found in built_ins.extensions {
        reserved.reserve(&found.id, found.built_in.unwrap_or_default().tools);
    }
    for component in built_ins.components {
        reserved.reserve(&component.extension(), component.built_in().tools);
    }
    reserved
}
