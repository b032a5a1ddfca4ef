//! The calls that a server is working on. What a server asks without naming a call, and what its program needs of the network, belongs
//! to the oldest of them, or to the extension's background loop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Host;
use parking_lot::Mutex;
use rmcp::model::ProgressToken;

use crate::catalogue::shown;

/// The longest line of a log or of progress.
const MAX_LINE_CHARS: usize = 1_000;

/// What limits the calls of one server.
#[derive(Clone)]
pub(crate) struct CallTerms {
    pub id: ExtensionId,
    pub log: Option<LogSink>,
    /// Host calls that one call may make.
    pub host_calls: u32,
    /// Bytes that may be logged or shown between two calls.
    pub log_bytes: u32,
}

/// The calls in progress.
pub(crate) struct ActiveCalls {
    pub terms: CallTerms,
    state: Mutex<CallTable>,
}

#[derive(Default)]
struct CallTable {
    next: u64,
    calls: BTreeMap<u64, ActiveCall>,
    background: Option<Arc<dyn Host>>,
    logged: usize,
}

struct ActiveCall {
    host: Arc<dyn Host>,
    workspace: Option<PathBuf>,
    in_turn: bool,
    left: u32,
    shown: usize,
    token: Option<ProgressToken>,
}

/// A call that is in progress as long as this is there.
pub(crate) struct CallGuard {
    calls: Arc<ActiveCalls>,
    pub id: u64,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.calls.state.lock().calls.remove(&self.id);
    }
}

impl ActiveCalls {
    pub(crate) fn new(terms: CallTerms) -> Arc<Self> {
        Arc::new(Self { terms, state: Mutex::default() })
    }

    /// A call begins. In a turn the user can be asked.
    pub(crate) fn begin(
        self: &Arc<Self>,
        host: Arc<dyn Host>,
        workspace: Option<PathBuf>,
        in_turn: bool,
    ) -> CallGuard {
        let mut state = self.state.lock();
        state.next += 1;
        state.logged = 0;
        let (id, left) = (state.next, self.terms.host_calls);
        state.calls.insert(id, ActiveCall { host, workspace, in_turn, left, shown: 0, token: None });
        CallGuard { calls: self.clone(), id }
    }

    /// The host of the extension's background loop, which serves what belongs to no call.
    pub(crate) fn set_background(&self, host: Option<Arc<dyn Host>>) {
        self.state.lock().background = host;
    }

    /// The host of the oldest call of a turn, or else of the oldest call, or of the background loop, for one more host call.
    pub(crate) fn oldest_host(&self) -> Result<Arc<dyn Host>, Fault> {
        let mut state = self.state.lock();
        let most = self.terms.host_calls;
        let Some(call) = state.calls.values_mut().min_by_key(|call| !call.in_turn) else {
            let message = "no call is in progress that this could belong to";
            return state.background.clone().ok_or_else(|| Fault::new(Code::ToolDenied, message));
        };
        if call.left == 0 {
            let message = format!("one call may ask the host {most} times");
            return Err(Fault::new(Code::HostCallsExhausted, message));
        }
        call.left -= 1;
        Ok(call.host.clone())
    }

    /// The folder that the oldest call's session works in.
    pub(crate) fn workspace(&self) -> Option<PathBuf> {
        self.state.lock().calls.values().find_map(|call| call.workspace.clone())
    }

    /// The progress of a call is reported under this token.
    pub(crate) fn set_token(&self, call: u64, token: ProgressToken) {
        if let Some(call) = self.state.lock().calls.get_mut(&call) {
            call.token = Some(token);
        }
    }

    /// Shows the progress of a call, up to its byte limit.
    pub(crate) fn progress(&self, token: &ProgressToken, text: &str) {
        let text = shown(text, MAX_LINE_CHARS);
        let mut state = self.state.lock();
        let mut calls = state.calls.values_mut();
        let Some(call) = calls.find(|call| call.token.as_ref() == Some(token)) else { return };
        call.shown = call.shown.saturating_add(text.len());
        if call.shown <= self.terms.log_bytes as usize {
            let host = call.host.clone();
            drop(state);
            host.progress(&text);
        }
    }

    /// Logs a line, up to the byte limit.
    pub(crate) fn log(&self, level: LogLevel, text: &str) {
        let Some(sink) = &self.terms.log else { return };
        let text = shown(text, MAX_LINE_CHARS);
        let (before, most) = {
            let mut state = self.state.lock();
            let before = state.logged;
            state.logged = before.saturating_add(text.len());
            (before, self.terms.log_bytes as usize)
        };
        if before + text.len() <= most {
            sink(&self.terms.id, level, &text);
        } else if before <= most {
            let full = "log limit reached; further lines of this call are dropped";
            sink(&self.terms.id, LogLevel::Warning, full);
        }
    }

    /// The secret of a name, which the extension must be granted.
    pub(crate) async fn secret(&self, name: &str) -> Result<String, Fault> {
        let host = self.oldest_host()?;
        let asked = HostCall::of(HostCallKind::SecretGet, serde_json::Value::from(name));
        host.call(asked).await.map(|secret| secret.to_text())
    }

    /// A text with `${NAME}` replaced by secrets.
    pub(crate) async fn substituted(&self, text: &str) -> Result<String, Fault> {
        let (mut done, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, tail)) = after.split_once('}') else { break };
            done.push_str(before);
            done.push_str(&self.secret(name).await?);
            rest = tail;
        }
        done.push_str(rest);
        Ok(done)
    }
}

#[cfg(target_os = "linux")]
impl holdfast_program::CallSource for ActiveCalls {
    fn oldest(&self) -> Result<Arc<dyn Host>, Fault> {
        self.oldest_host()
    }

    fn warn(&self, text: &str) {
        self.log(LogLevel::Warning, text);
    }
}
