//! Commands that work without the owner of a home. Those that read its log open it themselves.

mod backup;
mod bench;
pub(crate) mod demo;
mod docs;
pub(crate) mod doctor;
pub(crate) mod home;
mod log;
mod schema;
mod session;

use clap_complete::generate;
use holdfast_contract::problem::Problem;
use holdfast_home::Home;

use super::local::ext;
use super::{OfflineCommand, Standalone};
use crate::arguments::OfflineExt;
use crate::exit::Exit;
use crate::output::{Output, write_text};

impl Standalone {
    pub(crate) fn run(self, output: &Output) -> Result<Exit, Problem> {
        match self {
            Self::Schema(command) => Ok(schema::schema(output, &command)?.into()),
            Self::Bench(command) => bench::bench(output, &command),
            Self::Docs { page } => docs::docs(output, page.as_deref()),
            Self::Completions { shell } => {
                let mut script = Vec::new();
                generate(shell, &mut crate::command(), "holdfast", &mut script);
                write_text(&String::from_utf8_lossy(&script))?;
                Ok(Exit::Done)
            }
        }
    }
}

impl OfflineCommand {
    pub(crate) fn run(self, output: &Output, home: &Home, examine: doctor::Examine) -> Result<Exit, Problem> {
        match self {
            Self::Demo(command) => Ok(demo::demo(output, home, command)?.into()),
            Self::Log(command) => Ok(log::log(output, home, command)?.into()),
            Self::Session(command) => session::session(output, home, &command),
            Self::Ext(OfflineExt::New(command)) => ext::new(output, home, &command),
            Self::Ext(OfflineExt::Build { subject }) => ext::build(output, home, subject.as_deref()),
            Self::Backup { file } => backup::backup(output, home, &file),
            Self::Restore { file, force } => backup::restore(output, home, &file, force),
            Self::Doctor => doctor::doctor(output, home, examine),
        }
    }
}
