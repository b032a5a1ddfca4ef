//! Usage and limits: what models have used, daily limits, what a turn may delegate, and where a limit is set.
//!
//! | file | contents |
//! |---|---|
//! | `meter.rs` | tokens and cost by model in this process |
//! | `daily_usage.rs` | daily usage and its limits, rebuilt from the log |
//! | `delegated.rs` | what a turn may still use for agents that its extensions call |
//! | `limit_source.rs` | which setting the limit comes from that ended a turn |

mod daily_usage;
mod delegated;
mod limit_source;
mod meter;

pub use daily_usage::DailyLimit;
pub(crate) use daily_usage::{DailyUsage, used_by_model};
pub(crate) use delegated::{DelegatedBudget, DelegatedUsage};
pub(crate) use limit_source::cap_place;
pub(crate) use meter::Meter;
pub use meter::ModelUsage;
