//! Commands that work with the settings of a home in this process, or start, stop and examine the process that owns it.

pub(crate) mod ext;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod mcp;
mod models;
mod policy;
pub(crate) mod replay;
mod rpc;
pub(crate) mod status;
pub(crate) mod up;

use holdfast_app::{ApplicationConfig, ModelCatalog, Purpose};
use holdfast_contract::problem::{Problem, Severity};
use holdfast_home::{OFFLINE, Settings};

use super::LocalCommand;
use crate::arguments::{ChangePolicy, LocalExt, Model, PolicyRevoke, Up};
use crate::client::background;
use crate::client::link::{ClientOrigin, OwnerConnection};
use crate::exit::Exit;
use crate::output::{self, Output};

impl LocalCommand {
    pub(crate) async fn run(
        self,
        output: &Output,
        plan: &ApplicationConfig,
        origin: &ClientOrigin,
    ) -> Result<Exit, Problem> {
        match self {
            Self::Init(command) => init::init(output, &plan.home, plan.environment, command.yes).await,
            Self::Import(command) => import::import(output, plan, &command),
            Self::Ext(command) => extension(output, plan, command).await,
            Self::Replay(command) => replay::replay(output, plan, &command).await,
            Self::Up(Up { while_used: true, .. }) => background::own(output, plan).await,
            Self::Up(Up { unsupervised: false, .. }) => up::supervise(output, plan).await,
            Self::Up(Up { unsupervised: true, .. }) => up::own(output, plan).await,
            Self::Down => up::down(output, plan).await,
            Self::Status => status::status(output, plan).await,
            Self::Rpc => forward(plan, origin).await,
            Self::PolicyShow => policy::show(output, &plan.home.policy(plan.profile.as_deref())?),
            Self::Policy(ChangePolicy::Rules) => policy::rules(output, &plan.home),
            Self::Policy(ChangePolicy::Grant(command)) => ext::grant(output, plan, &command),
            Self::Policy(ChangePolicy::Revoke(PolicyRevoke { rule: Some(number), .. })) => {
                policy::remove_rule(output, &plan.home, number)
            }
            Self::Policy(ChangePolicy::Revoke(PolicyRevoke { id, rule: None })) => {
                ext::revoke(output, plan, &id.unwrap_or_default())
            }
            Self::Model(command) => model(output, plan, command).await,
            Self::Mcp(command) => mcp::mcp(output, plan, command).await,
        }
    }
}

async fn extension(output: &Output, plan: &ApplicationConfig, command: LocalExt) -> Result<Exit, Problem> {
    match command {
        LocalExt::Check { extension } => ext::check(output, plan, &extension).await,
        LocalExt::Test { extension } => ext::test(output, plan, &extension).await,
        LocalExt::Dev { extension, grant } => ext::dev(output, plan, &extension, grant).await,
        LocalExt::Grant(command) => ext::grant(output, plan, &command),
        LocalExt::Revoke { id } => ext::revoke(output, plan, &id),
    }
}

async fn model(output: &Output, plan: &ApplicationConfig, command: Model) -> Result<Exit, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let catalog = match (&command, ModelCatalog::read(plan, &settings).await) {
        // Listing the models needs none of them.
        (Model::List, Err(problem)) => {
            let default = settings.models.default.clone().unwrap_or_else(|| OFFLINE.into());
            let warnings = vec![problem.with(Severity::Warning)];
            ModelCatalog { models: Default::default(), default, found: Vec::new(), warnings }
        }
        (_, catalog) => catalog?,
    };
    catalog.warnings.iter().for_each(output::report);
    match command {
        Model::List => models::list(output, &settings, &catalog),
        Model::Test { name } => models::test(output, &catalog, name).await,
    }
}

/// Forwards the protocol between standard input and output and the owner.
async fn forward(plan: &ApplicationConfig, origin: &ClientOrigin) -> Result<Exit, Problem> {
    match OwnerConnection::find(plan, Purpose::Run).await? {
        OwnerConnection::Own(own) => {
            let exit = rpc::rpc(own.connection(), origin).await;
            own.end("rpc has ended").await?;
            exit
        }
        OwnerConnection::Attached(connection) => rpc::rpc(connection, origin).await,
    }
}
