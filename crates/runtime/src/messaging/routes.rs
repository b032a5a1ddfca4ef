//! Which session a user's message belongs to, and how sessions are made that are not opened by a surface.

use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{AgentId, ExtensionId, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::Problem;
use holdfast_home::{Channels, SessionRule};

use crate::runtime::Runtime;
use crate::session::NewSession;

/// How users, agents and channels are brought together.
#[derive(Clone, Default)]
pub struct Routes {
    /// The default channel, and which sessions the channels have.
    pub channels: Channels,
    /// Makes sessions for users on channels and for tasks. Without it there are none.
    pub opener: Option<Arc<dyn SessionFactory>>,
}

/// A session that is needed.
pub struct SessionRequest {
    /// Its stream.
    pub id: StreamId,
    /// Where it comes from.
    pub origin: Origin,
    /// The agent that is to answer; the main one if none is named.
    pub agent: Option<AgentId>,
}

/// Makes sessions: knows prompts, models and limits, which the runtime does not.
pub trait SessionFactory: Send + Sync {
    /// A session as it is to be opened.
    fn create_session(&self, runtime: &Runtime, opening: SessionRequest) -> Result<NewSession, Problem>;
}

/// A user's name may have this many characters in the name of a session; a longer one is shortened, and its digest follows.
const MAX_USER_CHARS: usize = 48;

impl Routes {
    /// The session of a user on a channel: `<channel>.<user>`, `<channel>` or `main`, as the channel is set. What a name of a session
    /// should not have is written as `~` and two digits.
    pub fn session(&self, channel: &ExtensionId, user: &str) -> StreamId {
        let rule = self.channels.sessions.get(channel).copied().unwrap_or_default();
        let id = match rule {
            SessionRule::PerUser => format!("{}.{}", safe(channel.as_str()), safe(user)),
            SessionRule::PerChannel => safe(channel.as_str()),
            SessionRule::Single => "main".to_owned(),
        };
        let id = StreamId::from(id);
        if id.is_session() { id } else { StreamId::from(format!("{id}~")) }
    }
}

fn safe(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@' | '+');
    let mut safe = String::new();
    for c in name.chars() {
        if plain(c) {
            safe.push(c)
        } else {
            c.to_string().bytes().for_each(|byte| safe.push_str(&format!("~{byte:02x}")))
        }
    }
    if safe.len() <= MAX_USER_CHARS {
        return safe;
    }
    let digest = Digest::of(name.as_bytes()).to_string();
    let short: String = safe.chars().take(MAX_USER_CHARS).collect();
    format!("{short}~{}", digest.get(..16).unwrap_or(&digest))
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
