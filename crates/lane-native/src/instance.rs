//! A native extension that is loaded: dispatches each call to the role that serves it.

use std::sync::Arc;

use holdfast_contract::attachment;
use holdfast_contract::channel_question;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput};
use holdfast_contract::manifest::Scope;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Later, Reply};

use crate::extension::NativeExtension;
use crate::roles::{StreamingChannel, now};

/// A loaded native extension.
pub(crate) struct NativeInstance {
    extension: NativeExtension,
    capabilities: InstanceCapabilities,
}

impl NativeInstance {
    /// The instance of an extension. What it can do is determined here, once.
    pub(crate) fn new(extension: NativeExtension) -> Self {
        let has = |role: Role| match role {
            Role::Service => extension.service.is_some(),
            Role::Channel => extension.channel.is_some() || extension.streaming.is_some(),
            role => extension.functions.as_ref().is_some_and(|functions| functions.has(role)),
        };
        let capabilities = InstanceCapabilities {
            scope: Scope::Shared,
            replayable: extension.replayable,
            has_lifecycle: extension.lifecycle.is_some() || extension.service.is_some(),
            exclusive: extension.exclusive,
            synchronous_hooks: extension.hooks.values().all(|hook| hook.is_synchronous()),
            roles: Role::ALL.iter().copied().filter(|role| has(*role)).collect(),
        };
        Self { extension, capabilities }
    }

    fn lifecycle(&self, command: LifecycleCommand, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        let step = match (command, &self.extension.lifecycle) {
            (LifecycleCommand::Load, _) => {
                return now(Ok(Reply::Descriptors(self.extension.descriptors.clone())));
            }
            (_, None) => return now(Ok(Reply::Done)),
            (LifecycleCommand::Initialize, Some(life)) => life.initialize(host),
            (LifecycleCommand::Start, Some(life)) => life.start(),
            (LifecycleCommand::Stop, Some(life)) => life.stop(),
            (LifecycleCommand::Destroy, Some(life)) => life.destroy(),
        };
        done(step)
    }

    fn missing(&self, what: &str) -> Later<Result<Reply, Fault>> {
        let message = format!("`{}` has no {what}", self.extension.found.id);
        now(Err(Fault::new(Code::ExtensionFault, message)))
    }
}

/// The reply of a step without a result.
fn done(step: Later<Result<(), Fault>>) -> Later<Result<Reply, Fault>> {
    Box::pin(async move { step.await.map(|()| Reply::Done) })
}

/// A field of a call's arguments.
fn field(arguments: &Content, name: &str) -> Content {
    Content::new(arguments.value().get(name).cloned().unwrap_or_default())
}

/// A part of a stream.
fn streamed(
    channel: &dyn StreamingChannel,
    function: &str,
    arguments: &Content,
    host: Arc<dyn Host>,
) -> Option<Later<Result<(), Fault>>> {
    let text = |name| field(arguments, name).to_text();
    let (user, id) = (text("user"), text("id"));
    Some(match function {
        "stream-start" => channel.stream_start(user, id, host),
        "stream-chunk" => channel.stream_chunk(user, id, text("text"), host),
        "stream-status" => channel.stream_status(user, id, text("status"), host),
        "stream-end" => channel.stream_end(user, id, text("text"), field(arguments, "delivery"), host),
        _ => return None,
    })
}

impl Instance for NativeInstance {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        match call {
            Call::Hook(input) => match self.extension.hooks.get(&input.hook) {
                Some(hook) => {
                    let decided = hook.decide(input, host);
                    Box::pin(async move { decided.await.map(Reply::Decision) })
                }
                None => self.missing(&format!("hook `{}`", input.hook)),
            },
            Call::Tool { call, tool, arguments, turn } => match self.extension.tools.get(&tool) {
                Some(found) => {
                    let result = found.call(call, arguments, turn, host);
                    Box::pin(async move { result.await.map(Reply::Content) })
                }
                None => self.missing(&format!("tool `{tool}`")),
            },
            Call::Lifecycle(command) => self.lifecycle(command, host),
            Call::Health => match &self.extension.lifecycle {
                Some(life) => {
                    let health = life.health_check();
                    Box::pin(async move { Ok(Reply::Health(health.await)) })
                }
                None => now(Ok(Reply::Health(true))),
            },
            Call::Task { task } => match &self.extension.tasks {
                Some(tasks) => {
                    let result = tasks.execute_task(task, host);
                    Box::pin(async move { result.await.map(Reply::Content) })
                }
                None => self.missing("tasks"),
            },
            Call::Api { method, arguments } => match &self.extension.api {
                Some(api) => {
                    let result = api.call(method, arguments, host);
                    Box::pin(async move { result.await.map(Reply::Content) })
                }
                None => self.missing("methods"),
            },
            Call::Function { role: Role::Service, .. } => match &self.extension.service {
                Some(service) => {
                    let run = service.run_background(host);
                    Box::pin(async move { run.await.map(|()| Reply::Done) })
                }
                None => self.missing("loop in the background"),
            },
            Call::Function { role: Role::Subscriber, arguments, .. } => match &self.extension.subscriber {
                Some(subscriber) => done(subscriber.on_event(arguments, host)),
                None => self.missing("subscriber"),
            },
            Call::Function { role: Role::Channel, function, arguments } => match &self.extension.channel {
                Some(channel) => {
                    let text = |name| field(&arguments, name).to_text();
                    let delivery = field(&arguments, "delivery");
                    match function.as_str() {
                        "send-to-user" => {
                            done(channel.send_to_user(text("user"), text("text"), delivery, host))
                        }
                        "send-file" => match attachment::sent(&arguments) {
                            Ok((user, file)) => done(channel.send_file(user, file.into(), delivery, host)),
                            Err(fault) => now(Err(fault)),
                        },
                        "send-question" => match channel_question::asked(&arguments) {
                            Ok(question) => done(channel.send_question(question, delivery, host)),
                            Err(fault) => now(Err(fault)),
                        },
                        _ => done(channel.send_message(text("text"), delivery, host)),
                    }
                }
                None => self.missing("channel"),
            },
            Call::Function { role: Role::StreamingChannel, function, arguments } => {
                match self
                    .extension
                    .streaming
                    .as_deref()
                    .and_then(|it| streamed(it, &function, &arguments, host))
                {
                    Some(step) => done(step),
                    None => self.missing(&format!("function `{function}`")),
                }
            }
            Call::Function { role, function, arguments } => {
                let missing = || self.missing(&format!("function `{function}`"));
                let functions = self.extension.functions.as_ref();
                match functions.and_then(|it| it.call(role, function.clone(), arguments, host)) {
                    Some(result) => Box::pin(async move { result.await.map(Reply::Content) }),
                    None => missing(),
                }
            }
        }
    }

    fn capabilities(&self) -> InstanceCapabilities {
        self.capabilities
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        self.extension.hooks.get(&input.hook)?.try_decide(input)
    }
}
