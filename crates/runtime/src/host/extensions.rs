//! The capability `extensions`: methods of the extensions that one depends on.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::ApiCallArguments;
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Call, Later, Reply};

use super::{Caller, SystemHost, failed, services};
use crate::calls::{start_call, wait_timeout};
use crate::runtime::Inner;

impl Inner {
    /// Refuses a call to an extension that the caller neither declares as a dependency nor is granted.
    pub(crate) fn must_depend(&self, extension: &ExtensionRef, other: &ExtensionId) -> Result<(), Fault> {
        if self.extensions.may_call(extension, other) {
            return Ok(());
        }
        let message = format!("`{}` does not depend on `{other}`", extension.id);
        let help = format!("List `{other}` under `depends_on` in its manifest.");
        Err(Fault::new(Code::ExtensionDependency, format!("{message}. {help}")))
    }

    /// Calls a method of the generation of another extension that is active now, so that a reload does not break its callers.
    pub(super) fn api_call(
        self: &Arc<Self>,
        caller: Caller,
        arguments: ApiCallArguments,
        timeout: Millis,
    ) -> Later<Result<Content, Fault>> {
        let ApiCallArguments { extension, method, arguments } = arguments;
        if let Err(fault) = self.must_depend(&caller.extension, &extension) {
            return failed(fault);
        }
        if method.starts_with(services::RESERVED) {
            let message =
                format!("only the host calls `{method}`: make the host call `service.get` or `service.call`");
            return failed(Fault::new(Code::ToolDenied, message));
        }
        let (inner, arguments) = (self.clone(), Content::new(arguments));
        let is_starting = caller.session.is_none();
        Box::pin(async move {
            if is_starting {
                // The dependency may be starting at the same time.
                let inactive = || Fault::new(Code::ExtensionUnknown, format!("`{extension}` is not active"));
                inner.soon(|inner| inner.extensions.active(&extension).ok_or_else(inactive)).await?;
            }
            let (serving, _guard) = inner.extensions.enter(&extension, timeout).await?;
            let instance = inner.extensions.instance(&serving)?;
            let host = Arc::new(SystemHost::new(&inner, serving, None));
            let made = start_call(&instance, Call::Api { method: method.clone(), arguments }, host);
            let reply = wait_timeout(made, timeout, Code::ExtensionFault, inner.clock.clone()).await?;
            content_of(reply, &extension, &method)
        })
    }
}

/// The content of an extension's answer to a function that is called by name.
pub(crate) fn content_of(reply: Reply, id: &ExtensionId, function: &str) -> Result<Content, Fault> {
    match reply {
        Reply::Content(content) => Ok(content),
        Reply::Done => Ok(Content::default()),
        other => {
            let message = format!("`{id}` answered `{function}` with {other:?}");
            Err(Fault::new(Code::ExtensionFault, message))
        }
    }
}
