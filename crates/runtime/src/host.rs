//! What an extension may ask in the middle of a call within a session. The session's actor answers and records.

use std::sync::{Arc, Weak};

use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{HookId, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Ask, Host, Later};
use tokio::sync::{mpsc, oneshot};

use crate::runtime::Inner;
use crate::services::{Caller, SCHEDULE_WAIT, failed};
use crate::session::SessionCommand;

/// The host as one call sees it.
pub(crate) struct SessionHost {
    pub inbox: mpsc::UnboundedSender<SessionCommand>,
    pub extension: Arc<ExtensionRef>,
    pub under: Seq,
    pub hook: Option<HookId>,
}

impl Host for SessionHost {
    fn ask(&self, ask: Ask) -> Later<Result<Content, Fault>> {
        let (reply, answer) = oneshot::channel();
        let (extension, hook) = (self.extension.clone(), self.hook.clone());
        let note = SessionCommand::Ask { extension, under: self.under, hook, ask, reply };
        let sent = self.inbox.send(note);
        Box::pin(async move {
            let gone = || Fault::new(Code::SessionEnded, "the session is no longer there");
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn progress(&self, text: &str) {
        let (extension, text) = (self.extension.id.clone(), text.to_owned());
        // A session that is gone has nobody who watches.
        let _ = self.inbox.send(SessionCommand::Progress { extension, under: self.under, text });
    }
}

/// The host as a call outside any session sees it: a step of an extension's life, a task, a service, a method for another one.
pub(crate) struct SystemHost {
    inner: Weak<Inner>,
    extension: Arc<ExtensionRef>,
    /// The frame in the system stream that the call came of.
    under: Option<Seq>,
}

impl SystemHost {
    pub(crate) fn new(inner: &Arc<Inner>, extension: Arc<ExtensionRef>, under: Option<Seq>) -> Self {
        Self { inner: Arc::downgrade(inner), extension, under }
    }
}

impl Host for SystemHost {
    fn ask(&self, ask: Ask) -> Later<Result<Content, Fault>> {
        let Some(inner) = self.inner.upgrade() else {
            return failed(Fault::new(Code::ExtensionFault, "the system is no longer there"));
        };
        match ask {
            Ask::Clock => Box::pin(std::future::ready(Ok(Content::of(&inner.clock.now())))),
            Ask::Random { bytes } => {
                Box::pin(std::future::ready(Ok(Content::text(inner.entropy.draw_hex(bytes)))))
            }
            Ask::StateGet { .. } | Ask::StateSet { .. } | Ask::Inject { .. } | Ask::Ui(_) => {
                let message = "a call outside any session has no conversation, no state and no user";
                failed(Fault::new(Code::ExtensionFault, message))
            }
            Ask::Other { name, arguments, timeout } => {
                let (extension, under) = (self.extension.clone(), self.under);
                let asker =
                    Caller { extension: extension.clone(), session: None, under, budget: None, user: None };
                let answer = inner.serve(asker, &name, &arguments, timeout);
                // Like the clock, it brings nothing in but the time, and a loop waits for ever.
                if name == SCHEDULE_WAIT {
                    return answer;
                }
                Box::pin(async move {
                    let answer = answer.await;
                    let body = inner.asked(&extension, None, (name, arguments), &answer);
                    inner.system.tell_of(FrameSource::Extension(extension), under, body);
                    answer
                })
            }
        }
    }
}
