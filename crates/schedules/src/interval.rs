//! A span of real time that is repeated, counted from the beginning of 1970 or from a given moment, so that every restart counts the same.

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use jiff::{Span, SpanRelativeTo};

use crate::moment;
use crate::zone::Zone;

/// Every so often.
#[derive(Clone, Copy)]
pub(crate) struct Interval {
    first: Millis,
    step: u64,
}

impl Interval {
    /// Reads `15m`, `1h 30m`, `PT15M`, and a `from` with a moment after it.
    pub(crate) fn parse(whole: &str, text: &str, zone: &Zone) -> Result<Self, Problem> {
        let lower = text.to_ascii_lowercase();
        let (span, first) = match lower.find(" from ") {
            Some(place) => (&text[..place], moment::parse(&text[place + " from ".len()..], zone)?),
            None => (text, Millis(0)),
        };
        let problem = |what: &str| Problem::new(Code::ScheduleInterval, format!("`{whole}` {what}"));
        let span: Span = span.trim().parse().map_err(|_| problem("has a duration that cannot be read"))?;
        if span.get_years() != 0 || span.get_months() != 0 {
            return Err(problem("counts in months or years, which are not of one length")
                .help("Use a cron expression: `0 9 1 * *` is at nine on the first of every month."));
        }
        // A day is 24 hours, also across a daylight saving change: an interval is a span of real time.
        let span = span.to_duration(SpanRelativeTo::days_are_24_hours());
        let span = span.map_err(|_| problem("is too long"))?;
        match u64::try_from(span.as_millis()) {
            Ok(step) if step >= 1_000 && span.subsec_nanos() % 1_000_000 == 0 => Ok(Self { first, step }),
            Ok(1_000..) => Err(problem("is not a whole number of milliseconds")),
            _ => Err(problem("is shorter than a second")),
        }
    }

    /// Its length.
    pub(crate) fn step(&self) -> Millis {
        Millis(self.step)
    }

    pub(crate) fn next_after(&self, moment: Millis) -> Option<Millis> {
        if moment < self.first {
            return Some(self.first);
        }
        let count = moment.since(self.first).0 / self.step + 1;
        self.step.checked_mul(count)?.checked_add(self.first.0).map(Millis)
    }
}
