//! Usage and limits: what models have used, daily limits, what a turn may delegate, and where a limit is set.
//!
//! | file | contents |
//! |---|---|
//! | `meter.rs` | tokens and cost by model in this process |
//! | `daily_usage.rs` | daily usage and its limits, rebuilt from the log |
//! | `delegated.rs` | what a turn may still use for agents that its extensions call |
//! | `host_rates.rs` | how many host calls extensions make |
//! | `limit_source.rs` | which setting the limit comes from that ended a turn |

mod daily_usage;
mod delegated;
mod host_rates;
mod limit_source;
mod meter;

pub use daily_usage::DailyLimit;
pub(crate) use daily_usage::used_by_model;
pub(crate) use delegated::DelegatedBudget;
pub(crate) use host_rates::HostCallRates;
pub(crate) use limit_source::cap_place;
pub use meter::ModelUsage;

use daily_usage::DailyUsage;
use holdfast_contract::ids::Millis;
use holdfast_schedules::Zone;
use meter::Meter;

/// What was used: by models in this process, and in a day.
pub(crate) struct Usage {
    meter: Meter,
    daily: DailyUsage,
}

impl Usage {
    pub(crate) fn new(zone: Zone, now: Millis) -> Self {
        Self { meter: Meter::new(now), daily: DailyUsage::new(zone) }
    }

    /// The usage of models in this process.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The usage of the day, and its limits.
    pub(crate) fn daily(&self) -> &DailyUsage {
        &self.daily
    }
}
