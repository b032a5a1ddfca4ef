//! A schedule's text, understood: which of the three forms it is, and what is due when.

use std::fmt;

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::system_frames::ScheduleSpec;
use jiff::Timestamp;

use crate::cron::Cron;
use crate::interval::Interval;
use crate::moment;
use crate::zone::Zone;

/// Longer texts are a mistake, and are not repeated in messages.
const MAX_TEXT_BYTES: usize = 200;

/// A clock that is put back by no more than this makes up for a small error. Where it is put back further, it was wrong before.
const MAX_AHEAD: Millis = Millis(3 * 3_600_000);

/// When something is due.
#[derive(Clone)]
pub struct Timetable {
    text: String,
    zone: Zone,
    rule: Rule,
}

#[derive(Clone)]
enum Rule {
    Cron(Box<Cron>),
    Every(Interval),
    Once(Millis),
}

impl Timetable {
    /// Reads a cron expression (`0 3 * * *`, `@daily`), an interval (`every 15m`, `PT15M`) or a moment (`2027-01-31T09:00`). Local times
    /// are times in the zone.
    pub fn parse(text: &str, zone: &Zone) -> Result<Self, Problem> {
        let text = text.trim();
        if text.len() > MAX_TEXT_BYTES {
            return Err(Problem::new(
                Code::ScheduleCron,
                format!("it is longer than {MAX_TEXT_BYTES} letters"),
            ));
        }
        let rule = Rule::parse(text, zone)?;
        Ok(Self { text: text.to_owned(), zone: zone.clone(), rule })
    }

    /// The timetable of a manifest's schedule. The zone is for one that names none.
    pub fn of(spec: &ScheduleSpec, default: &Zone) -> Result<Self, Problem> {
        match &spec.timezone {
            Some(name) => Self::parse(&spec.cron, &Zone::named(name)?),
            None => Self::parse(&spec.cron, default),
        }
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The zone of its local times.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The first due time that is later than a moment; none if nothing comes any more.
    pub fn next_after(&self, moment: Millis) -> Option<Millis> {
        match &self.rule {
            Rule::Cron(cron) => as_millis(cron.next_after(as_timestamp(moment)?, &self.zone)?),
            Rule::Every(interval) => interval.next_after(moment),
            Rule::Once(due) => Some(*due).filter(|due| *due > moment),
        }
    }

    /// How far the last due time may be ahead of the clock. If it is further, the clock was put back, and due times count from it again.
    /// None for a single moment, which is due once.
    pub fn max_ahead(&self) -> Option<Millis> {
        match &self.rule {
            Rule::Cron(_) => Some(MAX_AHEAD),
            // It is a span of time and no time of the day: nothing is lost by counting it from another moment.
            Rule::Every(interval) => Some(interval.step().min(MAX_AHEAD)),
            Rule::Once(_) => None,
        }
    }

    /// The due times that are later than one moment and not later than another: the first of them, as many as the limit allows.
    pub fn due_between(&self, after: Millis, until: Millis, limit: usize) -> Vec<Millis> {
        let next = |moment: &Millis| self.next_after(*moment);
        let due = std::iter::successors(self.next_after(after), next);
        due.take_while(|due| *due <= until).take(limit).collect()
    }

    /// The last due time of that span. It takes as long for a year as for an hour, however much was due.
    pub fn last_between(&self, after: Millis, until: Millis) -> Option<Millis> {
        let falls_in = |moment: Millis| self.next_after(moment).filter(|due| *due <= until);
        let mut last = falls_in(after)?;
        // Something is due after `last - 1`, and nothing after `until`; the last due time is where that changes.
        let (mut low, mut high) = (last, until);
        while low < high {
            match falls_in(Millis(low.0 + (high.0 - low.0) / 2)) {
                Some(due) => (last, low) = (due, due),
                None => high = Millis(low.0 + (high.0 - low.0) / 2),
            }
        }
        Some(last)
    }
}

impl Rule {
    fn parse(text: &str, zone: &Zone) -> Result<Self, Problem> {
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let is_word = |word: &str| first.eq_ignore_ascii_case(word);
        if is_word("every") {
            return Interval::parse(text, rest, zone).map(Rule::Every);
        }
        if first.starts_with(['P', 'p']) {
            return Interval::parse(text, text, zone).map(Rule::Every);
        }
        if is_word("at") {
            return moment::parse(rest, zone).map(Rule::Once);
        }
        if looks_like_a_date(first) {
            return moment::parse(text, zone).map(Rule::Once);
        }
        Cron::parse(text).map(|cron| Rule::Cron(Box::new(cron)))
    }
}

/// Whether a text begins like `2027-…`, as no cron expression does.
fn looks_like_a_date(text: &str) -> bool {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    digits == 4 && text[digits..].starts_with('-')
}

impl fmt::Display for Timetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.zone)
    }
}

impl fmt::Debug for Timetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn as_timestamp(moment: Millis) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(moment.0).ok()?).ok()
}

/// A moment as the frames have it; none before 1970.
pub(crate) fn as_millis(moment: Timestamp) -> Option<Millis> {
    u64::try_from(moment.as_millisecond()).ok().map(Millis)
}
