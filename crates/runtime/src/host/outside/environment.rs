//! The capability `environment`: variables of the host, each granted by its name.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code, Fault};
use holdfast_policy::GrantedAccess;

use super::network::denied;
use crate::host::Caller;
use crate::runtime::Inner;

impl Inner {
    /// A granted variable; null where it is not set. A value that is a secret is refused: what is recorded of it would differ.
    pub(in crate::host) fn environment_get(
        self: &Arc<Self>,
        caller: &Caller,
        name: &str,
    ) -> Result<Content, Fault> {
        let bundle = self.activation(caller.extension.digest)?;
        if !GrantedAccess::of(&bundle.grants).environment(name) {
            let wanted = Grants { environment: vec![name.to_owned()], ..Grants::default() };
            let help = self.how_to_grant(&caller.extension, &wanted, &format!("--environment {name}"));
            return Err(denied(format!("the variable `{name}` is not granted: {help}")));
        }
        let Some(value) = self.home.variable(name) else { return Ok(Content::default()) };
        let Ok(value) = value.into_string() else {
            return Err(Fault::new(Code::ToolFailed, format!("the variable `{name}` is not UTF-8")));
        };
        if self.home.redact_text(value.clone()) != value {
            let what = format!("the variable `{name}` has a secret in it: read it with `secret.get`");
            return Err(denied(what));
        }
        Ok(Content::text(value))
    }
}
