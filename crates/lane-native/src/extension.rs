//! The builder with which an author assembles an extension from its roles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, HookId, ToolName};
use holdfast_contract::manifest::HandlerSpec;
use holdfast_contract::registry::{AgentSpec, ChannelFeatures, Descriptor, Payload};
use holdfast_contract::system_frames::{BuiltIn, FoundExtension, ScheduleSpec, SetupSpec, SubscriptionSpec};
use holdfast_contract::tool::ToolGroup;

use crate::roles::{
    Api, Channel, Functions, Hook, Lifecycle, Service, StreamingChannel, Subscriber, Tasks, Tool,
};

/// Builds a native extension from its roles.
pub struct NativeExtension {
    pub(crate) found: FoundExtension,
    pub(crate) descriptors: Vec<Descriptor>,
    pub(crate) tools: BTreeMap<ToolName, Arc<dyn Tool>>,
    pub(crate) hooks: BTreeMap<HookId, Arc<dyn Hook>>,
    pub(crate) lifecycle: Option<Arc<dyn Lifecycle>>,
    pub(crate) tasks: Option<Arc<dyn Tasks>>,
    pub(crate) api: Option<Arc<dyn Api>>,
    pub(crate) subscriber: Option<Arc<dyn Subscriber>>,
    pub(crate) channel: Option<Arc<dyn Channel>>,
    pub(crate) streaming: Option<Arc<dyn StreamingChannel>>,
    pub(crate) functions: Option<Arc<dyn Functions>>,
    pub(crate) service: Option<Arc<dyn Service>>,
    pub(crate) exclusive: bool,
    pub(crate) replayable: bool,
    /// Names that are reserved for its tools, even if it does not offer them.
    reserved: Vec<ToolName>,
}

impl NativeExtension {
    /// An extension without roles.
    pub fn new(id: &str, version: &str) -> Self {
        let found = FoundExtension {
            id: id.into(),
            version: version.into(),
            digest: Digest::ZERO,
            lane: "native".to_owned(),
            ..FoundExtension::default()
        };
        Self {
            found,
            descriptors: Vec::new(),
            tools: BTreeMap::new(),
            hooks: BTreeMap::new(),
            lifecycle: None,
            tasks: None,
            api: None,
            subscriber: None,
            channel: None,
            streaming: None,
            functions: None,
            service: None,
            exclusive: false,
            replayable: false,
            reserved: Vec::new(),
        }
    }

    /// What it does, in one line.
    pub fn described(mut self, description: &str) -> Self {
        self.found.description = description.to_owned();
        self
    }

    /// Dependencies, which are loaded first.
    pub fn depends_on(mut self, ids: &[&str]) -> Self {
        self.found.depends_on = ids.iter().map(|id| ExtensionId::from(*id)).collect();
        self
    }

    /// The priority of its descriptors in their stacks.
    pub fn priority(mut self, priority: i32) -> Self {
        self.found.priority = Some(priority);
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        let spec = tool.spec();
        self.tools.insert(spec.name.clone(), Arc::new(tool));
        self.descriptors.push(Descriptor::tool(spec));
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        let descriptor = Descriptor::hook(&self.found.id, self.hooks.len(), hook.spec());
        self.hooks.insert(descriptor.id.as_str().into(), Arc::new(hook));
        self.descriptors.push(descriptor);
        self
    }

    /// Adds an agent.
    pub fn agent(mut self, agent: AgentSpec) -> Self {
        if agent.code.as_ref() == Some(&self.found.id) {
            self.found.agent = Some(agent.clone());
        }
        self.descriptors.push(Descriptor::agent(agent));
        self
    }

    /// Adds a descriptor of any kind.
    pub fn descriptor(mut self, descriptor: Descriptor) -> Self {
        self.descriptors.push(descriptor);
        self
    }

    /// Adds lifecycle steps.
    pub fn lifecycle(mut self, lifecycle: impl Lifecycle + 'static) -> Self {
        self.lifecycle = Some(Arc::new(lifecycle));
        self
    }

    /// Adds the tasks of its schedules.
    pub fn tasks(mut self, tasks: impl Tasks + 'static) -> Self {
        self.tasks = Some(Arc::new(tasks));
        self
    }

    /// Adds a schedule, which runs one of its tasks.
    pub fn schedule(mut self, schedule: ScheduleSpec) -> Self {
        self.found.schedules.push(schedule);
        self
    }

    /// The secrets that it may use, by name.
    pub fn secrets(mut self, names: &[&str]) -> Self {
        self.found.secrets = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Interfaces of the host that it needs and is granted, by name. Who registers it decides that; no privilege follows from its id.
    pub fn interfaces(mut self, names: &[&str]) -> Self {
        self.found.interfaces = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Parameters to set before it can work.
    pub fn setup(mut self, setup: SetupSpec) -> Self {
        self.found.setup = Some(setup);
        self
    }

    /// Adds methods for other extensions.
    pub fn api(mut self, api: impl Api + 'static) -> Self {
        self.api = Some(Arc::new(api));
        self
    }

    /// Subscribes to a topic, or to a pattern of topics.
    pub fn subscribes(mut self, topic: &str, handler: HandlerSpec) -> Self {
        self.found.subscribes.push(SubscriptionSpec { topic: topic.into(), handler });
        self
    }

    /// Adds the handler of its subscriptions.
    pub fn subscriber(mut self, subscriber: impl Subscriber + 'static) -> Self {
        self.subscriber = Some(Arc::new(subscriber));
        self
    }

    /// Adds a channel with the id of the extension.
    pub fn channel(mut self, channel: impl Channel + 'static) -> Self {
        self.descriptors.push(Descriptor::channel(&self.found.id, features(&channel)));
        self.channel = Some(Arc::new(channel));
        self
    }

    /// Adds a channel with the id of the extension that shows answers while they are generated.
    pub fn streaming_channel(mut self, channel: impl StreamingChannel + 'static) -> Self {
        let features = ChannelFeatures { streams: true, ..features(&channel) };
        self.descriptors.push(Descriptor::channel(&self.found.id, features));
        let channel = Arc::new(channel);
        self.streaming = Some(channel.clone());
        self.channel = Some(channel);
        self
    }

    /// Adds a slash command, which its [`Functions`] run.
    pub fn command(self, name: &str, description: &str) -> Self {
        self.descriptor(Descriptor::command(name, description))
    }

    /// Adds functions of other roles.
    pub fn functions(mut self, functions: impl Functions + 'static) -> Self {
        self.functions = Some(Arc::new(functions));
        self
    }

    /// Adds a background loop.
    pub fn service(mut self, service: impl Service + 'static) -> Self {
        self.service = Some(Arc::new(service));
        self.exclusive()
    }

    /// Two of its generations never run concurrently: it polls, listens or holds an exclusive resource.
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Declares that the answer to a call depends only on its input and the host's answers.
    pub fn replayable(mut self) -> Self {
        self.replayable = true;
        self
    }

    /// Reserves these names for its tools if it is built in, even while it does not offer them.
    pub fn reserving(mut self, tools: &[&str]) -> Self {
        self.reserved.extend(tools.iter().map(|name| ToolName::from(*name)));
        self
    }

    /// Puts the tools that it has so far into a group, which decides which agents have them besides those that name the extension.
    pub fn grouped(mut self, group: ToolGroup) -> Self {
        for descriptor in &mut self.descriptors {
            if let Payload::Tool(spec) = &mut descriptor.payload {
                Arc::make_mut(spec).group = Some(group);
            }
        }
        self
    }

    /// The reserved names if it is built in: those of its tools, and those that it does not offer.
    pub(crate) fn built_in(&self) -> BuiltIn {
        let registered = self.descriptors.iter().flat_map(Descriptor::tool_names);
        let names: BTreeSet<ToolName> = registered.chain(self.reserved.iter().cloned()).collect();
        BuiltIn { tools: names.into_iter().collect() }
    }

    /// The extension as discovery reports it. Its digest covers its identity and everything it registers.
    pub fn to_found(&self) -> FoundExtension {
        let FoundExtension { id, version, subscribes, interfaces, .. } = &self.found;
        let digest = match (subscribes.is_empty(), interfaces.is_empty()) {
            (true, true) => Digest::of_json(&(id, version, &self.descriptors)),
            (false, true) => Digest::of_json(&(id, version, &self.descriptors, subscribes)),
            (_, false) => Digest::of_json(&(id, version, &self.descriptors, subscribes, interfaces)),
        };
        FoundExtension { digest: digest.unwrap_or_default(), ..self.found.clone() }
    }
}

/// What a channel can do, if it does not stream.
fn features(channel: &dyn Channel) -> ChannelFeatures {
    ChannelFeatures {
        messages: channel.has_messages(),
        streams: false,
        files: channel.has_files(),
        questions: channel.has_questions(),
    }
}
