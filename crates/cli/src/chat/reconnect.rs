//! A chat whose owner has ended goes on with another one: it opens its session again where it was, and says again what was not
//! recorded. A turn that was interrupted is taken up by the new owner as after any crash.

use std::future::Future;
use std::pin::Pin;

use holdfast_contract::body::FrameKind;
use holdfast_contract::problem::Problem;
use holdfast_rpc::{SessionFrames, SessionMethod, SessionOpen, SessionOpened, SessionParams};

use super::{Chat, Finished, INTRODUCED_FRAMES, INTRODUCED_KINDS, LiveText, TurnState, has_running_turn};
use crate::client::link::Link;

/// Gives a link to an owner, which is started if there is none.
pub(crate) type Relink<'a> = dyn Fn() -> Pin<Box<dyn Future<Output = Result<Link, Problem>> + 'a>> + 'a;

impl Chat {
    /// Goes on with another owner; where there is none to be had, the chat ends.
    pub(super) async fn reconnect(&mut self, link: &mut Link, relink: &Relink<'_>) {
        let unsaid = self.unsaid.take();
        let went_on = async {
            *link = relink().await?;
            self.client = link.client.clone();
            self.welcome = link.welcome.clone();
            self.take_up().await
        };
        match went_on.await {
            Ok(recorded) => {
                self.note("the process that owned the home has ended; this chat goes on with another one");
                if let Some((text, attachments)) = unsaid.filter(|_| !recorded) {
                    self.attached = attachments;
                    self.say(text);
                }
            }
            Err(problem) => {
                let gone = self.gone();
                self.left = Some(Err(Problem { more: vec![problem], ..gone }));
            }
        }
    }

    /// Opens the session where this chat was. Says whether something was said since then.
    async fn take_up(&mut self) -> Result<bool, Problem> {
        let session = Some(self.session.clone());
        let (channel, answers, frames_from) = ("chat".to_owned(), self.attended, Some(self.next));
        let open =
            SessionOpen { session, channel, answers, notices: true, frames_from, ..SessionOpen::default() };
        let opened: SessionOpened = self.client.ask(&SessionMethod::Open(open)).await?;
        (self.turn, self.live) = (TurnState::default(), LiveText::default());
        self.withdraw();
        self.waiting.clear();
        let (session, kinds) = (self.session.clone(), vec![FrameKind::InputReceived]);
        let (from, to) = (self.next, Some(opened.next));
        let since = SessionFrames { session, from, to, kinds, limit: None };
        let recorded = !self.client.frames(since).await?.is_empty();
        self.shown_from = self.shown_from.max(opened.next);
        let tail = self.tail(INTRODUCED_FRAMES, INTRODUCED_KINDS).await?;
        self.turn.running = has_running_turn(&tail);
        if self.turn.running {
            self.turn.asked = true;
            let wait = SessionMethod::Wait(SessionParams { session: self.session.clone() });
            self.ask_later(wait, Finished::Asked);
        }
        Ok(recorded)
    }
}
