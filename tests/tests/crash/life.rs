//! One process of the runtime: it recovers what an earlier one left, and goes on with the rest of the talks.
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{Answer, ApprovalScope, SessionSettings, TurnOutcome};
use holdfast_kernel::Pending;
use holdfast_policy::Policy;
use holdfast_runtime::{
    Clock, HomeParts, NewSession, OsEntropy, Parts, Routes, Runtime, SessionEvent, SessionFactory,
    SessionHandle, SessionRequest, Surface, TurnReport,
};
use holdfast_store::Store;
use serde_json::json;
use tokio::sync::mpsc;

use super::ledger::{Noted, Outside};
use super::plan::{Line, Planner, Talk, answer_to, wanted_answer};
use super::world::World;

/// How long a talk may take, however busy the machine is.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How far a life goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The turns that an earlier life left running have ended.
    TurnsEnd,
    /// Everything is said.
    AllIsSaid,
}

/// Lives in this world on this log.
pub async fn live(
    world: &World,
    store: Store,
    clock: Arc<dyn Clock>,
    talks: &'static [Talk],
    until: Until,
) -> Result<(), Problem> {
    let runtime = start(world, store, clock).await?;
    let outside = &world.outside;
    let talking: Vec<_> = talks
        .iter()
        .map(|talk| tokio::spawn(follow(runtime.clone(), talk, outside.clone(), until)))
        .collect();
    for talk in talking {
        tokio::time::timeout(TIMEOUT, talk).await.expect("the talk goes on").unwrap()?;
    }
    runtime.settled().await?;
    runtime.stop("all is said").await
}

/// Starts a runtime in this world, with somebody who answers approvals.
pub async fn start(world: &World, store: Store, clock: Arc<dyn Clock>) -> Result<Runtime, Problem> {
    let (asking, asked) = mpsc::unbounded_channel();
    let (lane, extensions) = world.lane();
    let runtime = Runtime::start(Parts {
        store,
        clock,
        entropy: Arc::new(OsEntropy),
        models: [("planner".into(), Arc::new(Planner(world.outside.clone())) as _)].into(),
        lanes: vec![lane],
        extensions,
        policy: Policy::profile(Profile::FullAuto),
        surface: Arc::new(Desk { outside: world.outside.clone(), asking }),
        routes: Routes { opener: Some(Arc::new(Door)), ..Routes::default() },
        home: HomeParts::default(),
    })
    .await?;
    tokio::spawn(answer_approvals(runtime.clone(), asked));
    Ok(runtime)
}

/// Opens a session of this id, or takes it up.
pub fn take_up(runtime: &Runtime, id: &StreamId) -> Result<SessionHandle, Problem> {
    if runtime.store().head(id)?.is_some() {
        return runtime.resume(id);
    }
    runtime.open(new(id.clone(), Origin { channel: "test".to_owned(), user: Some("ada".to_owned()) }))
}

fn new(id: StreamId, origin: Origin) -> NewSession {
    NewSession {
        id,
        origin,
        agent: "main".into(),
        instructions: "You are a test.".into(),
        settings: SessionSettings { models: vec!["planner".into()], ..SessionSettings::default() },
    }
}

/// Makes sessions for what runs in the background.
struct Door;

impl SessionFactory for Door {
    fn create_session(
        &self,
        _: &Runtime,
        SessionRequest { id, origin, .. }: SessionRequest,
    ) -> Result<NewSession, Problem> {
        Ok(new(id, origin))
    }
}

/// Follows a talk to its end, from wherever the log says that it stands.
async fn follow(
    runtime: Runtime,
    talk: &'static Talk,
    outside: Arc<dyn Outside>,
    until: Until,
) -> Result<(), Problem> {
    let id = StreamId::from(talk.session);
    if until == Until::TurnsEnd && runtime.store().head(&id)?.is_none() {
        return Ok(());
    }
    let mut session = take_up(&runtime, &id)?;
    let running = finish(&runtime, &mut session).await?;
    let frames = runtime.store().frames(&id, Seq(0)..)?;
    let said = frames.iter().filter(|frame| frame.envelope.kind == FrameKind::InputReceived).count();
    if let Some(report) = running {
        tell(&*outside, &id, &report, talk.prompts().nth(said.saturating_sub(1)).unwrap());
    }
    if until == Until::TurnsEnd {
        return Ok(());
    }
    let mut to_skip = said;
    for line in talk.lines {
        match line {
            Line::Say(_) | Line::Cancel(_) if to_skip > 0 => to_skip -= 1,
            _ if to_skip > 0 => {}
            Line::Say(prompt) => {
                let report = match session.say("test", *prompt).await {
                    // The task that answers approvals has closed it, and may have brought the turn to its end by now.
                    Err(problem) if problem.code == Code::SessionEnded => {
                        session = runtime.resume(&id)?;
                        finish(&runtime, &mut session).await?
                    }
                    report => Some(report?),
                };
                match report {
                    Some(report) => tell(&*outside, &id, &report, prompt),
                    None => {
                        let last = |kind| runtime.store().last_of_kind(&id, kind);
                        let (asked, ended) = (last(FrameKind::InputReceived)?, last(FrameKind::TurnEnded)?);
                        let ended = ended.map(|frame| frame.envelope.seq);
                        assert!(
                            ended > asked.map(|frame| frame.envelope.seq),
                            "{id}: {prompt} has not ended"
                        );
                    }
                }
            }
            Line::Cancel(prompt) => {
                let (asking, asked) = (session.clone(), *prompt);
                let turn = tokio::spawn(async move { asking.say("test", asked).await });
                until_it_runs(&runtime, &id, turn.is_finished()).await?;
                session.cancel("never mind").await?;
                tell(&*outside, &id, &turn.await.unwrap()?, prompt);
            }
            Line::Reload => {
                runtime.found(vec![World::renewed()]);
                runtime.settled().await?;
            }
            Line::Reopen => {
                session.close().await?;
                session = runtime.resume(&id)?;
            }
            Line::Compact => session.compact("tidy up").await?,
        }
    }
    Ok(())
}

/// Waits until a tool of the last turn runs.
async fn until_it_runs(runtime: &Runtime, id: &StreamId, ended: bool) -> Result<(), Problem> {
    let before = runtime.store().last_of_kind(id, FrameKind::TurnStarted)?.map(|frame| frame.envelope.seq);
    let runs = || -> Result<bool, Problem> {
        let started =
            runtime.store().last_of_kind(id, FrameKind::TurnStarted)?.map(|frame| frame.envelope.seq);
        let dispatched =
            runtime.store().last_of_kind(id, FrameKind::ToolDispatched)?.map(|frame| frame.envelope.seq);
        Ok(started >= before && dispatched > started)
    };
    while !ended && !runs()? {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Waits for the turn that runs, if one does.
async fn finish(runtime: &Runtime, session: &mut SessionHandle) -> Result<Option<TurnReport>, Problem> {
    loop {
        match session.running_turn().await {
            Ok(report) => return Ok(Some(report)),
            Err(problem) if problem.code == Code::TurnUnexpected => return Ok(None),
            Err(problem) if problem.code == Code::SessionEnded => {
                // Where everything is being shut down, this is where it ends.
                tokio::task::yield_now().await;
                *session = runtime.resume(session.id())?;
            }
            Err(problem) => return Err(problem),
        }
    }
}

/// The user is told how a turn ended, and it is the turn that they asked for.
pub fn tell(outside: &dyn Outside, session: &StreamId, report: &TurnReport, prompt: &str) {
    outside.note(Noted::Told { session: session.clone(), seq: report.ended, kind: FrameKind::TurnEnded });
    // One that was to be cancelled goes on if nobody lived to cancel it.
    if prompt == "do: wait" && matches!(report.outcome, TurnOutcome::Cancelled { .. }) {
        return;
    }
    assert_eq!(report.outcome, TurnOutcome::Answered, "{session}: {prompt}");
    let answer = report.answer.as_ref().map(Content::to_text);
    assert_eq!(answer, Some(answer_to(prompt)), "{session} was told of another turn");
}

/// A surface that passes questions on.
struct Desk {
    outside: Arc<dyn Outside>,
    asking: mpsc::UnboundedSender<(StreamId, Pending)>,
}

impl Surface for Desk {
    fn show(&self, session: &StreamId, event: SessionEvent) {
        if let SessionEvent::Approval(pending) = event {
            let (session, seq) = (session.clone(), pending.approval);
            self.outside.note(Noted::Told {
                session: session.clone(),
                seq,
                kind: FrameKind::ApprovalRequested,
            });
            drop(self.asking.send((session, pending)));
        }
    }

    fn attended(&self, _: &StreamId) -> bool {
        true
    }
}

/// Answers each approval as its call wants it. One that wants a pause has its session closed the first time it is asked, so that the
/// question is part of a snapshot and is asked again.
async fn answer_approvals(runtime: Runtime, mut asked: mpsc::UnboundedReceiver<(StreamId, Pending)>) {
    let mut paused = HashSet::new();
    while let Some((session, pending)) = asked.recv().await {
        let Ok(handle) = runtime.resume(&session) else { continue };
        let answer = match wanted_answer(&pending.call.arguments) {
            Some("pause") if paused.insert((session, pending.approval)) => {
                let _closed = handle.close().await;
                continue;
            }
            Some("edit") => Answer::Edit { arguments: Content::new(json!({ "edited": true })) },
            Some("deny") => Answer::Deny { reason: "rather not".to_owned() },
            _ => Answer::Approve { scope: ApprovalScope::Once },
        };
        // Too late if the turn has gone on without it, or the log can no longer be written.
        let _late = handle.approve(pending.approval, answer).await;
    }
}
