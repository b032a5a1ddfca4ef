//! The active channels as a user sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::message::Origin;
use holdfast_contract::problem::Problem;
use holdfast_contract::registry::{ChannelFeatures, ExtensionRef};
use holdfast_home::SessionRule;

use crate::history::recorded_start;
use crate::runtime::{Inner, Runtime};

/// An active channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelView {
    /// Its id.
    pub id: ExtensionId,
    /// The extension that it belongs to.
    pub extension: Arc<ExtensionRef>,
    /// What it can do.
    pub features: ChannelFeatures,
    /// Whether it reaches the user where nothing else is said.
    pub is_default: bool,
    /// How many sessions of its users the log has.
    pub sessions: u64,
    /// How many users have a session of their own; none where users share one.
    pub users: Option<u64>,
}

impl Runtime {
    /// The active channels, by id.
    pub fn channels(&self) -> Result<Vec<ChannelView>, Problem> {
        let inner = self.inner();
        let (registry, default) = (inner.registry.view(), inner.default_channel().ok());
        let mut sessions = inner.sessions_by_channel()?;
        let channels = registry.others.iter().filter(|entry| entry.kind.as_str() == "channel");
        let mut views: Vec<ChannelView> = channels
            .map(|entry| {
                let id = ExtensionId::from(entry.id.as_str());
                let (count, users) = sessions.remove(&*Origin::channel(&id, "").channel).unwrap_or_default();
                let rule = inner.messaging.routes().channels.sessions.get(&id).copied().unwrap_or_default();
                ChannelView {
                    extension: entry.extension.clone(),
                    features: ChannelFeatures::of(&entry.payload),
                    is_default: default.as_ref() == Some(&id),
                    sessions: count,
                    users: (rule == SessionRule::PerUser).then_some(users.len() as u64),
                    id,
                }
            })
            .collect();
        views.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(views)
    }
}

impl Inner {
    /// How many sessions began on each channel, and with which users.
    fn sessions_by_channel(&self) -> Result<BTreeMap<String, (u64, BTreeSet<String>)>, Problem> {
        let mut found: BTreeMap<String, (u64, BTreeSet<String>)> = BTreeMap::new();
        for info in self.store.streams()?.into_iter().filter(|info| info.id.is_session()) {
            let Some(body) = recorded_start(&self.store, &info.id)? else { continue };
            let origin = &body["origin"];
            let (Some(channel), true) = (origin["channel"].as_str(), body["parent"].is_null()) else {
                continue;
            };
            let (count, users) = found.entry(channel.to_owned()).or_default();
            *count += 1;
            users.extend(origin["user"].as_str().map(str::to_owned));
        }
        Ok(found)
    }
}
