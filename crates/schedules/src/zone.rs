//! Time zones by their names in the time zone database, which is part of the program.

use std::fmt;
use std::sync::LazyLock;

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone {
    inner: TimeZone,
}

/// A day, in milliseconds.
const DAY: u64 = 86_400_000;

impl Zone {
    /// The zone without daylight saving.
    pub fn utc() -> Self {
        Self { inner: TimeZone::UTC }
    }

    /// A zone by its name, such as `Europe/Vienna`. Capitals do not matter.
    pub fn named(name: &str) -> Result<Self, Problem> {
        let name = name.trim();
        DATABASE.get(name).map(|inner| Self { inner }).map_err(|_| unknown(name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.inner.iana_name().unwrap_or("UTC")
    }

    /// The day there at a moment, as it is written for people: `Friday, 3 May 2030`.
    pub fn date(&self, moment: Millis) -> String {
        let moment = i64::try_from(moment.0).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
        self.local(moment.unwrap_or(Timestamp::UNIX_EPOCH)).strftime("%A, %-d %B %Y").to_string()
    }

    /// What the clocks show.
    pub(crate) fn local(&self, moment: Timestamp) -> DateTime {
        self.inner.to_datetime(moment)
    }

    /// The moment at which clocks that are not changed on the way show this time, going by those of another moment.
    pub(crate) fn unchanged_since(&self, moment: Timestamp, local: DateTime) -> Option<Timestamp> {
        self.inner.to_offset(moment).to_timestamp(local).ok()
    }

    /// The local day of a point in time: its start and that of the next day.
    pub fn day(&self, moment: Millis) -> (Millis, Millis) {
        let whole = || {
            let moment = Timestamp::from_millisecond(i64::try_from(moment.0).ok()?).ok()?;
            let date = self.local(moment).date();
            let begins =
                |date: jiff::civil::Date| self.moment(date.to_datetime(jiff::civil::Time::midnight()));
            let millis = |moment: Timestamp| u64::try_from(moment.as_millisecond()).ok().map(Millis);
            Some((millis(begins(date)?)?, millis(begins(date.tomorrow().ok()?)?)?))
        };
        // Beyond what calendars know, days are as long as they always were.
        let begins = moment.0 - moment.0 % DAY;
        whole().unwrap_or((Millis(begins), Millis(begins.saturating_add(DAY))))
    }

    /// When the clocks, or the rules for them, are changed next.
    pub(crate) fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        self.inner.following(after).next().map(|change| change.timestamp())
    }

    /// The one moment that a local time stands for: of two, the first; where the clocks are put forward over it, the moment at which they are.
    pub(crate) fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let found = self.inner.to_ambiguous_timestamp(local);
        match found.offset() {
            // By the offset after the change, a skipped local time is before it.
            AmbiguousOffset::Gap { after, .. } => self.next_change(after.to_timestamp(local).ok()?),
            _ => found.earlier().ok(),
        }
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn unknown(name: &str) -> Problem {
    let shown: String = name.chars().take(60).collect();
    let problem = Problem::new(Code::ZoneUnknown, format!("there is no time zone `{shown}`"));
    match nearest(name) {
        Some(nearest) => problem.help(format!("Did you mean `{nearest}`?")),
        None => problem,
    }
}

/// The name that was probably meant: the one with this city, or else the one that is spelled most alike.
fn nearest(name: &str) -> Option<String> {
    let plain = |text: &str| text.to_lowercase().replace([' ', '-'], "_");
    let wanted = plain(name);
    let city = |text: &str| text.rsplit('/').next().map(str::to_owned).unwrap_or_default();
    let scored = DATABASE.available().filter_map(|known| {
        let known = known.as_str().to_owned();
        let spelled = plain(&known);
        let distance = if city(&spelled) == city(&wanted) {
            0
        } else {
            strsim::damerau_levenshtein(&spelled, &wanted)
                .min(strsim::damerau_levenshtein(&city(&spelled), &wanted))
        };
        (distance <= (wanted.chars().count() / 4).min(3)).then_some((distance, known))
    });
    scored.min().map(|(_, known)| known)
}
