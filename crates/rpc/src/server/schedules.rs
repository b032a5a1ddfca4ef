//! Answers about schedules.

use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::system_frames::ScheduleEnded;
use holdfast_runtime::{RunOutcome, ScheduleRun, ScheduleView};
use serde_json::Value;

use super::{Connection, value};
use crate::protocol::{NoParams, ScheduleInfo, ScheduleMethod, ScheduleParams, ScheduleRan, ScheduleRunInfo};

const SUCCEEDED: &str = "succeeded";
const FAILED: &str = "failed";

impl Connection {
    pub(super) async fn answer_schedules(&self, method: ScheduleMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        // What is listed is complete, unless an extension takes too long.
        runtime.ready().await;
        match method {
            ScheduleMethod::List(NoParams {}) => {
                let schedules: Vec<ScheduleInfo> = runtime.schedules()?.into_iter().map(info).collect();
                value(&schedules)
            }
            ScheduleMethod::Run(ScheduleParams { name }) => {
                let ScheduleEnded { schedule, due, fault } = runtime.run_schedule(&name).await?;
                let outcome = if fault.is_some() { FAILED } else { SUCCEEDED }.to_owned();
                let fault = fault.as_ref().map(Fault::to_string);
                value(&ScheduleRan { id: schedule.to_string(), due, outcome, fault })
            }
        }
    }
}

fn info(view: ScheduleView) -> ScheduleInfo {
    ScheduleInfo {
        id: view.id.to_string(),
        extension: view.extension.to_string(),
        name: view.spec.name,
        task: view.spec.task,
        when: view.spec.cron,
        zone: view.zone,
        next: view.next,
        last: view.last.map(run),
    }
}

fn run(ScheduleRun { due, began, outcome }: ScheduleRun) -> ScheduleRunInfo {
    let (outcome, fault) = match outcome {
        RunOutcome::Running => ("running", None),
        RunOutcome::Interrupted => ("interrupted", None),
        RunOutcome::Succeeded => (SUCCEEDED, None),
        RunOutcome::Failed(fault) => (FAILED, Some(fault.to_string())),
    };
    ScheduleRunInfo { due, began, outcome: outcome.to_owned(), fault }
}
