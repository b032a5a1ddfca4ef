//! Answers about the home as a whole.

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_runtime::{DailyLimit, ModelUsage, ShutdownRequest};
use holdfast_store::{Collected, Retention};
use serde_json::{Value, json};

use super::summaries::existing_stream;
use super::{Connection, bus, is_ending, value, word};
use crate::protocol::*;

const DAY: Millis = Millis(86_400_000);

impl Connection {
    pub(super) async fn answer_system(&self, method: SystemMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        match method {
            SystemMethod::Hello(hello) if hello.version == VERSION => {
                self.register(&hello)?;
                let mut welcome = self.owner.welcome.clone();
                if let Some(asked) = &hello.profile {
                    welcome.profile = word(asked);
                }
                *self.hello.lock() = Some(hello);
                value(&welcome)
            }
            SystemMethod::Hello(hello) => Err(Problem::new(
                Code::ConnectionVersion,
                format!("the client speaks version {} of the protocol, the owner {VERSION}", hello.version),
            )),
            SystemMethod::Status(NoParams {}) => value(&self.status().await?),
            SystemMethod::Stop(NoParams {}) => {
                self.owner.hub.stopping();
                runtime.request_shutdown(ShutdownRequest::Stop("requested by a client".to_owned()));
                self.ack_durable().await
            }
            SystemMethod::Restart(NoParams {}) => {
                runtime.request_shutdown(ShutdownRequest::Restart("requested by a client".to_owned()));
                self.ack_durable().await
            }
            SystemMethod::LogErase(LogErase { session, reason }) => {
                let session = existing_stream(runtime.store(), session.as_str())?;
                let erased = runtime.erase(&session, &reason).await?;
                Ok(json!({ "session": session, "erased": erased }))
            }
            SystemMethod::LogGc(asked) => self.collect(asked).await,
        }
    }

    /// A command of another process: the owner does not end before it does.
    fn register(&self, hello: &ClientHello) -> Result<(), Problem> {
        if let (Some(clients), COMMAND) = (&self.clients, hello.client.as_str()) {
            let registered = clients.enter().ok_or_else(is_ending)?;
            *self.registered.lock() = Some(registered);
        }
        Ok(())
    }

    async fn collect(&self, LogGc { session, keep_days, keep_frames }: LogGc) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        let max_age = keep_days.map(|days| Millis(days.saturating_mul(DAY.0)));
        let retention = Retention { max_age, max_frames: keep_frames };
        let only = session.map(|id| existing_stream(runtime.store(), id.as_str())).transpose()?;
        let report = runtime.collect_all(only, retention).await?;
        let streams = report.streams.into_iter().map(|(stream, collected)| {
            let in_use = collected.is_none();
            let Collected { frames, blobs } = collected.unwrap_or_default();
            CollectedStream { stream, frames, blobs, in_use }
        });
        let streams = streams.collect();
        value(&CollectedLog { streams, objects: report.objects, freed_bytes: report.freed_bytes })
    }

    async fn status(&self) -> Result<Status, Problem> {
        let runtime = &self.owner.runtime;
        let extensions = runtime.extensions().await?;
        let active = extensions.iter().filter(|extension| extension.active.is_some()).count() as u64;
        let (mut failed, mut degraded, mut conflicts) = (Vec::new(), Vec::new(), Vec::new());
        let troubled = |extension: &ExtensionId, fault: Fault| ExtensionProblem {
            extension: extension.to_string(),
            code: fault.code.as_str().to_owned(),
            fix: fault.code.help().to_owned(),
            message: fault.message,
        };
        for extension in extensions {
            conflicts.extend(extension.conflicts.into_iter().map(|fault| troubled(&extension.id, fault)));
            let Some(fault) = extension.fault else { continue };
            let line = troubled(&extension.id, fault);
            if extension.active.is_some() { &mut degraded } else { &mut failed }.push(line);
        }
        degraded
            .extend(runtime.suspended().into_iter().map(|(extension, fault)| troubled(&extension, fault)));
        let ModelUsage { model_calls, tokens, cost_micros } = runtime.used();
        Ok(Status {
            process: self.owner.welcome.process,
            active,
            starting: runtime.starting().iter().map(ToString::to_string).collect(),
            sessions: runtime.open_sessions() as u64,
            stored: runtime.store().count_sessions()?,
            failed,
            degraded,
            conflicts,
            uptime_ms: runtime.uptime().0,
            queues: bus::queues(runtime),
            spent: UsageInfo { model_calls, tokens, cost_micros },
            today: runtime.today().into_iter().map(limit_usage).collect(),
        })
    }
}

fn limit_usage(DailyLimit { extension, limit, used, allowed }: DailyLimit) -> LimitUsage {
    LimitUsage { extension: extension.map(|id| id.to_string()), limit, used, allowed }
}
