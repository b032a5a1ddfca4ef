//! Cron expressions, and what becomes of them when the clocks are changed.
//!
//! The search runs over local times, which know no changes; what a local time means is decided here. An expression that allows every hour
//! is due whenever the clocks show a time that fits. Any other names times of the day, and each of them comes once a day: one that is left
//! out when the clocks go forward is due at that moment, one that comes twice is due the first time.

mod field;

use croner::parser::{CronParser, Seconds, Year};
use holdfast_contract::problem::{Code, Problem};
use jiff::Timestamp;
use jiff::civil::{DateTime, date};

use crate::zone::Zone;

/// The expressions for `@daily` and the like.
const NICKNAMES: &[(&str, &str)] = &[
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A cron expression.
#[derive(Clone)]
pub(crate) struct Cron {
    pattern: croner::Cron,
    every_hour: bool,
}

impl Cron {
    /// Reads five fields, six with seconds in front, or a nickname. One that never comes is refused.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let fields = if text.starts_with('@') { nickname(text)? } else { text };
        let plain = field::plain(fields)?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let pattern = parser.parse(&plain).map_err(|error| {
            let what = format!("`{text}` cannot be understood: {}", error.to_string().to_lowercase());
            Problem::new(Code::ScheduleCron, what)
        })?;
        let cron = Self { every_hour: pattern.pattern.hours.values().len() == 24, pattern };
        // Every date that there is comes within the 28 years that begin here.
        match cron.next_local(date(2000, 1, 1).at(0, 0, 0, 0), true) {
            Some(_) => Ok(cron),
            None => Err(Problem::new(Code::ScheduleNever, format!("`{text}` names a date that never comes"))),
        }
    }

    /// The first due time that is later than a moment.
    pub(crate) fn next_after(&self, moment: Timestamp, zone: &Zone) -> Option<Timestamp> {
        if self.every_hour { self.next_shown(moment, zone) } else { self.next_named(moment, zone) }
    }

    /// When the clocks next show a time that fits, also if they have shown it before.
    fn next_shown(&self, moment: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let (mut from, mut inclusive) = (moment, false);
        loop {
            let local = self.next_local(zone.local(from), inclusive)?;
            let due = zone.unchanged_since(from, local)?;
            match zone.next_change(from).filter(|change| *change <= due) {
                Some(change) => (from, inclusive) = (change, true),
                None => return Some(due),
            }
        }
    }

    /// When a named time next comes for the first time.
    fn next_named(&self, moment: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut local = zone.local(moment);
        loop {
            local = self.next_local(local, false)?;
            // In an hour that comes again, the times ahead on the clock were due an hour ago.
            let due = zone.moment(local)?;
            if due > moment {
                return Some(due);
            }
        }
    }

    fn next_local(&self, local: DateTime, inclusive: bool) -> Option<DateTime> {
        self.pattern.find_next_occurrence(&local, inclusive).ok()
    }
}

fn nickname(text: &str) -> Result<&'static str, Problem> {
    let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    known.map(|(_, fields)| *fields).ok_or_else(|| {
        let problem = Problem::new(Code::ScheduleCron, format!("there is no nickname `{text}`"));
        if text.eq_ignore_ascii_case("@reboot") {
            return problem.help("A schedule knows no starts; an extension's `start` is called at each.");
        }
        let names: Vec<_> = NICKNAMES.iter().map(|(name, _)| format!("`{name}`")).collect();
        problem.help(format!("Use one of {}.", names.join(", ")))
    })
}
