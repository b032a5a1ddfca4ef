//! The interfaces of the host that one extension holds: by its lane and the profile, or because they are granted. The table that this
//! reads is the contract's: `Capability::grant` and `TopicRule`.

use holdfast_contract::host_call::topic::TopicRule;
use holdfast_contract::host_call::{Capability, GrantRule};
use holdfast_contract::manifest::{LaneKind, Profile};

use super::reaches;

/// What one activation of an extension holds.
#[derive(Clone, Debug)]
pub struct HeldInterfaces {
    lane: String,
    profile: Profile,
    granted: Vec<String>,
}

impl HeldInterfaces {
    /// What an extension of this lane holds under a profile, with these granted interfaces. A lane that is not known holds nothing by
    /// default.
    pub fn new(lane: &str, profile: Profile, granted: Vec<String>) -> Self {
        Self { lane: lane.to_owned(), profile, granted }
    }

    /// Whether the capability is held. Secrets, hosts, folders and variables are granted one by one, so their modules
    /// check each call.
    pub fn hold(&self, capability: Capability) -> bool {
        let granted = || reaches(&self.granted, capability.name());
        let in_lane = |lane: LaneKind| self.lane == lane.as_str();
        match capability.grant() {
            GrantRule::Everyone
            | GrantRule::EachSecret
            | GrantRule::EachHost
            | GrantRule::EachFolder
            | GrantRule::EachVariable => true,
            GrantRule::Components => {
                let default = [
                    LaneKind::Native,
                    LaneKind::Python,
                    LaneKind::Node,
                    LaneKind::Process,
                    LaneKind::Plugin,
                    LaneKind::Declarative,
                    LaneKind::Mcp,
                ];
                default.into_iter().any(in_lane) || granted()
            }
            GrantRule::ComponentsAndPrograms => {
                let python = in_lane(LaneKind::Python) && self.profile != Profile::Safe;
                python || in_lane(LaneKind::Native) || granted()
            }
            GrantRule::Explicit => granted(),
            GrantRule::Nobody => false,
        }
    }

    /// The interfaces that are held, by name. Where each secret, host, folder or variable is granted by itself, the interface is held.
    pub fn names(&self) -> Vec<&'static str> {
        Capability::ALL.iter().filter(|it| self.hold(**it)).map(|it| it.name()).collect()
    }

    /// Those of them that it holds although nobody granted them, and that not every extension has: the lane's default set.
    pub fn by_default(&self) -> Vec<&'static str> {
        let defaults = Self { granted: Vec::new(), ..self.clone() };
        let is_default = |it: &Capability| {
            let rule = it.grant();
            let of_some = matches!(rule, GrantRule::Components | GrantRule::ComponentsAndPrograms);
            of_some && defaults.hold(*it)
        };
        Capability::ALL.iter().copied().filter(is_default).map(Capability::name).collect()
    }

    /// What of the interfaces that a manifest asks for is not held.
    pub fn lacking(&self, requested: &[String]) -> Vec<String> {
        let held = |name: &String| {
            let known = Capability::ALL.iter().find(|it| it.name() == name);
            known.map_or_else(|| reaches(&self.granted, name), |it| self.hold(*it))
        };
        requested.iter().filter(|name| !held(name)).cloned().collect()
    }

    /// Whether it may subscribe to a pattern.
    pub fn may_subscribe(&self, pattern: &str) -> bool {
        match TopicRule::to_subscribe(pattern) {
            TopicRule::Open => true,
            TopicRule::Needs(capability) => self.hold(capability),
            TopicRule::Channel | TopicRule::Program | TopicRule::TooWide => false,
        }
    }
}
