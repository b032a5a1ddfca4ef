//! The owner's side: takes requests, and sends notices of the sessions that a client watches.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use holdfast_contract::attachment::Attachment;
use holdfast_contract::content::{Content, to_whole_json};
use holdfast_contract::ids::{ExtensionId, Seq, StreamId};
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::session_frames::{Answer, ApprovalScope};
use holdfast_policy::{Policy, PolicyRequest as Judged, Rule};
use holdfast_runtime::diagnosis::FaultReport;
use holdfast_runtime::{
    CommandInfo, DailyLimit, ModelUsage, NewSession, Runtime, SessionHandle, ShutdownRequest, TurnReport,
};
use holdfast_store::Retention;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::active_clients::{ActiveClients, ClientGuard};
use crate::bus;
use crate::hub::{Hub, Watch};
use crate::line;
use crate::outgoing::Outgoing;
use crate::protocol::*;

/// Makes a new session as the home is set.
pub type CreateSession = dyn Fn(&SessionOpen) -> Result<NewSession, Problem> + Send + Sync;

/// Writes a rule into the home's policy and gives the policy as it is then.
pub type Remember = dyn Fn(Rule) -> Result<Policy, Problem> + Send + Sync;

/// What a server answers for.
pub struct ServerContext {
    /// The runtime.
    pub runtime: Runtime,
    /// Its surface.
    pub hub: Arc<Hub>,
    /// Who it is.
    pub welcome: ServerHello,
    /// How new sessions are made.
    pub found: Box<CreateSession>,
    /// What "always" does.
    pub remember: Box<Remember>,
}

/// Frames of a session that is followed that are read at once.
const FRAMES_PER_READ: u64 = 256;

/// The command that names a session, as it stands in a `command.run` frame.
pub const RENAME: &str = "rename";

/// Answers for an owner. Clones share it.
#[derive(Clone)]
pub struct Server {
    owner: Arc<ServerContext>,
    guests: ActiveClients,
}

/// One connection: what it watches, and the way out.
struct Connection {
    owner: Arc<ServerContext>,
    /// Where to sign in, for one that comes from another process.
    guests: Option<ActiveClients>,
    stay: std::sync::Mutex<Option<ClientGuard>>,
    lines: Outgoing,
    notices: mpsc::UnboundedSender<Notification>,
    /// The sessions it has opened, and what it calls itself there.
    watches: std::sync::Mutex<Vec<(StreamId, String, Watch)>>,
}

impl Server {
    /// A server.
    pub fn new(owner: ServerContext) -> Self {
        Self { owner: Arc::new(owner), guests: ActiveClients::default() }
    }

    /// What it answers for.
    pub fn owner(&self) -> &ServerContext {
        &self.owner
    }

    /// The commands of other processes that are being served.
    pub fn guests(&self) -> &ActiveClients {
        &self.guests
    }

    /// Serves a connection of this process until its other side has gone.
    pub async fn serve(self, connection: impl AsyncRead + AsyncWrite + Send + 'static) {
        self.serve_as(connection, None).await;
    }

    /// Serves a connection of another process until it has gone.
    pub async fn serve_guest(self, connection: impl AsyncRead + AsyncWrite + Send + 'static) {
        let guests = self.guests.clone();
        self.serve_as(connection, Some(guests)).await;
    }

    /// Requests are taken in their order. Those that wait for a turn are answered when it has ended, all others at once.
    async fn serve_as(
        self,
        connection: impl AsyncRead + AsyncWrite + Send + 'static,
        guests: Option<ActiveClients>,
    ) {
        let (reader, writer) = tokio::io::split(connection);
        let (lines, write) = Outgoing::open(writer);
        let (notices, mut noticed) = mpsc::unbounded_channel::<Notification>();
        let hub = self.owner.hub.clone();
        let written = tokio::spawn(async move {
            if write.await {
                hub.tell_all("a client that did not read what it was sent was let go".to_owned());
            }
        });
        let forward = lines.clone();
        let forwarded = tokio::spawn(async move {
            while let Some(notice) = noticed.recv().await {
                forward.send(line::notice(&notice));
            }
        });
        let gone = lines.clone();
        let (watches, stay) = (std::sync::Mutex::default(), std::sync::Mutex::default());
        let connection = Arc::new(Connection { owner: self.owner, guests, stay, lines, notices, watches });
        let mut tasks = JoinSet::new();
        let mut reader = BufReader::new(reader);
        loop {
            let line = tokio::select! {
                line = line::read(&mut reader) => line,
                () = gone.closed() => break,
            };
            let Ok(Some(line)) = line else { break };
            if let Some((id, request)) = connection.request(&line) {
                let connection = connection.clone();
                let mut answer = Box::pin(async move { connection.answer(id, request).await });
                // What was asked first is begun first, so that a client need not wait for one answer before it asks the next.
                if std::future::poll_fn(|context| Poll::Ready(answer.as_mut().poll(context)))
                    .await
                    .is_pending()
                {
                    tasks.spawn(answer);
                }
            }
            while tasks.try_join_next().is_some() {}
        }
        // Nobody reads the answers any more; what was begun goes on in its session.
        tasks.abort_all();
        drop(connection);
        forwarded.abort();
        written.abort();
    }
}

impl Connection {
    /// A line as a request; what is none is answered at once.
    fn request(&self, line: &[u8]) -> Option<(Value, Request)> {
        let refuse = |id: Value, code: i64, what: String| {
            let problem = Problem::new(Code::UsageInvalid, what);
            let help = "`holdfast schema protocol` prints what can be asked.";
            self.lines.send(line::answer(id, Err((code, problem.help(help)))));
            None
        };
        if line.trim_ascii().is_empty() {
            return None;
        }
        let mut message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                return refuse(Value::Null, line::PARSE_ERROR, format!("this is not JSON: {error}"));
            }
        };
        let Some(fields) = message.as_object_mut() else {
            return refuse(Value::Null, line::INVALID_REQUEST, "a request is a JSON object".to_owned());
        };
        let id = fields.remove("id").unwrap_or_default();
        fields.remove("jsonrpc");
        fields.entry("params").or_insert_with(|| json!({}));
        let method = fields.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        match serde_json::from_value(message) {
            Ok(request) => Some((id, request)),
            Err(error) if error.to_string().starts_with(&format!("unknown variant `{method}`")) => {
                refuse(id, line::UNKNOWN_METHOD, format!("there is no method `{method}`"))
            }
            Err(error) => refuse(id, line::INVALID_PARAMS, format!("`{method}`: {error}")),
        }
    }

    async fn answer(&self, id: Value, request: Request) {
        let answer = self.carry_out(request).await.map_err(|problem| (line::FAILED, problem));
        self.lines.send(line::answer(id, answer));
    }

    async fn carry_out(&self, request: Request) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        match request {
            Request::Hello(hello) if hello.version == VERSION => {
                self.register(&hello)?;
                value(&self.owner.welcome)
            }
            Request::Hello(hello) => Err(Problem::new(
                Code::ConnectionVersion,
                format!("the client speaks version {} of the protocol, the owner {VERSION}", hello.version),
            )),
            Request::SessionOpen(open) => value(&self.open(open).await?),
            Request::SessionSend(SessionSend { session, text, attachments }) => {
                if !runtime.is_open(&session) {
                    runtime.open_models_of(&session).await?;
                }
                let (handle, surface) = (runtime.resume(&session)?, self.surface(&session));
                let attachments = attachments.into_iter().map(Into::into).collect();
                let report = handle.say_with(&surface, Content::text(text), attachments).await?;
                value(&turn_end(session, report))
            }
            Request::SessionWait(SessionParams { session }) => {
                let report = runtime.resume(&session)?.running_turn().await?;
                value(&turn_end(session, report))
            }
            Request::SessionCancel(SessionParams { session }) => {
                runtime.resume(&session)?.cancel("the user cancelled it").await?;
                self.ack_durable().await
            }
            Request::SessionCompact(SessionParams { session }) => {
                runtime.resume(&session)?.compact("the user asked for it").await?;
                self.ack_durable().await
            }
            Request::SessionRename(SessionRename { session, name }) => {
                let output = Content::text(name.clone());
                runtime.resume(&session)?.command(RENAME, &name, output).await?;
                self.ack_durable().await
            }
            Request::SessionEnd(SessionParams { session }) => {
                runtime.resume(&session)?.end("the user ended it").await?;
                self.ack_durable().await
            }
            Request::SessionContent(SessionContent { session, digest }) => {
                let gone = || {
                    let what = format!("no frame of `{session}` refers to a value {digest}");
                    Problem::new(Code::StoreMissing, what)
                };
                let value = runtime.store().content(&session, digest)?.ok_or_else(gone)?;
                Ok(json!({ "value": value }))
            }
            Request::ApprovalAnswer(answer) => {
                self.approve(answer).await?;
                self.ack_durable().await
            }
            Request::UiAnswer(UiAnswer { session, request, answer }) => {
                let handle = runtime.resume(&session)?;
                if !self.owner.hub.waits(&session, request) {
                    let what = format!("no question waits at frame {request} of `{session}`");
                    return Err(Problem::new(Code::TurnUnexpected, what));
                }
                handle.answer(request, answer.map(Content::new)).await?;
                self.owner.hub.answered(&session, request);
                self.ack_durable().await
            }
            Request::ToolsList(NoParams {}) => value(&self.tools().await?),
            Request::AgentsList(NoParams {}) => value(&self.agents()),
            Request::ExtensionsList(NoParams {}) => value(&self.extensions().await?),
            Request::ExtensionRestart(ExtensionParams { id }) => {
                runtime.retry(id.as_str().into(), "the user asked for it");
                runtime.settled().await?;
                self.ack_durable().await
            }
            Request::ExtensionDoctor(ExtensionDoctor { id }) => value(&self.troubles(id.as_deref()).await?),
            Request::SystemStatus(NoParams {}) => value(&self.status().await?),
            Request::SystemStop(NoParams {}) => {
                runtime.request_shutdown(ShutdownRequest::Stop("somebody asked for it".to_owned()));
                self.ack_durable().await
            }
            Request::SystemRestart(NoParams {}) => {
                runtime.request_shutdown(ShutdownRequest::Restart("somebody asked for it".to_owned()));
                self.ack_durable().await
            }
            Request::SetupShow(SetupShow { extension }) => value(&runtime.setup(&extension).await?),
            Request::SetupApply(SetupApply { extension, name, value: set }) => {
                value(&runtime.configure(&extension, &name, set).await?)
            }
            Request::PolicyExplain(asked) => self.explain(&asked),
            Request::LogErase(LogErase { session, reason }) => {
                let erased = runtime.erase(&session, &reason).await?;
                Ok(json!({ "session": session, "erased": erased }))
            }
            Request::LogGc(LogGc { session, keep_days, keep_frames }) => {
                let max_age = keep_days.map(|days| holdfast_contract::ids::Millis(days * 86_400_000));
                let retention = Retention { max_age, max_frames: keep_frames };
                let all = || {
                    let sessions = runtime.store().streams()?.into_iter().map(|info| info.id);
                    Ok::<_, Problem>(sessions.filter(|id| !id.is_system()).collect())
                };
                let sessions: Vec<StreamId> = session.map_or_else(all, |id| Ok(vec![id]))?;
                // What is too old to be owed to anybody is in nobody's way.
                runtime.bus().tidy().await?;
                let mut lines = Vec::new();
                for id in sessions {
                    let collected = runtime.collect(&id, retention).await?;
                    lines.push(json!({ "stream": id, "frames": collected.frames, "blobs": collected.blobs }));
                }
                Ok(Value::Array(lines))
            }
            Request::BusStatus(NoParams {}) => value(&bus::status(runtime)),
            Request::BusPublish(asked) => value(&bus::publish(runtime, asked).await?),
            Request::BusDeadList(asked) => {
                value(&bus::dead_letters(runtime, asked.subscriber.as_deref()).await?)
            }
            Request::BusDeadShow(asked) => value(&bus::dead_letter(runtime, &asked).await?),
            Request::BusDeadRetry(asked) => value(&bus::retry(runtime, &asked).await?),
            Request::BusDeadDiscard(asked) => value(&bus::discard(runtime, &asked).await?),
            Request::CommandsList(NoParams {}) => value(&self.commands()),
            Request::CommandRun(CommandRun { session, command, arguments }) => {
                let found = &self.owner.found;
                let channel = self.surface(&session);
                let make = || found(&SessionOpen { channel, ..SessionOpen::default() });
                let done = runtime.run_command(&session, &command, &arguments, make).await?;
                self.ack_durable().await?;
                value(&CommandEnd { output: done.output, session: done.session })
            }
            Request::ToolRender(ToolRender { tool, arguments, result }) => {
                let (call, result) = runtime.rendered(&tool, arguments, result).await?;
                value(&ToolRendered { call, result })
            }
            Request::SessionFork(SessionFork { session, at }) => {
                let fork = (self.owner.found)(&SessionOpen::default())?.id;
                let next = runtime.fork(&session, at, &fork)?;
                Ok(json!({ "session": fork, "from": session, "frames": next }))
            }
        }
    }

    /// What was done is acknowledged once it is on disk.
    async fn ack_durable(&self) -> Result<Value, Problem> {
        let store = self.owner.runtime.store().clone();
        let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
        flushed.map_err(|error| Problem::new(Code::Internal, error.to_string()))??;
        Ok(json!({}))
    }

    /// A command of another process: the owner does not end before it does.
    fn register(&self, hello: &ClientHello) -> Result<(), Problem> {
        if let (Some(guests), COMMAND) = (&self.guests, hello.client.as_str()) {
            let ending = || Problem::new(Code::ConnectionLost, "the process that owns the home is ending");
            let stay = guests.enter().ok_or_else(ending)?;
            *self.stay.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(stay);
        }
        Ok(())
    }

    /// What this client calls itself in a session: as it said when it opened it.
    fn surface(&self, session: &StreamId) -> String {
        let watches = self.watches.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let opened = watches.iter().rev().find(|(watched, _, _)| watched == session);
        opened
            .map(|(_, channel, _)| channel.clone())
            .filter(|channel| !channel.is_empty())
            .unwrap_or_else(|| "rpc".to_owned())
    }

    async fn open(&self, open: SessionOpen) -> Result<SessionOpened, Problem> {
        let ServerContext { runtime, hub, found, .. } = &*self.owner;
        let there = match &open.session {
            Some(id) => runtime.store().head(id)?.is_some() || runtime.is_open(id),
            None => false,
        };
        let id = match &open.session {
            Some(id) if there => id.clone(),
            Some(id) if !open.create => {
                let problem = Problem::new(Code::StoreMissing, format!("there is no session `{id}`"));
                return Err(problem.help("`holdfast session list` shows what there is."));
            }
            _ => {
                if let Some(model) = &open.model {
                    runtime.open_model(model).await?;
                }
                let new = found(&open)?;
                let id = new.id.clone();
                self.watch(&id, &open, hub);
                let handle = runtime.open(new)?;
                return self.opened(handle, false, Vec::new(), open.frames_from).await;
            }
        };
        runtime.open_models_of(&id).await?;
        // Watched first, so that nothing that the resume leads to is missed.
        let waiting = self.watch(&id, &open, hub);
        let handle = runtime.resume(&id)?;
        self.opened(handle, true, waiting, open.frames_from).await
    }

    fn watch(&self, id: &StreamId, open: &SessionOpen, hub: &Arc<Hub>) -> Vec<Notification> {
        let (watch, waiting) = hub.watch(id, open.answers, self.notices.clone());
        let mut watches = self.watches.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        watches.push((id.clone(), open.channel.clone(), watch));
        waiting
    }

    async fn opened(
        &self,
        handle: SessionHandle,
        resumed: bool,
        waiting: Vec<Notification>,
        frames_from: Option<Seq>,
    ) -> Result<SessionOpened, Problem> {
        let session = handle.id().clone();
        let store = self.owner.runtime.store();
        let next = store.head(&session)?.map_or(Seq(0), |head| head.seq.next());
        if let Some(from) = frames_from {
            tokio::spawn(follow(self.owner.runtime.clone(), session.clone(), from, self.lines.clone()));
        }
        Ok(SessionOpened { session, resumed, next, waiting })
    }

    async fn approve(
        &self,
        ApprovalAnswer { session, approval, answer }: ApprovalAnswer,
    ) -> Result<(), Problem> {
        let ServerContext { runtime, remember, hub, .. } = &*self.owner;
        let handle = runtime.resume(&session)?;
        let approve = |scope| Answer::Approve { scope };
        let mut rule = None;
        let answer = match answer {
            ApprovalChoice::Once => approve(ApprovalScope::Once),
            ApprovalChoice::Session => approve(ApprovalScope::Session),
            ApprovalChoice::Always => {
                if runtime.policy()?.remembers_answers() {
                    rule = Some(self.always(&session, approval)?);
                }
                approve(ApprovalScope::Session)
            }
            ApprovalChoice::Edit { arguments } => Answer::Edit { arguments: Content::new(arguments) },
            ApprovalChoice::Deny { reason } => Answer::Deny { reason },
        };
        // Only an answer to what really waits is one; a rule is written after it, or not at all.
        handle.approve(approval, answer).await?;
        hub.answered(&session, approval);
        match rule {
            Some(rule) => runtime.set_policy(remember(rule)?, "always"),
            None => Ok(()),
        }
    }

    /// The rule that "always" means: for this tool of this extension.
    fn always(&self, session: &StreamId, approval: Seq) -> Result<Rule, Problem> {
        let runtime = &self.owner.runtime;
        let frames = runtime.store().frames(session, approval..=approval)?;
        let body = frames.first().and_then(|frame| frame.body.as_ref());
        let call = body.map(|body| body["call"].clone()).unwrap_or_default();
        let called = runtime.store().frames(session, Seq(0)..=approval)?.into_iter().rev().find(|frame| {
            frame.envelope.kind == holdfast_contract::body::FrameKind::ToolCalled
                && frame.body.as_ref().is_some_and(|body| body["call"] == call)
        });
        let tool = called.and_then(|frame| Some(frame.body?["tool"].as_str()?.to_owned()));
        let registry = runtime.registry();
        let found = tool.and_then(|tool| registry.tool(&tool.as_str().into())?.stack.first().cloned());
        let missing = || Problem::new(Code::ToolUnknown, "the tool that was asked about is no longer there");
        let implementation = found.ok_or_else(missing)?;
        let (arguments, turn) = (Content::default(), no_turn("policy"));
        let rule = Rule::always(&Judged {
            tool: &implementation.spec,
            extension: &implementation.extension,
            arguments: &arguments,
            turn: &turn,
        });
        rule.ok_or_else(|| Problem::new(Code::PolicyInvalid, "a rule for this tool would match others too"))
    }

    async fn tools(&self) -> Result<Vec<ToolInfo>, Problem> {
        let runtime = &self.owner.runtime;
        let (registry, policy) = (runtime.registry(), runtime.policy()?);
        let lanes = runtime.extensions().await?;
        let (arguments, turn) = (Content::new(json!({})), no_turn("tools"));
        let lines = registry.tools.iter().filter_map(|entry| {
            let active = entry.stack.first()?;
            let verdict = policy.evaluate(&Judged {
                tool: &active.spec,
                extension: &active.extension,
                arguments: &arguments,
                turn: &turn,
            });
            let lane = lanes.iter().find(|view| view.id == active.extension.id);
            Some(ToolInfo {
                name: entry.name.clone(),
                description: active.spec.description.clone(),
                effects: word(&active.spec.effects),
                extension: active.extension.id.to_string(),
                version: active.extension.version.to_string(),
                lane: lane.map(|view| view.lane.clone()).unwrap_or_default(),
                generation: active.extension.generation.0,
                policy: word(&verdict.decision),
                input_schema: active.spec.input_schema.value().cloned().unwrap_or_default(),
                render: active.spec.render.as_ref().and_then(Content::value).cloned(),
                renders: runtime.renderer_of(&entry.name).is_some(),
            })
        });
        Ok(lines.collect())
    }

    fn agents(&self) -> Vec<AgentInfo> {
        let registry = self.owner.runtime.registry();
        let line = |agent: &holdfast_contract::registry::AgentSpec| AgentInfo {
            id: agent.id.to_string(),
            description: agent.description.clone(),
            mode: agent.mode,
            models: agent.models.clone(),
        };
        registry.agents.iter().map(line).collect()
    }

    fn commands(&self) -> Vec<SlashCommandInfo> {
        let line = |command: CommandInfo| SlashCommandInfo {
            name: command.name,
            takes: command.takes,
            description: command.description,
            extension: command.extension.map(|id| id.to_string()),
        };
        self.owner.runtime.commands().into_iter().map(line).collect()
    }

    async fn extensions(&self) -> Result<Vec<ExtensionInfo>, Problem> {
        let registry = self.owner.runtime.registry();
        let views = self.owner.runtime.extensions().await?;
        let lines = views.into_iter().map(|view| {
            let own = |id: &holdfast_contract::ids::ExtensionId| *id == view.id;
            let tools =
                registry.tools.iter().filter(|entry| entry.stack.iter().any(|it| own(&it.extension.id)));
            let hooks = registry.hooks.iter().filter(|hook| own(&hook.extension.id));
            ExtensionInfo {
                tools: tools.map(|entry| entry.name.clone()).collect(),
                hooks: hooks.map(|hook| format!("{} at {}", hook.id, word(&hook.spec.point))).collect(),
                id: view.id.to_string(),
                version: view.active.as_ref().map(|active| active.version.to_string()),
                state: word(&view.state()),
                lane: view.lane.clone(),
                generation: view.active.as_ref().map(|active| active.generation.0),
                digest: view.active.as_ref().map(|active| active.digest.to_string()),
                fault: view.fault.as_ref().map(ToString::to_string),
                conflicts: view.conflicts.iter().map(ToString::to_string).collect(),
            }
        });
        Ok(lines.collect())
    }

    async fn troubles(&self, id: Option<&str>) -> Result<Vec<FaultRecord>, Problem> {
        let (runtime, now) = (&self.owner.runtime, self.owner.runtime.now());
        let views = runtime.extensions().await?.into_iter();
        let asked = views.filter(|view| id.is_none_or(|id| view.id.as_str() == id));
        let conflicts = asked.flat_map(|view| {
            let extension = view.id.to_string();
            view.conflicts.into_iter().map(move |fault| FaultRecord {
                extension: extension.clone(),
                at: now.0,
                phase: "registry".to_owned(),
                code: fault.code.as_str().to_owned(),
                fix: fault.code.help().to_owned(),
                message: fault.message,
            })
        });
        let troubles = runtime.troubles(id.map(ExtensionId::from).as_ref())?;
        let line = |trouble: FaultReport| FaultRecord {
            extension: trouble.extension.to_string(),
            at: trouble.at.0,
            phase: trouble.phase,
            code: trouble.code.to_owned(),
            message: trouble.message,
            fix: trouble.fix.to_owned(),
        };
        Ok(conflicts.chain(troubles.into_iter().map(line)).collect())
    }

    async fn status(&self) -> Result<Status, Problem> {
        let runtime = &self.owner.runtime;
        let extensions = runtime.extensions().await?;
        let active = extensions.iter().filter(|extension| extension.active.is_some()).count() as u64;
        let (mut failed, mut unwell, mut conflicts) = (Vec::new(), Vec::new(), Vec::new());
        let troubled = |extension: &ExtensionId, fault: Fault| ExtensionProblem {
            extension: extension.to_string(),
            code: fault.code.as_str().to_owned(),
            fix: fault.code.help().to_owned(),
            message: fault.message,
        };
        for extension in extensions {
            conflicts.extend(extension.conflicts.into_iter().map(|fault| troubled(&extension.id, fault)));
            let Some(fault) = extension.fault else { continue };
            let line = troubled(&extension.id, fault);
            if extension.active.is_some() { &mut unwell } else { &mut failed }.push(line);
        }
        unwell.extend(runtime.suspended().into_iter().map(|(extension, fault)| troubled(&extension, fault)));
        let ModelUsage { model_calls, tokens, cost_micros } = runtime.used();
        Ok(Status {
            process: self.owner.welcome.process,
            active,
            sessions: runtime.open_sessions() as u64,
            failed,
            unwell,
            conflicts,
            uptime_ms: runtime.uptime().0,
            queues: bus::queues(runtime),
            spent: UsageInfo { model_calls, tokens, cost_micros },
            today: runtime.today().into_iter().map(bound_line).collect(),
        })
    }

    fn explain(&self, asked: &PolicyExplain) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        let registry = runtime.registry();
        let unknown = || Problem::new(Code::ToolUnknown, format!("there is no tool `{}`", asked.tool));
        let entry = registry.tool(&asked.tool).ok_or_else(unknown)?;
        let wanted = |id: &str| asked.extension.as_deref().is_none_or(|extension| extension == id);
        let found = entry.stack.iter().find(|it| wanted(it.extension.id.as_str())).ok_or_else(unknown)?;
        let arguments = Content::new(asked.arguments.clone());
        let turn = no_turn(asked.channel.as_deref().unwrap_or("cli"));
        let judged =
            Judged { tool: &found.spec, extension: &found.extension, arguments: &arguments, turn: &turn };
        value(&runtime.policy()?.explain(&judged))
    }
}

/// Sends every frame of a session from one on, each once it is durable and as fast as it is read, until nobody listens.
async fn follow(runtime: Runtime, session: StreamId, mut next: Seq, lines: Outgoing) {
    let Ok(log) = runtime.store().stream(&session) else { return };
    loop {
        let durable = log.durable(next);
        tokio::select! {
            durable = durable => if durable.is_err() { return },
            () = lines.closed() => return,
        }
        let Ok(frames) = runtime.store().frames(&session, next..Seq(next.0 + FRAMES_PER_READ)) else {
            return;
        };
        for frame in frames {
            next = frame.envelope.seq.next();
            if !lines.send_in_time(line::notice(&Notification::Frame(frame))).await {
                return;
            }
        }
    }
}

fn bound_line(DailyLimit { extension, limit, used, allowed }: DailyLimit) -> LimitUsage {
    LimitUsage { extension: extension.map(|id| id.to_string()), limit, used, allowed }
}

fn turn_end(session: StreamId, report: TurnReport) -> TurnEnd {
    let TurnReport { ended, outcome, answer, files, spent, limit_set_in } = report;
    let attachments = files.iter().map(Attachment::from).collect();
    TurnEnd { session, ended, outcome, answer, attachments, spent, limit_set_in }
}

/// A turn that never runs, for a question about the policy.
fn no_turn(channel: &str) -> TurnContext {
    TurnContext {
        session: "none".into(),
        turn: 0,
        agent: "main".into(),
        origin: Origin { channel: channel.to_owned(), user: None },
    }
}

fn value(answer: &impl Serialize) -> Result<Value, Problem> {
    to_whole_json(answer).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// A value of an enumeration, as it is written.
fn word(choice: &impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(fields)) => fields.into_iter().next().map(|(name, _)| name).unwrap_or_default(),
        _ => String::new(),
    }
}
