//! The workload: who subscribes to what, and what each handler does with each event. All of it follows from numbers, so every process
//! and the judge know it alike.

use holdfast_bus::RetryBackoff;
use holdfast_contract::ids::Millis;

pub const TOPICS: u64 = 50;
pub const SUBSCRIBERS: u64 = 20;
/// High enough that nothing is given up for being in the way of a kill: only what always fails is.
pub const MAX_ATTEMPTS: u32 = 8;
pub const BACKOFF: RetryBackoff = RetryBackoff { first: Millis(2), most: Millis(20) };
pub const DEADLINE: Millis = Millis(150);

/// Mixes a number, so that what follows from it looks random and is the same everywhere.
pub fn mix(number: u64) -> u64 {
    let mixed = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 13
}

pub fn topic(event: u64) -> String {
    let number = mix(event) % TOPICS;
    format!("group{}.topic{number}", number % 5)
}

pub fn key(event: u64) -> String {
    format!("key{}", mix(event + 1_000_000) % 40)
}

/// Three take everything; of the others each takes one group or a few topics.
pub fn patterns(subscriber: u64) -> Vec<String> {
    match subscriber {
        0..3 => vec![">".to_owned()],
        3..8 => vec![format!("group{}.*", subscriber - 3)],
        _ => (0..4).map(|nth| format!("*.topic{}", (subscriber * 4 + nth) % TOPICS)).collect(),
    }
}

pub fn name(subscriber: u64) -> String {
    format!("extension-{subscriber}/handler")
}

pub fn wants(subscriber: u64, event: u64) -> bool {
    let topic = topic(event);
    let (group, word) = topic.split_once('.').unwrap();
    patterns(subscriber).iter().any(|pattern| match pattern.split_once('.') {
        None => true,
        Some((wanted, "*")) => wanted == group,
        Some((_, wanted)) => wanted == word,
    })
}

/// What a handler does with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Take,
    /// Fails so many times.
    Fail(u32),
    FailAlways,
    Panic,
    /// Hangs the first time.
    Hang,
    /// Kills the process so many times.
    Kill(u32),
}

pub fn act(subscriber: u64, event: u64) -> Act {
    let dice = mix(subscriber * 1_000_003 + event);
    match dice % 4_000 {
        0..80 => Act::Fail(1 + (dice >> 20) as u32 % 3),
        80..88 => Act::FailAlways,
        88..96 => Act::Panic,
        96..100 => Act::Hang,
        100 => Act::Kill(1 + (dice >> 20) as u32 % 2),
        _ => Act::Take,
    }
}
