//! Listening on a port of the loopback. Which ports a program may bind is settled when it is started, so nobody is asked: what is not
//! granted is refused with the command that grants it, and outside a conversation the user is asked for it.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::ListenArguments;
use holdfast_contract::manifest::{Grants, ListenPort};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use serde_json::json;

use super::consent::{UngrantedUse, can_last};
use crate::host::Caller;
use crate::runtime::Inner;

impl Inner {
    /// Whether a port may be listened on.
    pub(in crate::host) fn network_listen(
        self: &Arc<Self>,
        caller: Caller,
        asked: ListenArguments,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move { inner.may_listen(&caller, asked.port).await.map(|()| Content::default()) })
    }

    async fn may_listen(&self, caller: &Caller, number: u16) -> Result<(), Fault> {
        let id = &caller.extension.id;
        let bundle = self.activation(caller.extension.digest)?;
        if bundle.grants.listen.iter().any(|granted| granted.number() == number) {
            return Ok(());
        }
        let refused = |why: &str| {
            Fault::new(Code::ListenDenied, format!("`{id}` may not listen on 127.0.0.1:{number}: {why}"))
        };
        let port = ListenPort::try_from(number).map_err(|why| refused(&why))?;
        if !bundle.can_listen() {
            return Err(refused("only programs and Python files listen on ports"));
        }
        if self.policy_for(None).is_ok_and(|policy| !policy.may_listen()) {
            return Err(refused("under `safe` nothing listens"));
        }
        let wanted = Grants { listen: vec![port], ..Grants::default() };
        if !can_last(&bundle, &wanted) {
            let why = format!("its manifest does not ask for it: `grants: {}` would", json!(wanted));
            return Err(refused(&why));
        }
        let (option, content) = (format!("--listen {port}"), bundle.content());
        if caller.user.is_none() && self.answers.asks_later(&(content, option.clone())) {
            let action = format!("listen on {}", port.address());
            self.ask_for_grant(id, content, UngrantedUse { wanted, action, option }).await;
        }
        let help = format!("`holdfast ext grant {id} --listen {port}` grants it");
        Err(refused(&help))
    }
}
