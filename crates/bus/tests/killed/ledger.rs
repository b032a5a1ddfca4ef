//! The ledger outside: a file that each process adds lines to, one write each. What a killed process wrote stays.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// A publisher was told that its event is on disk.
    Acknowledged { event: u64 },
    /// A handler was called.
    Called { subscriber: u64, event: u64, attempt: u32, repeat: bool },
    /// It did what it was there for.
    Took { subscriber: u64, event: u64 },
}

pub struct Ledger(File);

impl Ledger {
    pub fn open(path: &Path) -> Self {
        Self(File::options().create(true).append(true).open(path).unwrap())
    }

    pub fn note(&self, noted: Noted) {
        let line = match noted {
            Noted::Acknowledged { event } => format!("acknowledged {event}\n"),
            Noted::Called { subscriber, event, attempt, repeat } => {
                format!("called {subscriber} {event} {attempt} {}\n", u8::from(repeat))
            }
            Noted::Took { subscriber, event } => format!("took {subscriber} {event}\n"),
        };
        (&self.0).write_all(line.as_bytes()).unwrap();
    }

    pub fn read(path: &Path) -> Vec<Noted> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let parse = |line: &str| {
            let mut words = line.split(' ');
            let kind = words.next().unwrap();
            let mut number = || words.next().unwrap().parse::<u64>().unwrap();
            match kind {
                "acknowledged" => Noted::Acknowledged { event: number() },
                "called" => Noted::Called {
                    subscriber: number(),
                    event: number(),
                    attempt: number() as u32,
                    repeat: number() == 1,
                },
                _ => Noted::Took { subscriber: number(), event: number() },
            }
        };
        text.lines().map(parse).collect()
    }
}
