//! One moment: with an offset as RFC 3339 has it, or a local time in the schedule's zone.

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::timetable::as_millis;
use crate::zone::Zone;

/// The moment that a text names. A local time is dealt with as in a cron expression.
pub(crate) fn parse(text: &str, zone: &Zone) -> Result<Millis, Problem> {
    let text = text.trim();
    let problem = |what: &str| Problem::new(Code::ScheduleMoment, format!("`{text}` {what}"));
    if text.contains('[') {
        return Err(problem("names a zone in brackets").help("Name the zone with `timezone`."));
    }
    let moment = match (text.parse::<Timestamp>(), text.parse::<DateTime>()) {
        (Ok(moment), _) => Some(moment),
        (Err(_), Ok(_)) if !text.contains(':') => {
            let help = format!("Add one: `{text}T09:00`. For every year, use a cron expression.");
            return Err(problem("has a date and no time").help(help));
        }
        (Err(_), Ok(local)) => zone.moment(local),
        (Err(_), Err(_)) => return Err(problem("is not a date and time")),
    };
    moment.and_then(as_millis).ok_or_else(|| problem("is too long ago or too far away"))
}
