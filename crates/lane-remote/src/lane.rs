//! The lane, and a remote as an extension: its tools, each under the remote's name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, ToolName};
use holdfast_contract::manifest::Scope;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::plain;
use holdfast_contract::registry::{Descriptor, ExtensionRef};
use holdfast_contract::remote::RemoteCall;
use holdfast_contract::role::RoleSet;
use holdfast_contract::system_frames::{BuiltIn, FoundExtension, LifecycleCommand};
use holdfast_contract::tool::ToolSpec;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Lane, Later, Reply};
use secrecy::SecretString;
use serde::Serialize;

use crate::connection::RemoteConnection;
use crate::pins;

/// The lane's name, as it stands in frames.
const NAME: &str = "remote";

/// Finds a token by the name of its secret. It is called at every connection.
pub type FindToken = Arc<dyn Fn(&str) -> Result<SecretString, Fault> + Send + Sync>;

/// Another Holdfast, as the settings have it.
#[derive(Clone, Debug, Serialize)]
pub struct RemoteTarget {
    /// Its name here.
    pub name: String,
    /// Where it is: `127.0.0.1:7441`.
    pub address: String,
    /// The secret that has the token.
    pub token: String,
    /// Whether it may be another machine.
    pub insecure: bool,
    /// The digest of the definitions that the user accepts in place of those of the first contact.
    pub definitions: Option<String>,
}

impl RemoteTarget {
    /// The id of the extension that it is here.
    pub fn extension(&self) -> ExtensionId {
        format!("remote-{}", self.name).into()
    }

    /// The name of a tool here: two remotes may offer the same, and none takes a name of this home's.
    fn local_name(&self, tool: &ToolName) -> ToolName {
        format!("{}_{tool}", self.name).into()
    }

    fn digest(&self) -> Digest {
        Digest::of_json(self).unwrap_or_default()
    }
}

/// Calls tools of other Holdfasts.
pub struct RemoteLane {
    targets: BTreeMap<Digest, RemoteTarget>,
    token: FindToken,
    /// Has a folder for each extension.
    data: PathBuf,
}

impl RemoteLane {
    /// A lane for these remotes, which keeps what was accepted in the data folders of their extensions.
    pub fn new(targets: Vec<RemoteTarget>, token: FindToken, data: PathBuf) -> Self {
        let targets = targets.into_iter().map(|target| (target.digest(), target)).collect();
        Self { targets, token, data }
    }

    /// The remotes as discovery reports them.
    pub fn found(&self) -> Vec<FoundExtension> {
        let found = self.targets.iter().map(|(digest, target)| FoundExtension {
            id: target.extension(),
            version: holdfast_contract::remote::REMOTE_PROTOCOL.into(),
            digest: *digest,
            lane: NAME.to_owned(),
            description: format!("Tools that another Holdfast serves at {}.", target.address),
            built_in: Some(BuiltIn::default()),
            ..FoundExtension::default()
        });
        found.collect()
    }
}

impl Lane for RemoteLane {
    fn name(&self) -> &str {
        NAME
    }

    fn runs_in_process(&self) -> bool {
        false
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let unknown = || Fault::new(Code::ExtensionUnknown, format!("`{}` is not a remote", extension.id));
        let target = self.targets.get(&extension.digest).cloned().ok_or_else(unknown);
        let (token, folder) = (self.token.clone(), self.data.join(extension.id.as_str()));
        Box::pin(async move {
            let target = target?;
            let connection = RemoteConnection::open(&target, &token(&target.token)?).await?;
            pins::check(&folder, &target, &connection.welcome)?;
            let definitions = connection.welcome.definitions();
            let (mut tools, mut descriptors) = (BTreeMap::new(), Vec::new());
            for sheet in connection.welcome.tools {
                let (theirs, own) = (sheet.name.clone(), target.local_name(&sheet.name));
                descriptors.push(Descriptor::tool(ToolSpec { name: own.clone(), ..sheet.into() }));
                tools.insert(own, theirs);
            }
            let remote = Remote { target, token, definitions, tools, descriptors };
            Ok(Arc::new(RemoteInstance(Arc::new(remote))) as Arc<dyn Instance>)
        })
    }
}

/// A remote whose tools are known.
struct RemoteInstance(Arc<Remote>);

struct Remote {
    target: RemoteTarget,
    token: FindToken,
    /// What was offered when it was loaded.
    definitions: Digest,
    /// The tools by their names here, with the names there.
    tools: BTreeMap<ToolName, ToolName>,
    descriptors: Vec<Descriptor>,
}

impl Remote {
    async fn call(&self, tool: &ToolName, arguments: &Content) -> Result<Reply, Fault> {
        let name = &self.target.name;
        let gone = || Fault::new(Code::ToolUnknown, format!("the remote `{name}` has no tool `{tool}`"));
        let theirs = self.tools.get(tool).cloned().ok_or_else(gone)?;
        let token = (self.token)(&self.target.token)?;
        let connection = RemoteConnection::open(&self.target, &token).await?;
        if connection.welcome.definitions() != self.definitions {
            let message = format!(
                "the remote `{name}` offers other definitions than when it was loaded; `holdfast ext restart {}` \
                 looks at them",
                self.target.extension()
            );
            return Err(Fault::new(Code::RemoteChanged, message));
        }
        let call = RemoteCall { tool: theirs, arguments: plain(arguments) };
        connection.call(&self.target, call).await.map(|result| Reply::Content(Content::new(result)))
    }
}

impl Instance for RemoteInstance {
    fn call(&self, call: Call, _: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        let remote = self.0.clone();
        Box::pin(async move {
            match call {
                Call::Lifecycle(LifecycleCommand::Load) => Ok(Reply::Descriptors(remote.descriptors.clone())),
                Call::Lifecycle(_) => Ok(Reply::Done),
                Call::Health => Ok(Reply::Health(true)),
                Call::Tool { tool, arguments, .. } => remote.call(&tool, &arguments).await,
                Call::Hook(_) | Call::Task { .. } | Call::Api { .. } | Call::Function { .. } => {
                    let message = format!("the remote `{}` has tools only", remote.target.name);
                    Err(Fault::new(Code::ExtensionFault, message))
                }
            }
        })
    }

    fn capabilities(&self) -> InstanceCapabilities {
        InstanceCapabilities {
            scope: Scope::Shared,
            replayable: false,
            has_lifecycle: false,
            exclusive: false,
            synchronous_hooks: false,
            roles: RoleSet::default(),
        }
    }
}
