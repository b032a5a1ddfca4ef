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

    /// Whether the capability is held. Secrets and hosts are granted one by one, so their modules check each call.
    pub fn hold(&self, capability: Capability) -> bool {
        let granted = || reaches(&self.granted, capability.name());
        let in_lane = |lane: LaneKind| self.lane == lane.as_str();
        match capability.grant() {
            GrantRule::Everyone | GrantRule::EachSecret | GrantRule::EachHost => true,
            GrantRule::Components => {
                let default = [
                    LaneKind::Native,
                    LaneKind::Python,
                    LaneKind::Process,
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

    /// Whether it may subscribe to a pattern.
    pub fn may_subscribe(&self, pattern: &str) -> bool {
        match TopicRule::to_subscribe(pattern) {
            TopicRule::Open => true,
            TopicRule::Needs(capability) => self.hold(capability),
            TopicRule::Channel | TopicRule::Program | TopicRule::TooWide => false,
        }
    }
}
