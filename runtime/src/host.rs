//! What an extension may ask in the middle of a call within a session. The session's actor answers and records.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::{HookId, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Ask, Host, Later};
use tokio::sync::{mpsc, oneshot};

use crate::driver::Note;

/// The host as one call sees it.
pub(crate) struct SessionHost {
    pub inbox: mpsc::UnboundedSender<Note>,
    pub extension: Arc<ExtensionRef>,
    pub under: Seq,
    pub hook: Option<HookId>,
}

impl Host for SessionHost {
    fn ask(&self, ask: Ask) -> Later<Result<Content, Fault>> {
        let (reply, answer) = oneshot::channel();
        let (extension, hook) = (self.extension.clone(), self.hook.clone());
        let note = Note::Ask { extension, under: self.under, hook, ask, reply };
        let sent = self.inbox.send(note);
        Box::pin(async move {
            let gone = || Fault::new(Code::SessionEnded, "the session is no longer there");
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }
}

/// A host that has nothing to give: for calls outside any session.
pub(crate) struct NoHost;

impl Host for NoHost {
    fn ask(&self, _: Ask) -> Later<Result<Content, Fault>> {
        let fault = Fault::new(Code::ExtensionFault, "nothing can be asked of the host outside a session");
        Box::pin(std::future::ready(Err(fault)))
    }
}
