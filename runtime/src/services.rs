//! What extensions may ask for that lies outside their call: other extensions, events, the user, the agent, secrets. Each ask has a
//! name, and this is where it is answered. Ask and answer are recorded where the call is: in its session, or in the system stream.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Call, Later, Reply};
use serde::Deserialize;

use crate::calling::{make, within};
use crate::host::SystemHost;
use crate::living::ASKS;
use crate::runtime::{Inner, Wanted};

/// How long an ask may take that names no time of its own.
const ASK_TIMEOUT: Millis = Millis(60_000);

/// Who asks.
pub(crate) struct Asker {
    /// The extension.
    pub extension: Arc<ExtensionRef>,
    /// The session that it is called in, if it is called in one.
    pub session: Option<StreamId>,
    /// The frame that the call came of.
    pub under: Option<Seq>,
}

/// `api.call`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiCall {
    extension: ExtensionId,
    method: String,
    #[serde(default)]
    arguments: Content,
}

impl Inner {
    /// Answers what an extension asks for by name.
    pub(crate) fn serve(
        self: &Arc<Self>,
        asker: Asker,
        name: &str,
        arguments: &Content,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        if ASKS.contains(&name) {
            return self.serve_living(asker, name, arguments, timeout);
        }
        let timeout = timeout.unwrap_or(ASK_TIMEOUT);
        match name {
            "api.call" => match read(name, arguments) {
                Ok(call) => self.api_call(asker, call, timeout),
                Err(fault) => failed(fault),
            },
            "system.restart" | "system.shutdown" => {
                let reason = format!("`{}` asked for it", asker.extension.id);
                self.wanted.send_replace(match name {
                    "system.restart" => Wanted::Restart(reason),
                    _ => Wanted::Stop(reason),
                });
                Box::pin(std::future::ready(Ok(Content::default())))
            }
            _ => {
                let message = format!("the host has nothing called `{name}` for `{}`", asker.extension.id);
                failed(Fault::new(Code::ExtensionFault, message))
            }
        }
    }

    /// Calls a method of another extension: of whichever generation serves now, so that a reload leaves nobody behind.
    fn api_call(
        self: &Arc<Self>,
        asker: Asker,
        call: ApiCall,
        timeout: Millis,
    ) -> Later<Result<Content, Fault>> {
        let ApiCall { extension, method, arguments } = call;
        if !self.depends_on(&asker.extension, &extension) {
            let message = format!("`{}` does not depend on `{extension}`", asker.extension.id);
            let help = format!("List `{extension}` under `depends_on` in its manifest.");
            return failed(Fault::new(Code::ExtensionDependency, format!("{message}. {help}")));
        }
        let (inner, what) = (self.clone(), format!("`{extension}` answered `{method}` with"));
        Box::pin(async move {
            let (serving, _visit) = inner.visit(&extension, timeout).await?;
            let instance = inner.instance(&serving)?;
            let host = Arc::new(SystemHost::new(&inner, serving, None));
            let made = make(&instance, Call::Api { method, arguments }, host);
            match within(made, timeout, Code::ExtensionFault, inner.clock.clone()).await? {
                Reply::Content(content) => Ok(content),
                Reply::Done => Ok(Content::default()),
                other => Err(Fault::new(Code::ExtensionFault, format!("{what} {other:?}"))),
            }
        })
    }
}

/// The arguments of an ask.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(name: &str, arguments: &Content) -> Result<T, Fault> {
    let value = arguments.value().cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| {
        Fault::new(
            Code::ExtensionFault,
            format!("`{name}` was asked for in a way that makes no sense: {error}"),
        )
    })
}

pub(crate) fn failed<T: Send + 'static>(fault: Fault) -> Later<Result<T, Fault>> {
    Box::pin(std::future::ready(Err(fault)))
}
