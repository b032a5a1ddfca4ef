//! Slash commands: those that are built in and those of extensions, the same wherever they are typed. A surface shows what a command
//! says; what it did is in the session as a `command.run` frame.
//!
//! `/model NAME` is a fact of its session, and counts from the next turn on; `/new` leads to another session.

use std::sync::Arc;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, Millis, ModelName, Seq, StreamId};
use holdfast_contract::message::{Origin, Spent};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::OtherEntry;
use holdfast_contract::role::Role;
use holdfast_contract::text::first_line;
use holdfast_model::names_file;
use serde_json::json;

use crate::history::session_start;
use crate::messaging::SessionRequest;
use crate::runtime::{Inner, Runtime};
use crate::session::{NewSession, SessionHandle};

/// How long a command may take.
const COMMAND_TIMEOUT: Millis = Millis(60_000);

/// The most lines that a command of a list says.
const MAX_LISTED_LINES: usize = 60;

/// The built-in commands that are safe wherever they are typed: name, what it takes, what it does.
const BUILT_IN: &[(&str, &str, &str)] = &[
    ("help", "", "what can be typed"),
    ("tools", "", "the tools"),
    ("agents", "", "the agents"),
    ("model", "[NAME]", "the model; with a name, go on with another one"),
    ("cost", "", "what this conversation has used"),
    ("questions", "", "what waits for an answer, in any conversation"),
    ("new", "", "begin a new conversation"),
];

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInfo {
    /// Its name, without the slash.
    pub name: String,
    /// What it takes, if that is known.
    pub takes: String,
    /// What it does.
    pub description: String,
    /// Whose it is; none for one that is built in.
    pub extension: Option<ExtensionId>,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandDone {
    /// What it says.
    pub output: Content,
    /// Where the conversation goes on, if not where the command was typed.
    pub session: Option<StreamId>,
}

/// Who typed a command, which decides what it may name.
#[derive(Clone, Copy)]
enum TypedBy {
    /// The owner of the home, over the control socket or the terminal.
    Owner,
    /// A user of a channel, or an extension that publishes `user.message`.
    ChannelUser,
}

impl Runtime {
    /// Opens the files of a session's models, for the owner who takes the session up. One that cannot be read is missed by the turn
    /// that needs it.
    pub async fn open_models_of(&self, session: &StreamId) -> Result<(), Problem> {
        for model in self.inner().models_of(session)? {
            drop(self.open_model(&model).await);
        }
        Ok(())
    }

    /// The commands: those that are built in, and then those of extensions by name. An extension's command cannot take a built-in one's place.
    pub fn commands(&self) -> Vec<CommandInfo> {
        let built_in = BUILT_IN.iter().map(|(name, takes, description)| CommandInfo {
            name: (*name).to_owned(),
            takes: (*takes).to_owned(),
            description: (*description).to_owned(),
            extension: None,
        });
        let registry = self.registry();
        let theirs =
            registry.others.iter().filter(|entry| is_command(entry) && !is_built_in(entry.id.as_str()));
        let theirs = theirs.map(|entry| CommandInfo {
            name: entry.id.to_string(),
            takes: String::new(),
            description: described(entry),
            extension: Some(entry.extension.id.clone()),
        });
        built_in.chain(theirs).collect()
    }

    /// Carries out in a session what the owner of the home typed. A command that leads to another session makes it with `found`.
    pub async fn run_command(
        &self,
        session: &StreamId,
        name: &str,
        arguments: &str,
        found: impl FnOnce() -> Result<NewSession, Problem>,
    ) -> Result<CommandDone, Problem> {
        self.run_typed(TypedBy::Owner, session, (name, arguments), found).await
    }

    async fn run_typed(
        &self,
        by: TypedBy,
        session: &StreamId,
        (name, arguments): (&str, &str),
        found: impl FnOnce() -> Result<NewSession, Problem>,
    ) -> Result<CommandDone, Problem> {
        let inner = self.inner();
        let arguments = arguments.trim();
        let (output, next) = match name {
            "help" => (self.help(), None),
            "tools" => (self.tools_told(), None),
            "agents" => (self.agents_told(), None),
            "cost" => (cost(&inner.spent_in(session)?), None),
            "questions" => (self.questions_told(by).await?, None),
            "model" if arguments.is_empty() => (self.model_told(session)?, None),
            "model" => {
                let model = ModelName::from(arguments);
                match by {
                    TypedBy::Owner => self.open_model(&model).await?,
                    TypedBy::ChannelUser if names_file(arguments) => {
                        let what = format!("`{model}` names a file, and a message names no files");
                        return Err(Problem::new(Code::ModelFile, what));
                    }
                    TypedBy::ChannelUser => {}
                }
                self.known(&model)?;
                let others = inner.models_of(session)?.into_iter().filter(|other| *other != model);
                let models = std::iter::once(model.clone()).chain(others).collect();
                self.resume(session)?.choose(models).await?;
                (format!("The conversation goes on with `{model}`."), None)
            }
            "new" => {
                let next = self.open(found()?)?.id().clone();
                ("A new conversation begins.".to_owned(), Some(next))
            }
            name => (inner.run_theirs(name, arguments).await?, None),
        };
        let output = Content::text(inner.home.redact_text(output));
        self.resume(session)?.command(name, arguments, output.clone()).await?;
        Ok(CommandDone { output, session: next })
    }

    /// The model must be there before a session goes on with it.
    fn known(&self, model: &ModelName) -> Result<(), Problem> {
        self.model(model).map(drop).map_err(|problem| {
            let names: Vec<String> = self.model_names().iter().map(ToString::to_string).collect();
            problem.help(format!("There are: {}.", names.join(", ")))
        })
    }

    fn help(&self) -> String {
        let line = |command: CommandInfo| {
            let typed = format!("/{} {}", command.name, command.takes);
            let whose = command.extension.map(|id| format!(" ({id})")).unwrap_or_default();
            format!("{:<14} {}{whose}", typed.trim_end(), command.description)
        };
        lines(self.commands().into_iter().map(line))
    }

    fn tools_told(&self) -> String {
        let registry = self.registry();
        let told = registry.tools.iter().filter_map(|entry| {
            Some(format!("{}: {}", entry.name, first_line(&entry.stack.first()?.spec.description)))
        });
        lines(told)
    }

    /// What waits for an answer. An owner on a channel is told before, with the codes to answer with.
    async fn questions_told(&self, by: TypedBy) -> Result<String, Problem> {
        match by {
            TypedBy::Owner => {
                let waiting = self.questions().await?;
                Ok(lines(waiting.iter().map(|question| {
                    format!("{}\nholdfast questions answer {}", question.text(), question.id())
                })))
            }
            TypedBy::ChannelUser => Ok("Only an owner of this home answers questions.".to_owned()),
        }
    }

    fn agents_told(&self) -> String {
        let registry = self.registry();
        lines(
            registry
                .agents
                .iter()
                .map(|agent| format!("{} ({}): {}", agent.id, agent.mode, first_line(&agent.description))),
        )
    }

    fn model_told(&self, session: &StreamId) -> Result<String, Problem> {
        let used = self.inner().models_of(session)?;
        let used = used.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", then ");
        let all: Vec<String> = self.model_names().iter().map(ToString::to_string).collect();
        Ok(format!("This conversation uses {used}. There are: {}.", all.join(", ")))
    }
}

impl Inner {
    /// Runs an extension's command.
    async fn run_theirs(self: &Arc<Self>, name: &str, arguments: &str) -> Result<String, Problem> {
        let registry = self.registry.view();
        let entry = registry.others.iter().find(|entry| is_command(entry) && entry.id.as_str() == name);
        let unknown = || {
            let problem = Problem::new(Code::CommandUnknown, format!("there is no command `/{name}`"));
            problem.help("`/help` shows what there is.")
        };
        let extension = entry.ok_or_else(unknown)?.extension.id.clone();
        let asked = json!({ "name": name, "arguments": arguments }).into();
        let late = self.clock.sleep(COMMAND_TIMEOUT);
        tokio::select! {
            biased;
            said = self.call_role(&extension, Role::Commands, "run", asked) => Ok(said?.to_text()),
            () = late => {
                let what = format!("`/{name}` of `{extension}` said nothing within {} ms", COMMAND_TIMEOUT.0);
                Err(Problem::new(Code::ExtensionFault, what))
            }
        }
    }

    fn spent_in(&self, session: &StreamId) -> Result<Spent, Problem> {
        let mut all = Spent::default();
        for body in self.bodies_of(session)? {
            if let Body::TurnEnded(ended) = body {
                all = all.plus(ended.spent);
            }
        }
        Ok(all)
    }

    fn models_of(&self, session: &StreamId) -> Result<Vec<ModelName>, Problem> {
        self.store.flush()?;
        let frames = self.store.frames(session, Seq(0)..)?;
        let chooses = |kind: FrameKind| matches!(kind, FrameKind::SessionSet | FrameKind::SessionStarted);
        let mut choices = frames.iter().rev().filter(|frame| chooses(frame.envelope.kind));
        let chosen = choices.find_map(|frame| match self.store.body(frame).ok()? {
            Body::SessionSet(set) => Some(set.models),
            Body::SessionStarted(started) => Some(started.settings.models.clone()),
            _ => None,
        });
        match chosen {
            Some(models) => Ok(models),
            None => {
                Ok(session_start(&self.store, session)?
                    .map_or_else(Vec::new, |it| it.settings.models.clone()))
            }
        }
    }

    /// What is recorded in a session, without what was erased.
    fn bodies_of(&self, session: &StreamId) -> Result<Vec<Body>, Problem> {
        self.store.flush()?;
        let frames = self.store.frames(session, Seq(0)..)?;
        Ok(frames.iter().filter_map(|frame| self.store.body(frame).ok()).collect())
    }

    /// A command that a user typed on a channel: what is to be answered; none if it is something to be said to the agent.
    pub(crate) async fn typed_on_channel(
        self: &Arc<Self>,
        name: &StreamId,
        origin: &Origin,
        text: &str,
    ) -> Option<Result<String, Problem>> {
        let (command, arguments) = split(text).filter(|(command, _)| is_built_in(command))?;
        Some(self.run_on_channel(name, origin, command, arguments).await)
    }

    /// On a channel the session that goes on is the next one of the same name, once the one before has ended.
    async fn run_on_channel(
        self: &Arc<Self>,
        name: &StreamId,
        origin: &Origin,
        command: &str,
        arguments: &str,
    ) -> Result<String, Problem> {
        let runtime = Runtime::of(self);
        let (session, following) = self.latest_of(name)?;
        let making = |id: &StreamId| {
            let unmade = || Problem::new(Code::SessionUnmade, "this program does not create sessions");
            let opener = self.messaging.routes().opener.clone().ok_or_else(unmade)?;
            let opening = SessionRequest { id: id.clone(), origin: origin.clone(), agent: None };
            opener.create_session(&runtime, opening)
        };
        if self.store.head(&session)?.is_none() && self.sessions.get(&session).is_none() {
            self.open(making(&session)?, None, 0)?;
        }
        let typed = (command, arguments);
        let done = runtime.run_typed(TypedBy::ChannelUser, &session, typed, || making(&following)).await;
        match done {
            Ok(CommandDone { output, session: next }) => {
                if next.is_some() {
                    self.resume(&session)?.end("the user began another one").await?;
                }
                Ok(output.to_text())
            }
            // What is wrong with what was typed is an answer; that the log cannot be written is not.
            Err(problem)
                if matches!(problem.code, Code::ModelUnknown | Code::ModelFile | Code::CommandUnknown) =>
            {
                Ok(format!("{}. {}", problem.what, problem.help))
            }
            Err(problem) => Err(problem),
        }
    }
}

impl SessionHandle {
    /// Has the session's later turns ask these models, the first of them first.
    pub async fn choose(&self, models: Vec<ModelName>) -> Result<(), Problem> {
        self.ask(|reply| crate::session::SessionCommand::Choose { models, reply }).await
    }
}

/// The input as a command and its arguments; `None` if it is not a command.
fn split(text: &str) -> Option<(&str, &str)> {
    let typed = text.trim().strip_prefix('/')?;
    let (name, arguments) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    // Some channels add whom the command is for: `/help@assistant`.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    (!name.is_empty()).then_some((name, arguments.trim()))
}

fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|(built_in, ..)| *built_in == name)
}

fn is_command(entry: &OtherEntry) -> bool {
    entry.kind.as_str() == "command"
}

fn described(entry: &OtherEntry) -> String {
    let words = entry.payload.value().get("description");
    first_line(words.and_then(serde_json::Value::as_str).unwrap_or_default()).to_owned()
}

fn lines(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let mut shown: Vec<String> = all.iter().take(MAX_LISTED_LINES).cloned().collect();
    match all.len() {
        0 => "There are none.".to_owned(),
        count if count > MAX_LISTED_LINES => {
            shown.push(format!("and {} more", count - MAX_LISTED_LINES));
            shown.join("\n")
        }
        _ => shown.join("\n"),
    }
}

fn cost(spent: &Spent) -> String {
    let Spent { turns, tool_calls, tokens, cost_micros, .. } = spent;
    let (dollars, rest) = (cost_micros / 1_000_000, cost_micros % 1_000_000);
    format!("{turns} model calls, {tool_calls} tool calls, {tokens} tokens, ${dollars}.{rest:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_from_what_is_said() {
        assert_eq!(split("/help"), Some(("help", "")));
        assert_eq!(split(" /model  fast one "), Some(("model", "fast one")));
        assert_eq!(split("/help@assistant"), Some(("help", "")));
        assert_eq!((split("help"), split("/"), split("")), (None, None, None));
    }

    #[test]
    fn a_long_list_says_how_much_longer_it_is() {
        let told = lines((0..MAX_LISTED_LINES + 2).map(|number| number.to_string()));
        assert!(told.ends_with(&format!("{}\nand 2 more", MAX_LISTED_LINES - 1)), "{told}");
        assert_eq!(lines(std::iter::empty()), "There are none.");
    }
}
