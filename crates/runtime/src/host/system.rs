//! The capability `system`: restarting the process. Stopping it is the user's alone.

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::ShutdownArguments;
use holdfast_contract::problem::{Code, Fault};

use super::Caller;
use crate::runtime::{Inner, ShutdownRequest};

impl Inner {
    pub(super) fn system_restart(
        &self,
        caller: &Caller,
        arguments: Option<ShutdownArguments>,
    ) -> Result<Content, Fault> {
        if self.shutdown.receiver_count() == 0 {
            let message = "no process that could be restarted owns the home: `holdfast up` starts one";
            return Err(Fault::new(Code::ToolFailed, message));
        }
        let id = &caller.extension.id;
        self.shutdown.send_replace(ShutdownRequest::Restart(match arguments.unwrap_or_default().reason {
            Some(why) => format!("`{id}` asked for it: {why}"),
            None => format!("`{id}` asked for it"),
        }));
        Ok(Content::default())
    }
}
