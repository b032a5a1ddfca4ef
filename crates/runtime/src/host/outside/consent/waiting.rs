//! Questions about what an extension used without a grant outside a conversation, where nobody waits for the answer. The use was refused;
//! the question waits with those of sessions until the owner answers it. `always` becomes a grant, and `no` holds while the program runs.

use std::collections::BTreeMap;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{ExtensionId, Seq, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::wire::Bundle;
use holdfast_policy::{Grant, Tie};
use parking_lot::Mutex;

use super::{ALWAYS, Key, NO, UngrantedUse};
use crate::messaging::{QuestionEnd, QuestionSubject, WaitingQuestion};
use crate::runtime::{Inner, Runtime};

/// The grants that questions are about, by the numbers of the questions.
#[derive(Default)]
pub(super) struct WaitingGrants(Mutex<BTreeMap<Seq, WaitingGrant>>);

#[derive(Clone)]
struct WaitingGrant {
    key: Key,
    grant: Grant,
}

/// The number of a question: the same after a restart, and another one for another use, so that the code to answer it fits no other.
fn number(extension: &ExtensionId, (content, option): &Key) -> Seq {
    let digest = Digest::of(format!("{extension}/{content}/{option}").as_bytes());
    Seq(digest.as_bytes().iter().take(6).fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Whether an activation has everything that a grant gives.
fn has_all(bundle: &Bundle, grant: &Grant) -> bool {
    let (has, gives) = (&bundle.grants, &grant.give);
    gives.network.iter().all(|host| has.network.contains(host))
        && gives.secrets.iter().all(|name| has.secrets.contains(name))
}

impl Runtime {
    /// Answers a question that no session waits for. False if a session does.
    pub async fn answer_for_grant(
        &self,
        session: &StreamId,
        request: Seq,
        answer: Option<&Content>,
    ) -> Result<bool, Problem> {
        self.inner().answer_for_grant(session, request, answer, "ui").await
    }
}

impl Inner {
    /// Asks the owner about a use that was refused, without waiting for the answer.
    pub(in crate::host) async fn ask_for_grant(
        &self,
        extension: &ExtensionId,
        content: Digest,
        UngrantedUse { wanted, action, option }: UngrantedUse,
    ) {
        let key = (content, option.to_ascii_lowercase());
        let request = number(extension, &key);
        let what = format!(
            "`{extension}` wants to {action}, which it was not granted. `holdfast ext grant {extension} {option}` grants it."
        );
        let options = vec![ALWAYS.to_owned(), NO.to_owned()];
        let question = WaitingQuestion {
            session: StreamId::system(),
            request,
            origin: Origin::extension(extension),
            since: self.clock.now(),
            subject: QuestionSubject::Extension {
                extension: extension.clone(),
                question: UiQuestion::Select { prompt: format!("{what} May it?"), options },
            },
        };
        let id = question.id();
        let told_once = format!("consent/{content}/{}", key.1);
        let grant = Grant { extension: extension.clone(), tied_to: Tie::Digest(content), give: wanted };
        self.answers.waiting.0.lock().insert(request, WaitingGrant { key, grant });
        if !self.ask_owner_later(question).await {
            let text = format!("{what} `holdfast questions answer {id}` answers this.");
            self.notify_user(extension.clone(), &text, told_once).await;
        }
    }

    /// Takes the answer to a question that no session waits for. False if a session does.
    pub(crate) async fn answer_for_grant(
        self: &std::sync::Arc<Self>,
        session: &StreamId,
        request: Seq,
        answer: Option<&Content>,
        by: &str,
    ) -> Result<bool, Problem> {
        if session.is_session() {
            return Ok(false);
        }
        let waiting = self.answers.waiting.0.lock().get(&request).cloned();
        let gone = || Problem::new(Code::TurnUnexpected, "this question does not wait any more");
        let WaitingGrant { key, grant } = waiting.ok_or_else(gone)?;
        let words = match answer.and_then(|answer| answer.value().as_str()) {
            Some(ALWAYS) => {
                self.remember_grant(grant).await?;
                ALWAYS
            }
            Some(NO) => {
                self.answers.keep(key, false);
                NO
            }
            // It was dismissed, and waits on.
            _ => return Ok(true),
        };
        self.answers.waiting.0.lock().remove(&request);
        let end = QuestionEnd::Answered { by: FrameSource::Surface(by.into()), words: words.to_owned() };
        self.question_ended(session, request, end);
        Ok(true)
    }

    /// An activation of an extension is in force: what was asked about other content, or is granted now, needs no answer.
    pub(crate) fn grants_follow(&self, extension: &ExtensionId, activation: Digest) {
        let mut waiting = self.answers.waiting.0.lock();
        if waiting.values().all(|waiting| waiting.grant.extension != *extension) {
            return;
        }
        let Ok(bundle) = self.activation(activation) else { return };
        let content = bundle.content();
        waiting.retain(|request, WaitingGrant { key, grant }| {
            let waits = grant.extension != *extension || (key.0 == content && !has_all(&bundle, grant));
            if !waits {
                self.messaging.questions.withdraw(&StreamId::system(), *request);
            }
            waits
        });
    }
}
