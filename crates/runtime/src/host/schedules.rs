//! The capability `timers`: when a schedule is next due, and waiting until a point in time.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::{ScheduleNextArguments, ScheduleWaitArguments};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::wire::Later;
use holdfast_schedules::{Timetable, Zone};

use crate::runtime::Inner;
use crate::system::MAX_SLEEP;

impl Inner {
    pub(super) fn schedule_next(&self, arguments: &ScheduleNextArguments) -> Result<Content, Fault> {
        let now = self.clock.now();
        let next = self.next_due(arguments, now).map_err(|problem| problem.to_fault())?;
        Ok(Content::new(serde_json::json!({ "next": next, "now": now })))
    }

    fn next_due(&self, arguments: &ScheduleNextArguments, now: Millis) -> Result<Option<Millis>, Problem> {
        let zone = match &arguments.timezone {
            Some(name) => Zone::named(name)?,
            None => self.home.zone().clone(),
        };
        match (&arguments.when, &arguments.span) {
            (Some(when), None) => Ok(Timetable::parse(when, &zone)?.next_after(now)),
            // Counted from the epoch, the first repetition comes after one span.
            (None, Some(span)) => {
                let every = Timetable::parse(&format!("every {span}"), &zone)?;
                Ok(every.next_after(Millis(0)).map(|span| now.plus(span)))
            }
            _ => Err(Problem::new(Code::ToolArguments, "name one of `when` and `in`")),
        }
    }

    /// Waits until a point in time. The clock may be set meanwhile, so it is read again at intervals.
    pub(super) fn schedule_wait(
        self: &Arc<Self>,
        arguments: ScheduleWaitArguments,
    ) -> Later<Result<Content, Fault>> {
        let (clock, until) = (self.clock.clone(), arguments.until);
        Box::pin(async move {
            while clock.now() < until {
                clock.sleep(until.since(clock.now()).min(MAX_SLEEP)).await;
            }
            Ok(Content::of(&clock.now()))
        })
    }
}
