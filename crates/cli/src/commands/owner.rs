//! Commands that ask the owner of a home, over the protocol alone.

mod bus;
mod call;
mod list;
mod log;
mod manage;
mod policy;
mod questions;
mod run;
mod schedule;
mod secret;
mod session;
mod setup;

use std::io::{BufRead, IsTerminal};
use std::pin::Pin;

use holdfast_app::{ApplicationConfig, Purpose};
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{COMMAND, SessionList, SessionMethod, SessionSummary};

use super::OwnerCommand;
use super::local::init;
use crate::arguments::{Bus, Chat, Dead, OwnerExt, Questions, Schedule};
use crate::chat;
use crate::client::link::{CHAT, ClientOrigin, Link, OwnerConnection, link_chat};
use crate::exit::Exit;
use crate::output::Output;

impl OwnerCommand {
    /// The profile in the plan is that of the whole home if this process owns it; the client's is that of its sessions.
    pub(crate) async fn run(
        self,
        output: &Output,
        plan: &ApplicationConfig,
        origin: &ClientOrigin,
    ) -> Result<Exit, Problem> {
        let is_chat = matches!(self, Self::Chat(_));
        if is_chat && std::io::stdin().is_terminal() {
            let link = link_chat(output, plan, origin).await?;
            return self.ask(output, plan, origin, link).await;
        }
        let client = if is_chat { CHAT } else { COMMAND };
        let is_new = !plan.home.database().exists();
        let (link, own) = OwnerConnection::link(plan, client, self.purpose(), origin).await?;
        if let Some(own) = own.as_ref().filter(|_| is_new && is_chat && !output.quiet) {
            eprintln!("{}", init::greeting(&own.application));
        }
        let exit = self.ask(output, plan, origin, link).await;
        match own {
            Some(own) => {
                let ended = own.end("the command has ended").await;
                let exit = exit?;
                ended.map(|()| exit)
            }
            None => exit,
        }
    }

    /// What lists something does not start what it lists.
    fn purpose(&self) -> Purpose {
        match self {
            Self::Tools
            | Self::Agents
            | Self::Channels
            | Self::Ext(
                OwnerExt::List
                | OwnerExt::Show { .. }
                | OwnerExt::Doctor { .. }
                | OwnerExt::Enable { .. }
                | OwnerExt::Disable { .. }
                | OwnerExt::Reload { .. }
                | OwnerExt::Remove(_),
            )
            | Self::PolicyExplain(_)
            | Self::Session(_)
            | Self::Log(_)
            | Self::Questions(Questions::List)
            | Self::Schedule(Schedule::List)
            | Self::Secret(_)
            | Self::Bus(
                Bus::Status | Bus::List | Bus::Show { .. } | Bus::Dead(Dead::List { .. } | Dead::Show(_)),
            ) => Purpose::Inspect,
            Self::Chat(_)
            | Self::Run(_)
            | Self::Call(_)
            | Self::McpTest { .. }
            | Self::Ext(OwnerExt::Restart { .. })
            | Self::Setup(_)
            | Self::Questions(Questions::Answer { .. })
            | Self::Schedule(Schedule::Run { .. })
            | Self::Bus(Bus::Publish(_) | Bus::Dead(Dead::Retry { .. } | Dead::Discard { .. })) => {
                Purpose::Run
            }
        }
    }

    async fn ask(
        self,
        output: &Output,
        plan: &ApplicationConfig,
        origin: &ClientOrigin,
        mut link: Link,
    ) -> Result<Exit, Problem> {
        let link = &mut link;
        match self {
            Self::Chat(command) => talk(output, plan, origin, link, command).await,
            Self::Run(command) => run::run(output, link, command).await,
            Self::Call(command) => call::call(output, link, command).await,
            Self::Tools => list::tools(output, link).await,
            Self::Agents => list::agents(output, link).await,
            Self::Channels => list::channels(output, link).await,
            Self::Ext(OwnerExt::List) => list::extensions(output, link).await,
            Self::Ext(OwnerExt::Show { id }) => list::extension(output, link, &id).await,
            Self::Ext(OwnerExt::Doctor { id }) => list::recent_faults(output, link, id).await,
            Self::Ext(OwnerExt::Restart { id }) => {
                forget_failed_installations(&plan.home.environments());
                list::restart(output, link, id).await
            }
            Self::Ext(OwnerExt::Enable { id }) => manage::set_enabled(output, link, id, true).await,
            Self::Ext(OwnerExt::Disable { id }) => manage::set_enabled(output, link, id, false).await,
            Self::Ext(OwnerExt::Reload { id }) => {
                forget_failed_installations(&plan.home.environments());
                manage::reload(output, link, id).await
            }
            Self::Ext(OwnerExt::Remove(command)) => manage::remove(output, link, command).await,
            Self::Setup(command) => setup::setup(output, link, command).await,
            Self::Session(command) => session::session(output, link, command).await,
            Self::PolicyExplain(command) => policy::explain(output, link, command).await,
            Self::Log(command) => log::log(output, link, command).await,
            Self::Bus(command) => bus::bus(output, link, command).await,
            Self::Questions(command) => questions::questions(output, link, command).await,
            Self::Schedule(command) => schedule::schedule(output, link, command).await,
            Self::McpTest { name } => manage::mcp::test(output, link, plan, &name).await,
            Self::Secret(command) => secret::secret(output, link, command).await,
        }
    }
}

/// A chat; without a terminal and without input, a demonstration.
async fn talk(
    output: &Output,
    plan: &ApplicationConfig,
    origin: &ClientOrigin,
    link: &mut Link,
    command: Chat,
) -> Result<Exit, Problem> {
    let silent =
        !std::io::stdin().is_terminal() && std::io::stdin().lock().fill_buf().is_ok_and(<[u8]>::is_empty);
    if silent {
        return run::demonstrate(output, link).await;
    }
    let session = match (command.session, command.last) {
        (Some(id), _) => Some(named_session(link, &id).await?),
        (None, true) => Some(last_chat(link).await?),
        (None, false) => None,
    };
    let options = chat::ChatOptions {
        session,
        model: command.model.map(|name| absolute(name, &plan.current).into()),
        color: crate::colors(),
        history: plan.home.root().join("history"),
        quiet: output.quiet,
    };
    let relink = || Box::pin(link_chat(output, plan, origin)) as Pin<Box<dyn Future<Output = _> + '_>>;
    Ok(chat::chat(link, options, Some(&relink)).await?.into())
}

/// The session with this id, or the only one whose id begins so.
async fn named_session(link: &Link, id: &str) -> Result<StreamId, Problem> {
    let all = sessions(link).await?;
    let fits: Vec<&str> =
        all.iter().map(|one| one.session.as_str()).filter(|it| it.starts_with(id)).collect();
    match fits.as_slice() {
        [only] if !id.is_empty() => Ok((*only).into()),
        several if several.len() > 1 && !several.contains(&id) => {
            let what = format!("{} sessions begin with `{id}`", several.len());
            let shown: Vec<&str> = several.iter().take(5).copied().collect();
            Err(Problem::new(Code::UsageInvalid, what).help(format!("There are: {}.", shown.join(", "))))
        }
        // One that is not listed is looked for by the owner.
        _ => Ok(id.into()),
    }
}

/// The chat that was used last.
async fn last_chat(link: &Link) -> Result<StreamId, Problem> {
    let found = sessions(link).await?.into_iter().find(|session| session.channel == CHAT);
    let none = || Problem::new(Code::StoreMissing, "there is no chat to go on with");
    found.map(|found| found.session).ok_or_else(|| none().help("`holdfast chat` begins one."))
}

async fn sessions(link: &Link) -> Result<Vec<SessionSummary>, Problem> {
    link.client.ask(&SessionMethod::List(SessionList { all: false, limit: None })).await
}

/// The name of a model that is a file, as another process finds it.
fn absolute(name: String, here: &std::path::Path) -> String {
    match name.split_once(':') {
        Some((kind @ ("script" | "cassette"), file)) => format!("{kind}:{}", here.join(file).display()),
        _ => name,
    }
}

/// Forgets which packages could not be installed, so that they are tried again.
fn forget_failed_installations(environments: &std::path::Path) {
    for entry in std::fs::read_dir(environments).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|kind| kind == "failed") {
            // One that stays is tried again after a pause.
            let _stays = std::fs::remove_file(entry.path());
        }
    }
}
