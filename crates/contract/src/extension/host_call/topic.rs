//! The topics of the program itself, and what an extension must hold to publish on them or to subscribe to them.
//!
//! Every other topic belongs to the extensions: the capability of the call is enough. A subscription names a topic of the program in
//! full, so no wildcard includes one by accident; the outgoing messages of all channels, `channel.out.*`, are the one exception.

use super::Capability;

/// What a topic needs beside the capability of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRule {
    /// Nothing: the topic belongs to the extensions.
    Open,
    /// This capability.
    Needs(Capability),
    /// The `channel` role. A channel speaks for itself alone.
    Channel,
    /// The topic is the program's: no extension publishes on it.
    Program,
    /// The pattern would include topics of the program.
    TooWide,
}

/// Every topic of the program, as patterns.
pub const PROGRAM_TOPICS: &[&str] = &[USER_MESSAGE, OUTGOING, SYSTEM];

/// What is said in every turn that a user, a client or an event started: the message. It is kept in memory only.
pub const TURN_MESSAGE: &str = "user_message";

/// The same: what the agent answered.
pub const TURN_ANSWER: &str = "agent_response";

/// Whether the events of a topic are kept in memory only. No pattern includes such a topic.
pub fn is_in_memory(topic: &str) -> bool {
    matches!(topic, TURN_MESSAGE | TURN_ANSWER)
}

const USER_MESSAGE: &str = "user.message";
const OUTGOING: &str = "channel.out.>";
const SYSTEM: &str = "system.>";

impl TopicRule {
    /// What publishing on a topic needs.
    pub fn to_publish(topic: &str) -> Self {
        match topic {
            USER_MESSAGE => Self::Channel,
            "system.agent.task" | "system.agent.background" => Self::Needs(Capability::Agents),
            "system.user.notify" => Self::Needs(Capability::Channels),
            TURN_MESSAGE | TURN_ANSWER => Self::Program,
            _ if PROGRAM_TOPICS.iter().any(|own| overlap(own, topic)) => Self::Program,
            _ => Self::Open,
        }
    }

    /// What subscribing to a pattern needs.
    pub fn to_subscribe(pattern: &str) -> Self {
        match pattern {
            TURN_MESSAGE => return Self::Needs(Capability::UserMessages),
            TURN_ANSWER => return Self::Needs(Capability::Answers),
            _ => {}
        }
        if !PROGRAM_TOPICS.iter().any(|own| overlap(own, pattern)) {
            return Self::Open;
        }
        let one_channel = |id: &str| !id.is_empty() && !id.contains(['.', '>']);
        match pattern {
            USER_MESSAGE => Self::Needs(Capability::UserMessages),
            _ if pattern.strip_prefix("channel.out.").is_some_and(one_channel) => {
                Self::Needs(Capability::Answers)
            }
            _ if pattern.contains(['*', '>']) => Self::TooWide,
            _ if overlap(SYSTEM, pattern) => Self::Needs(Capability::SystemEvents),
            _ => Self::Needs(Capability::Answers),
        }
    }
}

/// Whether there is a topic that both patterns match.
fn overlap(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(_), None) | (None, Some(_)) => return false,
            (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some(left), Some(right)) if left == right || left == "*" || right == "*" => {}
            (Some(_), Some(_)) => return false,
        }
    }
}

#[cfg(test)]
#[path = "topic_tests.rs"]
mod tests;
