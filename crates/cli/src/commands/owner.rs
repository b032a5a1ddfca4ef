//! Commands that ask the owner of a home, over the protocol alone.

mod bus;
mod call;
mod list;
mod log;
mod policy;
mod run;
mod session;
mod setup;

use std::io::{BufRead, IsTerminal};

use holdfast_app::ApplicationConfig;
use holdfast_contract::problem::Problem;
use holdfast_rpc::COMMAND;

use super::OwnerCommand;
use super::local::init;
use crate::arguments::{Chat, OwnerExt};
use crate::chat;
use crate::client::link::{Link, OwnerConnection};
use crate::exit::Exit;
use crate::output::Output;

impl OwnerCommand {
    pub(crate) async fn run(self, output: &Output, plan: &ApplicationConfig) -> Result<Exit, Problem> {
        let is_chat = matches!(self, Self::Chat(_));
        // A conversation may last all day; an owner that ends does not wait for it.
        let client = if is_chat { "chat" } else { COMMAND };
        let is_new = !plan.home.database().exists();
        let (link, own) = OwnerConnection::link(plan, client).await?;
        if let Some(own) = own.as_ref().filter(|_| is_new && is_chat && !output.quiet) {
            eprintln!("{}", init::greeting(&own.house));
        }
        let exit = self.ask(output, plan, link).await;
        match own {
            Some(own) => {
                let ended = own.end("the command has ended").await;
                let exit = exit?;
                ended.map(|()| exit)
            }
            None => exit,
        }
    }

    async fn ask(self, output: &Output, plan: &ApplicationConfig, mut link: Link) -> Result<Exit, Problem> {
        let link = &mut link;
        match self {
            Self::Chat(command) => talk(output, plan, link, command).await,
            Self::Run(command) => run::run(output, link, command).await,
            Self::Call(command) => call::call(output, link, command).await,
            Self::Tools => list::tools(output, link).await,
            Self::Agents => list::agents(output, link).await,
            Self::Ext(OwnerExt::List) => list::extensions(output, link).await,
            Self::Ext(OwnerExt::Show { id }) => list::extension(output, link, &id).await,
            Self::Ext(OwnerExt::Doctor { id }) => list::troubles(output, link, id).await,
            Self::Ext(OwnerExt::Restart { id }) => list::restart(output, link, id).await,
            Self::Setup(command) => setup::setup(output, link, command).await,
            Self::Session(command) => session::session(output, link, command).await,
            Self::PolicyExplain(command) => policy::explain(output, link, command).await,
            Self::Log(command) => log::log(output, link, command).await,
            Self::Bus(command) => bus::bus(output, link, command).await,
        }
    }
}

/// A chat; without a terminal and without input, a demonstration.
async fn talk(
    output: &Output,
    plan: &ApplicationConfig,
    link: &mut Link,
    command: Chat,
) -> Result<Exit, Problem> {
    let silent =
        !std::io::stdin().is_terminal() && std::io::stdin().lock().fill_buf().is_ok_and(<[u8]>::is_empty);
    if silent {
        return run::demonstrate(output, link).await;
    }
    let options = chat::ChatOptions {
        session: command.session.map(Into::into),
        model: command.model.map(Into::into),
        color: crate::colors(),
        history: plan.home.root().join("history"),
        quiet: output.quiet,
    };
    Ok(chat::chat(link, options).await?.into())
}
