//! An extension as a bundle of roles, and how calls find their way to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::hook::{Decision, HookInput};
use holdfast_contract::ids::{ExtensionId, HookId, ToolName};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AgentSpec, Descriptor};
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::{FoundExtension, LifecycleCommand, ScheduleSpec, SetupSpec};
use holdfast_contract::wire::{Call, Host, Instance, Later, Reply};

use crate::roles::{Api, Functions, Hook, Lifecycle, Tasks, Tool, now};

/// A native extension: its roles, gathered one by one.
pub struct Extension {
    found: FoundExtension,
    descriptors: Vec<Descriptor>,
    tools: BTreeMap<ToolName, Arc<dyn Tool>>,
    hooks: BTreeMap<HookId, Arc<dyn Hook>>,
    lifecycle: Option<Arc<dyn Lifecycle>>,
    tasks: Option<Arc<dyn Tasks>>,
    api: Option<Arc<dyn Api>>,
    functions: Option<Arc<dyn Functions>>,
    replayable: bool,
}

impl Extension {
    /// An extension without any role yet.
    pub fn new(id: &str, version: &str) -> Self {
        let found = FoundExtension {
            id: id.into(),
            version: version.into(),
            digest: Digest::ZERO,
            lane: "native".to_owned(),
            depends_on: Vec::new(),
            priority: None,
            schedules: Vec::new(),
            secrets: Vec::new(),
            setup: None,
        };
        Self {
            found,
            descriptors: Vec::new(),
            tools: BTreeMap::new(),
            hooks: BTreeMap::new(),
            lifecycle: None,
            tasks: None,
            api: None,
            functions: None,
            replayable: false,
        }
    }

    /// Loaded after these.
    pub fn depends_on(mut self, ids: &[&str]) -> Self {
        self.found.depends_on = ids.iter().map(|id| ExtensionId::from(*id)).collect();
        self
    }

    /// The priority of its descriptors in their stacks.
    pub fn priority(mut self, priority: i32) -> Self {
        self.found.priority = Some(priority);
        self
    }

    /// With a tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        let spec = tool.spec();
        self.tools.insert(spec.name.clone(), Arc::new(tool));
        self.descriptors.push(Descriptor::tool(spec));
        self
    }

    /// With a hook.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        let descriptor = Descriptor::hook(&self.found.id, self.hooks.len(), hook.spec());
        self.hooks.insert(descriptor.id.as_str().into(), Arc::new(hook));
        self.descriptors.push(descriptor);
        self
    }

    /// With an agent.
    pub fn agent(mut self, agent: AgentSpec) -> Self {
        self.descriptors.push(Descriptor::agent(agent));
        self
    }

    /// With a descriptor of an open kind.
    pub fn descriptor(mut self, descriptor: Descriptor) -> Self {
        self.descriptors.push(descriptor);
        self
    }

    /// With a life of its own.
    pub fn lifecycle(mut self, lifecycle: impl Lifecycle + 'static) -> Self {
        self.lifecycle = Some(Arc::new(lifecycle));
        self
    }

    /// With tasks for its schedules.
    pub fn tasks(mut self, tasks: impl Tasks + 'static) -> Self {
        self.tasks = Some(Arc::new(tasks));
        self
    }

    /// With a schedule, whose task is among its tasks.
    pub fn schedule(mut self, schedule: ScheduleSpec) -> Self {
        self.found.schedules.push(schedule);
        self
    }

    /// With secrets that it may have, by name.
    pub fn secrets(mut self, names: &[&str]) -> Self {
        self.found.secrets = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// With something to be set up before it can work.
    pub fn setup(mut self, setup: SetupSpec) -> Self {
        self.found.setup = Some(setup);
        self
    }

    /// With methods for other extensions.
    pub fn api(mut self, api: impl Api + 'static) -> Self {
        self.api = Some(Arc::new(api));
        self
    }

    /// With functions of other roles.
    pub fn functions(mut self, functions: impl Functions + 'static) -> Self {
        self.functions = Some(Arc::new(functions));
        self
    }

    /// Promises that each call's answer depends on nothing but its input and what the host answers.
    pub fn replayable(mut self) -> Self {
        self.replayable = true;
        self
    }

    /// The extension as discovery reports it. Its digest covers its identity and everything it registers.
    pub fn found(&self) -> FoundExtension {
        let content = (&self.found.id, &self.found.version, &self.descriptors);
        FoundExtension { digest: Digest::of_json(&content).unwrap_or_default(), ..self.found.clone() }
    }

    fn life(&self, command: LifecycleCommand, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        let step = match (command, &self.lifecycle) {
            (LifecycleCommand::Load, _) => return now(Ok(Reply::Descriptors(self.descriptors.clone()))),
            (_, None) => return now(Ok(Reply::Done)),
            (LifecycleCommand::Initialize, Some(life)) => life.initialize(host),
            (LifecycleCommand::Start, Some(life)) => life.start(),
            (LifecycleCommand::Stop, Some(life)) => life.stop(),
            (LifecycleCommand::Destroy, Some(life)) => life.destroy(),
        };
        Box::pin(async move { step.await.map(|()| Reply::Done) })
    }

    fn lacks(&self, what: &str) -> Later<Result<Reply, Fault>> {
        let message = format!("`{}` has no {what}", self.found.id);
        now(Err(Fault::new(Code::ExtensionFault, message)))
    }
}

impl Instance for Extension {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        match call {
            Call::Hook(input) => match self.hooks.get(&input.hook) {
                Some(hook) => {
                    let decided = hook.decide(input, host);
                    Box::pin(async move { decided.await.map(Reply::Decision) })
                }
                None => self.lacks(&format!("hook `{}`", input.hook)),
            },
            Call::Tool { call, tool, arguments, turn } => match self.tools.get(&tool) {
                Some(found) => {
                    let result = found.call(call, arguments, turn, host);
                    Box::pin(async move { result.await.map(Reply::Content) })
                }
                None => self.lacks(&format!("tool `{tool}`")),
            },
            Call::Lifecycle(command) => self.life(command, host),
            Call::Health => match &self.lifecycle {
                Some(life) => {
                    let health = life.health_check();
                    Box::pin(async move { Ok(Reply::Health(health.await)) })
                }
                None => now(Ok(Reply::Health(true))),
            },
            Call::Task { task } => match &self.tasks {
                Some(tasks) => {
                    let result = tasks.execute_task(task, host);
                    Box::pin(async move { result.await.map(Reply::Content) })
                }
                None => self.lacks("tasks"),
            },
            Call::Api { method, arguments } => match &self.api {
                Some(api) => {
                    let result = api.call(method, arguments, host);
                    Box::pin(async move { result.await.map(Reply::Content) })
                }
                None => self.lacks("methods"),
            },
            Call::Function { role, function, arguments } => {
                let lacks = || self.lacks(&format!("function `{function}`"));
                let functions = self.functions.as_ref();
                match functions.and_then(|it| it.call(role, function.clone(), arguments, host)) {
                    Some(result) => Box::pin(async move { result.await.map(Reply::Content) }),
                    None => lacks(),
                }
            }
        }
    }

    fn replayable(&self) -> bool {
        self.replayable
    }

    fn lives(&self) -> bool {
        self.lifecycle.is_some()
    }

    fn has(&self, role: Role) -> bool {
        self.functions.as_ref().is_some_and(|functions| functions.has(role))
    }

    fn answers_at_once(&self) -> bool {
        self.hooks.values().all(|hook| hook.answers_at_once())
    }

    fn at_once(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        self.hooks.get(&input.hook)?.at_once(input)
    }
}
