//! Requests about schedules, and their answers.

use holdfast_contract::ids::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClientRequest, Method, NoParams, Request};

methods! {
    /// What can be asked about schedules.
    Schedules: ScheduleMethod {
        /// The schedules of active extensions, with their next and last runs.
        "schedules.list" => List(NoParams),
        /// Run a schedule now. The answer comes when the run has ended.
        "schedule.run" => Run(ScheduleParams),
    }
}

/// A schedule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleParams {
    /// Its id, `<extension>/<name>`, or its name where no other extension has it.
    pub name: String,
}

/// A schedule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleInfo {
    /// Its id: `<extension>/<name>`.
    pub id: String,
    /// The extension.
    pub extension: String,
    /// Its name.
    pub name: String,
    /// The task that is run.
    pub task: String,
    /// The cron expression, interval or point in time.
    pub when: String,
    /// The time zone.
    pub zone: String,
    /// When it is due next, in milliseconds since 1970.
    pub next: Option<Millis>,
    /// The last run that the log has.
    pub last: Option<ScheduleRunInfo>,
}

/// A run of a schedule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleRunInfo {
    /// The moment it was due.
    pub due: Millis,
    /// When it began.
    pub began: Millis,
    /// `running`, `interrupted`, `succeeded` or `failed`.
    pub outcome: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A run that was asked for, and has ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleRan {
    /// The schedule's id.
    pub id: String,
    /// The moment that it was due, which identifies the run.
    pub due: Millis,
    /// `succeeded` or `failed`.
    pub outcome: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}
