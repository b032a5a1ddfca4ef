//! What is going to happen, drawn from a seed before anything does: a world is one database with a few dozen sessions, and one or
//! more lives, each ended by a stop or a crash.

use holdfast_contract::ids::{Millis, ModelName};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Limits;
use holdfast_contract::session_frames::SessionSettings;

use super::dice::Dice;
use super::hooks::CHANNELS;

/// One database and everything that happens on it.
#[derive(Clone, Debug)]
pub struct WorldPlan {
    pub seed: u64,
    pub profile: Profile,
    /// How each life but the last ends.
    pub endings: Vec<Ending>,
    pub sessions: Vec<SessionPlan>,
}

/// The end of a life.
#[derive(Clone, Debug)]
pub struct Ending {
    /// After how many rounds of the driver.
    pub rounds: u64,
    pub how: How,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// Everything is closed.
    Stopped,
    /// The process is gone; whatever was handed to the log is there.
    Dropped,
    /// The process is gone, and the log ends within a step: after its fact, before its last decision.
    Torn,
}

/// One conversation.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    pub id: String,
    pub channel: &'static str,
    pub settings: SessionSettings,
    pub acts: Vec<Act>,
}

/// Something a user does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Says something, and perhaps thinks better of it a little later.
    Say {
        text: String,
        cancel_after: Option<u64>,
    },
    /// Says something, closes the session in the middle, and takes it up again.
    Reopen {
        text: String,
        after: u64,
    },
    Compact,
    End,
}

impl WorldPlan {
    /// The world of this seed with so many sessions.
    pub fn new(seed: u64, sessions: usize) -> Self {
        let mut dice = Dice::of(&format!("world {seed}"));
        let (profile, endings) = Self::frame(&mut dice);
        let sessions = (0..sessions).map(|index| SessionPlan::new(seed, index)).collect();
        Self { seed, profile, endings, sessions }
    }

    /// The world that these bytes stand for: the first two are the seed of what extensions and models do, the others choose what users
    /// do and how lives end.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (seed, rest) = bytes.split_at(bytes.len().min(2));
        let seed = seed.iter().fold(0, |seed, byte| (seed << 8) | u64::from(*byte));
        let mut dice = Dice::reading(rest);
        let (profile, endings) = Self::frame(&mut dice);
        let sessions =
            (0..dice.between(1, 3)).map(|index| SessionPlan::draw(&mut dice, index as usize, false));
        Self { seed, profile, endings, sessions: sessions.collect() }
    }

    /// The profile, and how the lives end.
    fn frame(dice: &mut Dice) -> (Profile, Vec<Ending>) {
        let profile = dice.pick(&[Profile::FullAuto, Profile::FullAuto, Profile::Standard, Profile::Safe]);
        let ending = |dice: &mut Dice| Ending {
            rounds: dice.between(3, 60),
            how: dice.pick(&[How::Stopped, How::Dropped, How::Torn, How::Torn]),
        };
        let endings = (0..dice.between(0, 3)).map(|_| ending(dice)).collect();
        (profile, endings)
    }
}

impl SessionPlan {
    fn new(seed: u64, index: usize) -> Self {
        let mut dice = Dice::of(&format!("session {seed} {index}"));
        // Once in a while a session is long enough for a snapshot on the way.
        Self::draw(&mut dice, index, seed % 10 == 3 && index == 0)
    }

    fn draw(dice: &mut Dice, index: usize, long: bool) -> Self {
        let id = if long { format!("long{index}") } else { format!("s{index}") };
        let turns = if long { 36 } else { dice.pick(&[1, 1, 2, 2, 3, 4]) };
        let mut acts: Vec<Act> = (0..turns).map(|_| Act::random(dice, long)).collect();
        if dice.one_in(5) {
            acts.push(Act::End);
        }
        let settings = if long { tireless() } else { settings(dice) };
        Self { id, channel: dice.pick(&CHANNELS), settings, acts }
    }
}

impl Act {
    fn random(dice: &mut Dice, long: bool) -> Self {
        let text = match dice.below(12) {
            0 => "a long story ".repeat(400),
            1 => String::new(),
            _ => format!("{} {}", dice.pick(&["count to", "write down", "forget"]), dice.below(100)),
        };
        match dice.below(16) {
            0 if !long => Act::Compact,
            1 | 2 => Act::Reopen { text, after: dice.below(24) },
            3..=5 if !long => Act::Say { text, cancel_after: Some(dice.below(30)) },
            _ => Act::Say { text, cancel_after: None },
        }
    }
}

fn tireless() -> SessionSettings {
    SessionSettings { models: vec!["main".into()], ..SessionSettings::default() }
}

fn settings(dice: &mut Dice) -> SessionSettings {
    let models: &[&str] =
        dice.pick(&[&["main"][..], &["main", "spare"], &["ghost", "main"], &["spare", "main", "ghost"]]);
    SessionSettings {
        models: models.iter().map(|name| ModelName::from(*name)).collect(),
        attempts: dice.between(1, 3) as u32,
        limits: limits(dice),
        depth_cap: dice.below(3) as u8,
        authoritative_routing: dice.one_in(2),
        ..SessionSettings::default()
    }
}

fn limits(dice: &mut Dice) -> Limits {
    Limits {
        max_turns: dice.pick(&[2, 3, 4, 6]),
        max_tokens: dice.pick(&[400, 1_500, 50_000, 50_000]),
        time_budget: Millis(dice.pick(&[2_000, 10_000, 60_000, 120_000])),
        max_cost_micros: dice.one_in(8).then(|| dice.between(100, 500)),
        max_tool_calls: dice.one_in(6).then(|| dice.between(1, 4) as u32),
        session_tokens: dice.one_in(8).then(|| dice.between(100, 1_000)),
        session_cost_micros: dice.one_in(8).then(|| dice.between(100, 500)),
        session_tool_calls: dice.one_in(8).then(|| dice.between(1, 6) as u32),
        session_time: dice.one_in(8).then(|| Millis(dice.between(2_000, 30_000))),
    }
}
