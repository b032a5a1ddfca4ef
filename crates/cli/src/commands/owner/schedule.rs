//! `holdfast schedule …`: the schedules of extensions, their next and last runs, and running one now.

use holdfast_contract::problem::Problem;
use holdfast_rpc::{NoParams, ScheduleInfo, ScheduleMethod, ScheduleParams, ScheduleRan};

use crate::arguments::Schedule;
use crate::client::link::Link;
use crate::exit::Exit;
use crate::output::{Output, table};
use crate::time::moment;

pub(crate) async fn schedule(output: &Output, link: &Link, command: Schedule) -> Result<Exit, Problem> {
    match command {
        Schedule::List => list(output, link).await,
        Schedule::Run { name } => run(output, link, name).await,
    }
}

async fn list(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let schedules: Vec<ScheduleInfo> = link.client.ask(&ScheduleMethod::List(NoParams {})).await?;
    if output.json {
        return output.documents(&schedules);
    }
    let rows = schedules.into_iter().map(|schedule| {
        let next = schedule.next.map_or_else(|| "never".to_owned(), moment);
        let (last, outcome) = match schedule.last {
            Some(last) => {
                let fault = last.fault.map(|fault| format!(": {fault}")).unwrap_or_default();
                (moment(last.began), last.outcome + &fault)
            }
            None => ("never".to_owned(), String::new()),
        };
        [schedule.name, schedule.extension, schedule.when, schedule.zone, next, last, outcome]
    });
    let head = ["schedule", "extension", "when", "zone", "next run", "last run", "outcome"];
    let empty = "no schedules; an extension lists them under `schedules` in its manifest";
    output.lines(table(head, rows, empty))?;
    Ok(Exit::Done)
}

async fn run(output: &Output, link: &Link, name: String) -> Result<Exit, Problem> {
    let ran: ScheduleRan = link.client.ask(&ScheduleMethod::Run(ScheduleParams { name })).await?;
    let succeeded = ran.fault.is_none();
    if output.json {
        output.document(&ran)?;
    } else {
        let fault = ran.fault.map(|fault| format!(": {fault}")).unwrap_or_default();
        output.line(format!("{} {}{fault}", ran.id, ran.outcome))?;
    }
    Ok(succeeded.into())
}
