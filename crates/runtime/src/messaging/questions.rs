//! Approvals and extensions' questions that wait for a person, and how they reach the owner of the home.
//!
//! A question is shown where its session is open. One that a turn on a channel raises goes to that user if the policy names them as
//! an owner, and one that nobody would see goes to the place where the owner was last active. An owner on a channel answers with a code.
//! The code follows from the question, the channel and the user with a key of the home, so it is the same after a restart, and no event,
//! frame or prompt has it: the channel is given it with the message. Who may answer is decided by the policy and never by a code.
//!
//! What waits is in the log; the table here only says what this process has shown. `words.rs` has the texts.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::channel_question::{AnswerChoice, ChannelQuestion};
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId, ToolName};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::ChannelFeatures;
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::{Answer, GateReason, UiQuestion};
use holdfast_policy::{OwnerIdentity, Unattended};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::places::ActivePlace;
use super::topics::{OutgoingMessage, QuestionRef, TerminalNotice};
use crate::runtime::{Inner, Runtime};

/// What owners type on a channel to see what waits.
const LIST_COMMAND: &str = "/questions";

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingQuestion {
    /// The session that asks.
    pub session: StreamId,
    /// Its `approval.requested` or `ui.requested` frame.
    pub request: Seq,
    /// Where the session comes from.
    pub origin: Origin,
    /// Since when.
    pub since: Millis,
    /// What is asked.
    pub subject: QuestionSubject,
}

impl WaitingQuestion {
    /// Its id: `chat.ada/14`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.session, self.request)
    }

    /// What is asked, for somebody who sees nothing else of the session.
    pub fn text(&self) -> String {
        words::asked(self)
    }

    fn key(&self) -> QuestionKey {
        (self.session.clone(), self.request)
    }
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionSubject {
    /// A call wants to run.
    Approval {
        /// The tool.
        tool: ToolName,
        /// The extension whose tool it is.
        extension: Option<ExtensionId>,
        /// The arguments as they stand.
        arguments: Content,
        /// Who asks, and why.
        reasons: Vec<GateReason>,
    },
    /// An extension asks.
    Extension {
        /// Which one.
        extension: ExtensionId,
        /// What.
        question: UiQuestion,
    },
}

/// A person's answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum QuestionReply {
    Approval(Answer),
    Extension(Content),
}

/// A session and the frame that asks.
type QuestionKey = (StreamId, Seq);

/// The questions of this process.
#[derive(Default)]
pub(crate) struct Questions {
    open: Mutex<BTreeMap<QuestionKey, OpenQuestion>>,
    /// Those that somebody is about to answer, and how many are.
    expected: Mutex<BTreeMap<QuestionKey, usize>>,
    /// The key of the codes where the home has none.
    key: OnceLock<String>,
}

struct OpenQuestion {
    waiting: WaitingQuestion,
    /// The owner whom it was sent to.
    sent_to: Option<OwnerIdentity>,
}

/// How a question came to its end.
pub(crate) enum QuestionEnd {
    /// It was answered, by a surface of this name, or by the host because nobody did.
    Answered {
        /// By whom.
        by: FrameSource,
        /// What.
        words: String,
    },
    /// Its turn ended without an answer.
    Over,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, BTreeMap<QuestionKey, OpenQuestion>> {
        self.open.lock()
    }

    /// Notes a question that is about to be shown.
    pub(crate) fn add(&self, waiting: WaitingQuestion) {
        let question = OpenQuestion { waiting, sent_to: None };
        self.open().insert(question.waiting.key(), question);
    }

    /// The sessions' questions without those of one session, which is no longer open here.
    pub(crate) fn forget(&self, session: &StreamId) {
        self.open().retain(|(asking, _), _| asking != session);
    }

    fn get(&self, key: &QuestionKey) -> Option<WaitingQuestion> {
        self.open().get(key).map(|question| question.waiting.clone())
    }

    /// Takes back a question of which nobody needs to be told.
    pub(crate) fn withdraw(&self, session: &StreamId, request: Seq) {
        self.open().remove(&(session.clone(), request));
    }

    fn sent(&self, key: &QuestionKey, owner: &OwnerIdentity) {
        if let Some(question) = self.open().get_mut(key) {
            question.sent_to = Some(owner.clone());
        }
    }

    fn all(&self) -> Vec<WaitingQuestion> {
        self.open().values().map(|question| question.waiting.clone()).collect()
    }

    fn is_expected(&self, key: &QuestionKey) -> bool {
        self.expected.lock().contains_key(key)
    }
}

/// While this is there, a question of a session that is resumed waits for the answer that is on its way, and the policy does not
/// answer in place of a person.
pub struct ExpectedAnswer {
    inner: Arc<Inner>,
    key: QuestionKey,
}

impl Drop for ExpectedAnswer {
    fn drop(&mut self) {
        let mut expected = self.inner.messaging.questions.expected.lock();
        let left = expected.get_mut(&self.key).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            expected.remove(&self.key);
        }
    }
}

impl Runtime {
    /// The questions that wait for a person, the oldest first. Sessions that are not open in this process and wait for an approval are
    /// resumed: they ask again.
    pub async fn questions(&self) -> Result<Vec<WaitingQuestion>, Problem> {
        self.inner().waiting_questions().await
    }

    /// Somebody is about to answer a question.
    pub fn expect_answer(&self, session: &StreamId, request: Seq) -> ExpectedAnswer {
        self.inner().expect_answer((session.clone(), request))
    }
}

impl Inner {
    fn expect_answer(self: &Arc<Self>, key: QuestionKey) -> ExpectedAnswer {
        *self.messaging.questions.expected.lock().entry(key.clone()).or_default() += 1;
        ExpectedAnswer { inner: self.clone(), key }
    }

    /// Whether a question to the user may be asked: a user is present, was just there on a channel, is about to answer, or the policy
    /// lets it wait for one.
    pub(crate) fn waits_for_a_person(&self, session: &StreamId, request: Seq) -> bool {
        if self.surface.attended(session) || self.messaging.questions.is_expected(&(session.clone(), request))
        {
            return true;
        }
        let Ok(policy) = self.policy_in_force() else { return false };
        let waits = policy.unattended() == Unattended::Wait;
        waits || self.session_origin(session).is_ok_and(|origin| policy.owner_at(&origin).is_some())
    }

    /// Where a session comes from.
    pub(crate) fn session_origin(&self, session: &StreamId) -> Result<Origin, Problem> {
        self.session_start(session).map(|started| started.origin)
    }

    /// Puts a question to the owner of the home, and waits while it may be answered. Says whether the time for that is over; a question
    /// that is shown where its session is open has all the time.
    pub(crate) async fn ask_owner(self: &Arc<Self>, session: &StreamId, request: Seq) -> bool {
        let Some(question) = self.messaging.questions.get(&(session.clone(), request)) else { return false };
        self.messaging.notify_changed();
        let Ok(policy) = self.policy_in_force() else { return false };
        let asker = policy.owner_at(&question.origin).cloned();
        if asker.is_none()
            && (self.surface.attended(session) || self.messaging.questions.is_expected(&question.key()))
        {
            return false;
        }
        // One that cannot be sent is still listed.
        let _sent = match asker.or_else(|| self.active_owner()) {
            Some(owner) => self.send_question(&question, &owner).await,
            None => self.tell_of_question(&question).await,
        };
        loop {
            let late = self.asked_at(&question).plus(policy.answer_within());
            let left = late.since(self.clock.now());
            if left > Millis(0) {
                self.clock.sleep(left).await;
            } else if self.surface.attended(session) {
                self.clock.sleep(policy.answer_within()).await;
            } else {
                return true;
            }
        }
    }

    /// Notes a question that no session waits for, and sends it to the owner who was last active on a channel. False if there is none.
    pub(crate) async fn ask_owner_later(&self, question: WaitingQuestion) -> bool {
        self.messaging.questions.add(question.clone());
        self.messaging.notify_changed();
        match self.active_owner() {
            Some(owner) => self.send_question(&question, &owner).await.is_ok(),
            None => false,
        }
    }

    /// When a question was first asked: the time of its frame, which a restart does not change.
    fn asked_at(&self, question: &WaitingQuestion) -> Millis {
        if !question.session.is_session() {
            return question.since;
        }
        let frames = self.store.frames(&question.session, question.request..=question.request);
        let frame = frames.ok().and_then(|mut frames| frames.pop());
        frame.map_or(question.since, |frame| frame.envelope.at)
    }

    /// The owner who was last active on a channel, unless they were in the terminal since.
    fn active_owner(&self) -> Option<OwnerIdentity> {
        let policy = self.policy_in_force().ok()?;
        match self.last_place()? {
            ActivePlace::Channel { channel, user } => {
                policy.owner_at(&Origin::channel(&channel, &user)).cloned()
            }
            ActivePlace::Terminal => None,
        }
    }

    async fn send_question(&self, question: &WaitingQuestion, owner: &OwnerIdentity) -> Result<(), Fault> {
        let WaitingQuestion { session, request, .. } = question;
        self.messaging.questions.sent(&question.key(), owner);
        let text = OutgoingMessage::text(words::asked(question), Some(owner.user.clone()));
        let asks = Some(QuestionRef { session: session.clone(), request: *request });
        let out = OutgoingMessage { question: asks, ..text };
        let once = format!("question/{}/{}/{}", question.id(), owner.channel, owner.user);
        self.put_out(&owner.channel, out, &question.id(), once).await
    }

    /// Tells the chats that are open, or the next one, that something waits.
    async fn tell_of_question(&self, question: &WaitingQuestion) -> Result<(), Fault> {
        let text =
            format!("{}\n`holdfast questions answer {}` answers it.", words::asked(question), question.id());
        let notice = TerminalNotice { chats_only: true, ..TerminalNotice::text(text, "agent".into()) };
        if self.tell_chats(None, &notice) {
            return Ok(());
        }
        self.wait_for_user(notice, &question.id(), format!("question/{}/terminal", question.id())).await
    }

    /// Hands a question to its channel, with the code to answer it. One that does not wait any more is not sent.
    pub(super) async fn deliver_question(
        self: &Arc<Self>,
        channel: &ExtensionId,
        out: OutgoingMessage,
        asks: QuestionRef,
        marked: Value,
    ) -> Result<(), Fault> {
        let key = (asks.session, asks.request);
        // After a restart the session may not be up yet.
        let gone = || Fault::new(Code::TurnUnexpected, "the question does not wait any more");
        let waiting = self.soon(|inner| inner.messaging.questions.get(&key).ok_or_else(gone)).await;
        let user = out.user_id.unwrap_or_default();
        let policy = self.policy_in_force().map_err(|problem| problem.to_fault())?;
        let owner = policy.owner_at(&Origin::channel(channel, &user)).cloned();
        let (Ok(question), Some(owner)) = (waiting, owner) else { return Ok(()) };
        let entry = self.soon(|inner| inner.channel(channel)).await?;
        let code = self.code_of(&question, &owner);
        let choices = words::choices(&question, policy.remembers_answers());
        let how = words::how(&question, &choices, &code);
        if !ChannelFeatures::of(&entry.payload).questions || choices.is_empty() {
            let text = format!("{}\n{how}", out.text);
            let arguments = json!({ "user": user, "text": text.trim_end(), "delivery": marked });
            return self.call_role(channel, Role::Channel, "send-to-user", arguments.into()).await.map(drop);
        }
        let choice =
            |(label, word): (String, String)| AnswerChoice { label, answer: format!("{word} {code}") };
        let choices = choices.into_iter().map(choice).collect();
        let question = ChannelQuestion { user, text: out.text, choices };
        let mut arguments = Content::of(&question).value().clone();
        arguments["delivery"] = marked;
        self.call_role(channel, Role::Channel, "send-question", arguments.into()).await.map(drop)
    }

    /// The code with which this owner answers this question.
    fn code_of(&self, question: &WaitingQuestion, owner: &OwnerIdentity) -> String {
        let subject = json!([question.session, question.request, owner.channel, owner.user]);
        let code = |attempt: u32| {
            let digest = self.keyed_digest(&format!("question/{attempt}"), &Content::new(subject.clone()));
            words::code_of(digest.as_bytes())
        };
        // Most digests give a code.
        (0..1_000).find_map(code).unwrap_or_default()
    }

    fn keyed_digest(&self, name: &str, value: &Content) -> Digest {
        match self.home.secrets() {
            Some(secrets) => secrets.digest(name, value),
            None => {
                let key = self.messaging.questions.key.get_or_init(|| self.entropy.draw_hex(32));
                Digest::of(format!("{key}/{name}/{}", value.json()).as_bytes())
            }
        }
    }

    /// What a user of a channel says about questions: a list of them, or an answer to one. Gives the reply; none if it is something
    /// else, or not an owner's.
    pub(super) async fn answered_on_channel(
        self: &Arc<Self>,
        channel: &ExtensionId,
        user: &str,
        text: &str,
    ) -> Result<Option<String>, Problem> {
        let policy = self.policy_in_force()?;
        let Some(owner) = policy.owner_at(&Origin::channel(channel, user)).cloned() else { return Ok(None) };
        if is_list_command(text) {
            return self.listed_for(&owner).await.map(Some);
        }
        let Some((answer, code)) = words::split(text) else { return Ok(None) };
        let Some(question) = self.question_of(&owner, answer, &code).await? else {
            return Ok(words::is_plain_answer(answer).then(|| no_longer(&code)));
        };
        let remembers = policy.remembers_answers();
        let Some(reply) = words::reply(&question, answer, remembers) else {
            let how = words::how(&question, &words::choices(&question, remembers), &code);
            return Ok(Some(format!("That does not answer this question. {how}").trim_end().to_owned()));
        };
        let taken = taken(&question, &reply);
        match self.give_answer(&question, reply, &format!("{channel}/{user}")).await {
            Ok(()) => Ok(Some(taken)),
            Err(problem) if problem.code == Code::TurnUnexpected => Ok(Some(no_longer(&code))),
            Err(problem) => Err(problem),
        }
    }

    /// The question that an owner answers with this code.
    async fn question_of(
        self: &Arc<Self>,
        owner: &OwnerIdentity,
        answer: &str,
        code: &str,
    ) -> Result<Option<WaitingQuestion>, Problem> {
        let find = |inner: &Self| {
            let found = inner.messaging.questions.all().into_iter();
            let mut found = found.filter(|question| inner.code_of(question, owner) == code);
            found.next().ok_or_else(|| Fault::new(Code::TurnUnexpected, "no question has this code"))
        };
        if let Ok(found) = find(self) {
            return Ok(Some(found));
        }
        self.resume_asking().await?;
        // After a restart the session may not be up yet. What may be no answer at all does not wait for that.
        let found = if words::is_plain_answer(answer) { self.soon(find).await } else { find(self) };
        Ok(found.ok())
    }

    async fn listed_for(self: &Arc<Self>, owner: &OwnerIdentity) -> Result<String, Problem> {
        let remembers = self.policy_in_force()?.remembers_answers();
        let line = |question: &WaitingQuestion| {
            let choices = words::choices(question, remembers);
            let how = words::how(question, &choices, &self.code_of(question, owner));
            format!("{}\n{how}", words::asked(question)).trim_end().to_owned()
        };
        let waiting = self.waiting_questions().await?;
        if waiting.is_empty() {
            Ok("No question waits for an answer.".to_owned())
        } else {
            Ok(waiting.iter().map(line).collect::<Vec<_>>().join("\n\n"))
        }
    }

    async fn give_answer(
        self: &Arc<Self>,
        question: &WaitingQuestion,
        reply: QuestionReply,
        by: &str,
    ) -> Result<(), Problem> {
        if let QuestionReply::Extension(answer) = &reply
            && self.answer_for_grant(&question.session, question.request, Some(answer), by).await?
        {
            return Ok(());
        }
        let _expected = self.expect_answer(question.key());
        let handle = self.resume(&question.session)?;
        match reply {
            QuestionReply::Approval(answer) => handle.approve_as(by, question.request, answer).await,
            QuestionReply::Extension(answer) => handle.answer_as(by, question.request, Some(answer)).await,
        }
    }

    async fn waiting_questions(self: &Arc<Self>) -> Result<Vec<WaitingQuestion>, Problem> {
        self.resume_asking().await?;
        let mut waiting = self.messaging.questions.all();
        for question in &mut waiting {
            question.since = self.asked_at(question);
        }
        waiting.sort_by(|a, b| a.since.cmp(&b.since).then_with(|| a.key().cmp(&b.key())));
        Ok(waiting)
    }

    /// Resumes the sessions that wait for an approval and are not open in this process, and waits until they ask again. A question of an
    /// extension does not wait like that: the call that asked it ended with its process.
    async fn resume_asking(self: &Arc<Self>) -> Result<(), Problem> {
        self.store.flush()?;
        for info in self.store.streams()?.into_iter().filter(|info| info.id.is_session()) {
            if self.sessions.get(&info.id).is_some() {
                continue;
            }
            let asked = self.recorded_approvals(&info.id)?;
            let _expected: Vec<ExpectedAnswer> =
                asked.iter().map(|request| self.expect_answer((info.id.clone(), *request))).collect();
            for request in asked {
                // One that cannot be resumed is reported where the session is opened.
                let Ok(handle) = self.resume(&info.id) else { break };
                drop(handle.approval(request).await);
            }
        }
        Ok(())
    }

    /// The approvals that the log of a session waits for.
    fn recorded_approvals(&self, session: &StreamId) -> Result<BTreeSet<Seq>, Problem> {
        let last = |kind| {
            let frame = self.store.last_of_kind(session, kind)?;
            Ok::<_, Problem>(frame.map(|frame| frame.envelope.seq))
        };
        let mut asked = BTreeSet::new();
        let (requested, begun) = (last(FrameKind::ApprovalRequested)?, last(FrameKind::InputReceived)?);
        let ended = last(FrameKind::TurnEnded)?.max(last(FrameKind::SessionEnded)?);
        let (Some(requested), Some(begun)) = (requested, begun) else { return Ok(asked) };
        if ended.is_some_and(|ended| ended > requested) || requested < begun {
            return Ok(asked);
        }
        // The session of an agent goes on with the one that called it.
        if self.session_start(session).map_or(true, |started| started.parent.is_some()) {
            return Ok(asked);
        }
        self.store.for_each_frame(session, begun, |frame| {
            match self.store.body(&frame) {
                Ok(Body::ApprovalRequested(_)) => drop(asked.insert(frame.envelope.seq)),
                Ok(Body::ApprovalAnswered(answered)) => drop(asked.remove(&answered.approval)),
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(asked)
    }

    /// A question has come to its end: the owner whom it was sent to is told, unless it was their answer.
    pub(crate) fn question_ended(self: &Arc<Self>, session: &StreamId, request: Seq, end: QuestionEnd) {
        let key = (session.clone(), request);
        let Some(question) = self.messaging.questions.open().remove(&key) else { return };
        let Some(owner) = question.sent_to else { return };
        let name = format!("{}/{}", owner.channel, owner.user);
        let told = match end {
            QuestionEnd::Answered { by: FrameSource::Surface(by), .. } if *by == *name => return,
            QuestionEnd::Answered { by: FrameSource::Surface(_), words } => {
                format!("This was answered elsewhere: {words}.")
            }
            QuestionEnd::Answered { words, .. } => format!("This was not answered in time: {words}."),
            QuestionEnd::Over => "This needs no answer any more: its turn has ended.".to_owned(),
        };
        let headline = words::asked(&question.waiting).lines().next().unwrap_or_default().to_owned();
        let out = OutgoingMessage::text(format!("{headline}\n{told}"), Some(owner.user.clone()));
        let (inner, id) = (self.clone(), question.waiting.id());
        tokio::spawn(async move {
            let once = format!("question/{id}/{name}/ended");
            // A channel that cannot be told learns it when its user answers.
            let _told = inner.put_out(&owner.channel, out, &id, once).await;
        });
    }

    /// The turn of a session has ended: these are the questions that still wait.
    pub(crate) fn turn_ended_for(self: &Arc<Self>, session: &StreamId, waits: impl Fn(Seq) -> bool) {
        let over: Vec<Seq> = {
            let open = self.messaging.questions.open();
            let of = open.keys().filter(|(asking, request)| asking == session && !waits(*request));
            of.map(|(_, request)| *request).collect()
        };
        for request in over {
            self.question_ended(session, request, QuestionEnd::Over);
        }
    }
}

/// Whether a message may be about a question. It is not kept waiting for the turn that asks.
pub(super) fn is_answer(text: &str) -> bool {
    is_list_command(text) || words::split(text).is_some()
}

fn is_list_command(text: &str) -> bool {
    let text = text.trim();
    // Some channels add whom a command is for.
    text.split_once('@').map_or(text, |(command, _)| command) == LIST_COMMAND
}

fn no_longer(code: &str) -> String {
    format!(
        "No question waits for the code {code}: it was answered, or its time is over. `{LIST_COMMAND}` lists what waits."
    )
}

/// What the owner is told of an answer that was taken.
fn taken(question: &WaitingQuestion, reply: &QuestionReply) -> String {
    match (&question.subject, reply) {
        (QuestionSubject::Approval { tool, .. }, QuestionReply::Approval(Answer::Deny { .. })) => {
            format!("`{tool}` was denied.")
        }
        (QuestionSubject::Approval { tool, .. }, _) => format!("`{tool}` was approved."),
        (QuestionSubject::Extension { extension, .. }, _) => format!("`{extension}` has your answer."),
    }
}

/// What an answer to an approval says, for those who did not give it.
pub(crate) fn told_answer(answer: &Answer) -> String {
    match answer {
        Answer::Approve { .. } => "approved".to_owned(),
        Answer::Edit { .. } => "approved with other arguments".to_owned(),
        Answer::Deny { .. } => "denied".to_owned(),
    }
}
