//! Use this crate for making extensions: [`new`] creates a folder from a template, [`build`] compiles its source to a component,
//! [`harness`] loads and tests it. It does not install anything in a home.
//!
//! `wit.rs` has the interface and builds worlds from parts of it, `project.rs` reads a folder, `tool.rs` runs compilers. Each language
//! has a file in `language/`; `component.rs` encodes and checks the component. `sdk.rs` and `template.rs` embed the SDKs and the
//! templates, so that all of this works without the source tree. Only `harness` runs extension code.

mod component;
mod files;
pub mod harness;
mod language;
mod project;
mod sdk;
#[cfg(test)]
mod sdk_tests;
mod template;
mod tool;
pub mod wit;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::Problem;
use serde::Serialize;

pub use language::Language;
pub use template::{NewExtension, TemplateRole, new};

/// What a build is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildStep {
    /// The source is compiled with this tool.
    Compile(String),
    /// The compiler's output is encoded as a component.
    Encode,
    /// The component is validated, and its imports and exports are checked.
    Check,
}

impl fmt::Display for BuildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(tool) => write!(f, "compiling with {tool}"),
            Self::Encode => f.write_str("making the component"),
            Self::Check => f.write_str("checking the component"),
        }
    }
}

/// A component that was built.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Built {
    /// The extension.
    pub id: ExtensionId,
    /// What it is written in.
    pub language: Language,
    /// The component's file.
    pub component: PathBuf,
    /// The component's size.
    pub bytes: u64,
    /// The roles and hooks that it exports, by their interfaces.
    pub exports: Vec<String>,
    /// The interfaces of the host that it imports.
    pub imports: Vec<String>,
    /// How long it took.
    #[serde(rename = "took_ms", serialize_with = "milliseconds")]
    pub took: Duration,
}

fn milliseconds<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

/// Builds the extension in a folder and writes its component atomically to the manifest's `entrypoint`. `progress` is called at the
/// beginning of each step.
pub fn build(folder: &Path, progress: &mut dyn FnMut(BuildStep)) -> Result<Built, Problem> {
    let started = Instant::now();
    let project = project::read(folder)?;
    let bytes = match project.language {
        Language::Rust => language::rust::build(&project, progress)?,
        Language::Python => language::python::build(&project, progress)?,
        Language::JavaScript => language::javascript::build(&project, progress)?,
        Language::C => language::c::build(&project, progress)?,
    };
    progress(BuildStep::Check);
    let world = component::check(&bytes)?;
    files::write(&project.component, &bytes)?;
    Ok(Built {
        id: project.manifest.id,
        language: project.language,
        component: project.component,
        bytes: bytes.len() as u64,
        exports: world.exports.into_iter().collect(),
        imports: world.imports.into_iter().collect(),
        took: started.elapsed(),
    })
}
