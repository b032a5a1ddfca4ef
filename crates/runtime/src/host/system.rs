//! The capability `system`: restarting and stopping the process.

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
        self.request_shutdown(caller, arguments, ShutdownRequest::Restart)
    }

    pub(super) fn system_shutdown(
        &self,
        caller: &Caller,
        arguments: Option<ShutdownArguments>,
    ) -> Result<Content, Fault> {
        self.request_shutdown(caller, arguments, ShutdownRequest::Stop)
    }

    fn request_shutdown(
        &self,
        caller: &Caller,
        arguments: Option<ShutdownArguments>,
        request: fn(String) -> ShutdownRequest,
    ) -> Result<Content, Fault> {
        if self.shutdown.receiver_count() == 0 {
            let message = "no process that could be restarted owns the home: `holdfast up` starts one";
            return Err(Fault::new(Code::ToolFailed, message));
        }
        let id = &caller.extension.id;
        self.shutdown.send_replace(request(match arguments.unwrap_or_default().reason {
            Some(why) => format!("`{id}` asked for it: {why}"),
            None => format!("`{id}` asked for it"),
        }));
        Ok(Content::default())
    }
}
