//! Slash commands.

use std::path::Path;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{CallId, Seq, StreamId};
use holdfast_contract::message::Spent;
use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{
    CommandEnd, CommandRun, ExtensionMethod, NoParams, SessionFork, SessionFrames, SessionList,
    SessionMethod, SessionParams, SessionSummary, SlashCommandInfo, Status, SystemMethod, ToolInfo,
};

use super::text::sanitize::{cut, one_line};
use super::why::{ReadFrame, approved_for_session, why};
use super::{Chat, Finished, TurnState};
use crate::client::attach;
use crate::commands::local::status::bounded;
use crate::output::user_frame_line;

/// Sessions that `/sessions` shows.
const MAX_SESSIONS: u64 = 10;

/// Every command, what it takes and what it does.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("/help", "", "what can be said"),
    ("/why", "[CALL]", "explain the last decision, or a call such as 2.1"),
    ("/tools", "", "the tools, and what the policy says of each"),
    ("/agents", "", "the agents"),
    ("/model", "[NAME]", "the model; with a name, go on with another one"),
    ("/session", "", "this session"),
    ("/sessions", "", "the latest sessions"),
    ("/new", "", "begin a new session"),
    ("/resume", "ID", "go on with another session"),
    ("/fork", "[TURN]", "go on in a copy of this session, as it was after that turn"),
    ("/attach", "FILE", "a file that goes with what is said next"),
    ("/save", "[FOLDER]", "the files that the last turn made, here or in that folder"),
    ("/cancel", "", "cancel the running turn"),
    ("/compact", "", "replace the older part of the conversation by a summary"),
    ("/cost", "", "what was spent"),
    ("/frames", "[N]", "the last frames, without what models and tools returned"),
    ("/quit", "", "leave"),
];

impl Chat {
    /// Runs a command. False if it is a tool's name, which is sent to the model.
    pub(super) async fn command(&mut self, text: &str) -> bool {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let done = match name {
            "/help" => {
                self.help().await;
                Ok(())
            }
            "/why" => self.why(rest).await,
            "/tools" => self.tools().await,
            "/agents" | "/model" => self.run(&name[1..], rest).await,
            "/fork" => self.fork(rest).await,
            "/attach" => self.attach(rest),
            "/save" => self.save(rest),
            "/session" => self.about().await,
            "/sessions" => self.sessions().await,
            "/new" => self.open(None).await,
            "/resume" if rest.is_empty() => {
                self.screen.line("/resume ID; /sessions shows them");
                Ok(())
            }
            "/resume" => self.open(Some(StreamId::from(rest))).await,
            "/cancel" => {
                let request = SessionMethod::Cancel(SessionParams { session: self.session.clone() });
                self.client.ask::<serde_json::Value>(&request).await.map(drop)
            }
            "/compact" => {
                self.turn = TurnState { asked: true, ..TurnState::default() };
                self.screen.status(Some("compacting …"));
                let request = SessionMethod::Compact(SessionParams { session: self.session.clone() });
                self.ask_later(request, Finished::Asked);
                Ok(())
            }
            "/cost" => self.cost().await,
            "/frames" => self.frames(rest).await,
            "/quit" | "/exit" => {
                self.left = Some(Ok(true));
                Ok(())
            }
            _ if self.is_command(&name[1..]).await => self.run(&name[1..], rest).await,
            _ if self.is_tool(&name[1..]).await => return false,
            _ => {
                self.screen.row(unknown(name));
                Ok(())
            }
        };
        if let Err(problem) = done {
            self.problem(&problem);
        }
        true
    }

    /// Makes the commands and tools known to completion.
    pub(super) async fn learn_words(&mut self) {
        let tools: Vec<ToolInfo> =
            self.client.ask(&ExtensionMethod::Tools(NoParams {})).await.unwrap_or_default();
        let commands = COMMANDS.iter().map(|(name, takes, about)| {
            let takes = if takes.is_empty() { String::new() } else { format!("{takes}  ") };
            (name.to_string(), format!("{takes}{about}"))
        });
        self.calls.learn(&tools);
        let theirs = self.theirs().await;
        let theirs = theirs.iter().map(|command| {
            (format!("/{}", one_line(&command.name)), cut(&one_line(&command.description), 60))
        });
        let tools = tools.iter().map(|tool| {
            (format!("/{}", one_line(tool.name.as_str())), cut(&one_line(&tool.description), 60))
        });
        *self.words.lock() = commands.chain(theirs).chain(tools).collect();
    }

    async fn is_tool(&mut self, name: &str) -> bool {
        self.learn_words().await;
        let words = self.words.lock();
        words.iter().any(|(word, _)| word.strip_prefix('/') == Some(name))
    }

    /// The commands of extensions.
    async fn theirs(&self) -> Vec<SlashCommandInfo> {
        let all = self.client.ask::<Vec<SlashCommandInfo>>(&SessionMethod::Commands(NoParams {})).await;
        let own = |name: &str| COMMANDS.iter().any(|(command, ..)| command.strip_prefix('/') == Some(name));
        let theirs = all.unwrap_or_default().into_iter();
        theirs.filter(|command| command.extension.is_some() && !own(&command.name)).collect()
    }

    async fn is_command(&self, name: &str) -> bool {
        self.theirs().await.iter().any(|command| command.name == name)
    }

    /// Has a command run by the owner of the home, and goes where it leads.
    async fn run(&mut self, command: &str, arguments: &str) -> Result<(), Problem> {
        let chosen = (command == "model").then(|| arguments.into());
        let (session, command, arguments) = (self.session.clone(), command.to_owned(), arguments.to_owned());
        let request = SessionMethod::CommandRun(CommandRun { session, command, arguments });
        let end: CommandEnd = self.client.ask(&request).await?;
        if let Some(session) = end.session {
            // A session that is begun later has the same one.
            self.model = chosen.or(self.model.take());
            self.open(Some(session)).await?;
        }
        self.screen.foreign(None, &end.output.to_text());
        Ok(())
    }

    /// Keeps a file for what is said next.
    fn attach(&mut self, file: &str) -> Result<(), Problem> {
        if file.is_empty() {
            self.screen.line("/attach FILE, and then say something");
            return Ok(());
        }
        let file = attach::read(Path::new(file))?;
        self.screen.row(format!("{} ({}) goes with what you say next", file.name, file.media_type));
        self.attached.push(file);
        Ok(())
    }

    /// Saves what the last turn made.
    fn save(&mut self, folder: &str) -> Result<(), Problem> {
        let folder = if folder.is_empty() { "." } else { folder };
        if self.made.files.is_empty() {
            self.screen.line("the last turn has made no files");
        }
        for file in &self.made.files {
            let path = attach::save(Path::new(folder), file)?;
            self.screen.row(format!("saved {}", path.display()));
        }
        Ok(())
    }

    /// Goes on in a copy of the session.
    async fn fork(&mut self, turn: &str) -> Result<(), Problem> {
        let at = match turn {
            "" => None,
            turn => match turn.parse::<u32>() {
                Ok(turn) => Some(self.end_of(turn).await?),
                Err(_) => {
                    self.screen.line("/fork, or /fork TURN with the number of a turn, such as 3");
                    return Ok(());
                }
            },
        };
        let request = SessionMethod::Fork(SessionFork { session: self.session.clone(), at });
        let forked: serde_json::Value = self.client.ask(&request).await?;
        self.open(forked["session"].as_str().map(StreamId::from)).await
    }

    /// The frame with which a turn ended.
    async fn end_of(&self, turn: u32) -> Result<Seq, Problem> {
        let frames = self.tail(u64::MAX, &[FrameKind::TurnEnded]).await?;
        let ended =
            frames.iter().find(|read| matches!(&read.body, Body::TurnEnded(ended) if ended.turn == turn));
        let unknown = || Problem::new(Code::SessionFork, format!("no turn {turn} of this session has ended"));
        ended.map(|read| read.seq).ok_or_else(unknown)
    }

    async fn help(&mut self) {
        for (name, takes, about) in COMMANDS {
            let line = format!("{:<14} {about}", format!("{name} {takes}"));
            self.screen.line(line);
        }
        for command in self.theirs().await {
            let whose = command.extension.unwrap_or_default();
            let line = format!("{:<14} {} ({whose})", format!("/{}", command.name), command.description);
            self.screen.row(line);
        }
        self.screen.line("/TOOL {…}      the name of a tool: said to the model as it is");
        self.screen.line("");
        self.screen.line(
            "Alt-Enter or a backslash at the end: next line. Ctrl-R: search. Ctrl-C: cancel. Ctrl-D: leave.",
        );
    }

    async fn why(&mut self, call: &str) -> Result<(), Problem> {
        let wanted = call
            .split_once('.')
            .and_then(|(turn, index)| Some(CallId { turn: turn.parse().ok()?, index: index.parse().ok()? }));
        if wanted.is_none() && !call.is_empty() {
            self.screen.line("/why, or /why CALL with a call such as 2.1");
            return Ok(());
        }
        let frames = self.tail(if wanted.is_some() { u64::MAX } else { 5000 }, &[]).await?;
        for line in why(&frames, wanted) {
            self.screen.row(line);
        }
        Ok(())
    }

    async fn tools(&mut self) -> Result<(), Problem> {
        self.learn_words().await;
        let tools: Vec<ToolInfo> = self.client.ask(&ExtensionMethod::Tools(NoParams {})).await?;
        if tools.is_empty() {
            self.screen.line("no tools");
        }
        let kinds = [FrameKind::ToolCalled, FrameKind::ApprovalRequested, FrameKind::ApprovalAnswered];
        let approved = approved_for_session(&self.tail(u64::MAX, &kinds).await?);
        let columns = self.screen.width();
        let width = tools.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or(0).clamp(20, 32);
        for tool in tools {
            // Asked about once, and not again in this session.
            let is_approved =
                tool.policy == "ask" && approved.iter().any(|(_, name)| *name == tool.name.as_str());
            let line = format!(
                "{:<width$} {:<7} {:<12} {}",
                tool.name.as_str(),
                if is_approved { "session" } else { &tool.policy },
                tool.extension,
                tool.description
            );
            self.screen.line(cut(&one_line(&line), columns));
        }
        Ok(())
    }

    async fn about(&mut self) -> Result<(), Problem> {
        let kinds =
            [FrameKind::SessionStarted, FrameKind::TurnStarted, FrameKind::ModelRouted, FrameKind::TurnEnded];
        let frames = self.tail(u64::MAX, &kinds).await?;
        let spent = spent(&frames);
        let turns = frames.iter().filter(|read| matches!(read.body, Body::TurnStarted(_))).count();
        let model = self.model(&frames).unwrap_or_else(|| self.welcome.model.to_string());
        for (name, value) in [
            ("session", self.session.to_string()),
            ("model", model),
            ("profile", self.welcome.profile.clone()),
            ("folder", self.workspace.clone().unwrap_or_else(|| "none".to_owned())),
            ("home", self.welcome.home.clone()),
            ("owner", format!("process {}, version {}", self.welcome.process, self.welcome.program)),
            ("turns", turns.to_string()),
            ("frames", self.head().to_string()),
            ("spent", money(&spent)),
        ] {
            self.screen.row(format!("{name:<8} {value}"));
        }
        Ok(())
    }

    async fn sessions(&mut self) -> Result<(), Problem> {
        let list = SessionMethod::List(SessionList { all: true, limit: Some(MAX_SESSIONS) });
        let sessions: Vec<SessionSummary> = self.client.ask(&list).await?;
        let columns = self.screen.width();
        for SessionSummary { session, frames, about, .. } in sessions {
            let here = if session == self.session { "*" } else { " " };
            let line = format!("{here} {:<28} {frames:>6} frames  {about}", session.as_str());
            self.screen.line(cut(&one_line(&line), columns));
        }
        Ok(())
    }

    async fn cost(&mut self) -> Result<(), Problem> {
        let spent = spent(&self.tail(u64::MAX, &[FrameKind::TurnEnded]).await?);
        self.screen.line(money(&spent));
        let status: Status = self.client.ask(&SystemMethod::Status(NoParams {})).await?;
        status.today.iter().for_each(|bound| self.screen.row(bounded(bound)));
        Ok(())
    }

    async fn frames(&mut self, count: &str) -> Result<(), Problem> {
        let count = count.parse().unwrap_or(20u64);
        let columns = self.screen.width();
        for frame in self.stored(count, &[]).await? {
            self.screen.line(cut(&one_line(&user_frame_line(&frame)), columns));
        }
        Ok(())
    }

    /// The last frames of the session, read, as far as they are of these kinds. Those that were erased are left out.
    pub(super) async fn tail(&self, count: u64, kinds: &[FrameKind]) -> Result<Vec<ReadFrame>, Problem> {
        let mut read = Vec::new();
        for frame in self.stored(count, kinds).await? {
            if let Ok(body) = self.client.body(&frame).await {
                read.push(ReadFrame { seq: frame.envelope.seq, source: frame.envelope.source, body });
            }
        }
        Ok(read)
    }

    /// The last frames of the session, as they are stored.
    async fn stored(&self, count: u64, kinds: &[FrameKind]) -> Result<Vec<Frame>, Problem> {
        let from = Seq(self.head().saturating_sub(count));
        let (session, kinds) = (self.session.clone(), kinds.to_vec());
        self.client.frames(SessionFrames { session, from, to: None, kinds, limit: None }).await
    }

    /// How many frames the session has, as far as they were seen.
    fn head(&self) -> u64 {
        self.next.max(self.shown_from).0
    }

    /// The model that was used last.
    pub(super) fn model(&self, frames: &[ReadFrame]) -> Option<String> {
        frames.iter().rev().find_map(|read| match &read.body {
            Body::ModelRouted(routed) => Some(routed.model.to_string()),
            Body::SessionStarted(started) => started.settings.models.first().map(ToString::to_string),
            _ => None,
        })
    }
}

fn unknown(name: &str) -> String {
    let near =
        COMMANDS.iter().map(|(command, ..)| (strsim::damerau_levenshtein(name, command), *command)).min();
    let shown = one_line(name);
    match near {
        Some((distance, command)) if distance <= 2 => format!("there is no {shown}; did you mean {command}?"),
        _ => format!("there is no {shown}; /help shows what there is"),
    }
}

fn spent(frames: &[ReadFrame]) -> Spent {
    let mut all = Spent::default();
    for read in frames {
        if let Body::TurnEnded(ended) = &read.body {
            all = all.plus(ended.spent);
        }
    }
    all
}

fn money(spent: &Spent) -> String {
    format!(
        "{} model calls, {} tool calls, {} tokens, ${}.{:06}",
        spent.turns,
        spent.tool_calls,
        spent.tokens,
        spent.cost_micros / 1_000_000,
        spent.cost_micros % 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_gets_a_suggestion() {
        assert_eq!(unknown("/hlep"), "there is no /hlep; did you mean /help?");
        assert_eq!(unknown("/frobnicate"), "there is no /frobnicate; /help shows what there is");
    }
}
