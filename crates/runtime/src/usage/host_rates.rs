//! How many host calls extensions make. Each is recorded, and what it publishes is too, so a loop of them would fill the disk. Time is real
//! time here, and a refusal is an answer that is recorded like any other.

use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::problem::{Code, Fault};
use holdfast_home::HostCallRate;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// How often the refusals of one extension are recorded and reported: each would make the log longer, like the calls themselves.
const REPORT_INTERVAL: Millis = Millis(60_000);

/// Counts the host calls of each extension, by its id: a new version goes on where the last one was.
pub(crate) struct HostCallRates {
    set: HostCallRate,
    buckets: Mutex<FxHashMap<ExtensionId, Bucket>>,
}

/// What an extension may still do at a moment. Thousandths, so that every millisecond adds something. Less than nothing is left after a
/// call that was larger than what was left.
#[derive(Clone, Copy)]
struct Bucket {
    calls: i128,
    bytes: i128,
    at: Millis,
    reported: Option<Millis>,
}

impl HostCallRates {
    pub(crate) fn new(set: HostCallRate) -> Self {
        Self { set, buckets: Mutex::default() }
    }

    /// Counts a call; a fault if there were too many.
    pub(crate) fn admit(&self, id: &ExtensionId, call: &HostCall, now: Millis) -> Result<(), Fault> {
        let (set, mut buckets) = (self.set, self.buckets.lock());
        let full = Bucket {
            calls: i128::from(set.burst) * 1_000,
            bytes: i128::from(set.burst_bytes) * 1_000,
            at: now,
            reported: None,
        };
        let bucket = buckets.entry(id.clone()).or_insert(full);
        let passed = i128::from(now.0.saturating_sub(bucket.at.0));
        bucket.calls = full.calls.min(bucket.calls + i128::from(set.per_second) * passed);
        bucket.bytes = full.bytes.min(bucket.bytes + i128::from(set.bytes_per_second) * passed);
        bucket.at = Millis(bucket.at.0.max(now.0));
        if bucket.calls < 1_000 || bucket.bytes <= 0 {
            let (what, rate) = if bucket.bytes <= 0 {
                ("bytes with host calls", set.bytes_per_second)
            } else {
                ("host calls", u64::from(set.per_second))
            };
            let message = format!("`{id}` made too many {what}; it may make {rate} more each second");
            return Err(Fault::new(Code::HostCallRate, message));
        }
        bucket.calls -= 1_000;
        bucket.bytes -= i128::from(call.recorded_bytes()) * 1_000;
        Ok(())
    }

    /// Whether a refusal is to be recorded and reported; others followed one that was.
    pub(crate) fn reports(&self, id: &ExtensionId, now: Millis) -> bool {
        let mut buckets = self.buckets.lock();
        let Some(bucket) = buckets.get_mut(id) else { return true };
        let due = bucket.reported.is_none_or(|last| now.0.saturating_sub(last.0) >= REPORT_INTERVAL.0);
        if due {
            bucket.reported = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use holdfast_contract::content::Content;

    use super::*;

    #[test]
    fn a_flood_is_refused_and_goes_on_at_the_rate() {
        let set = HostCallRate { per_second: 10, burst: 100, bytes_per_second: 1_000, burst_bytes: 50_000 };
        let (rates, id) = (HostCallRates::new(set), ExtensionId::from("flood"));
        let admitted = |rates: &HostCallRates, call: &HostCall, calls: usize, now: u64| {
            (0..calls).filter(|_| rates.admit(&id, call, Millis(now)).is_ok()).count()
        };
        let small = HostCall::Clock;
        assert_eq!(admitted(&rates, &small, 1_000, 0), 100);
        assert_eq!(admitted(&rates, &small, 1_000, 500), 5);
        assert_eq!(admitted(&rates, &small, 1_000, 60_000), 100, "never more than the burst");
        assert_eq!(rates.admit(&id, &small, Millis(60_000)).unwrap_err().code, Code::HostCallRate);
        assert!(rates.admit(&"other".into(), &small, Millis(60_000)).is_ok(), "others are not affected");
        assert!(rates.reports(&id, Millis(60_000)) && !rates.reports(&id, Millis(60_001)));
        assert!(rates.reports(&id, Millis(120_000)));

        let large = HostCall::Inject { text: Content::text("x".repeat(20_000)) };
        let rates = HostCallRates::new(set);
        assert_eq!(admitted(&rates, &large, 50, 0), 3);
        assert_eq!(admitted(&rates, &large, 50, 1_000), 0, "the last one was larger than what was left");
        assert_eq!(admitted(&rates, &large, 50, 12_000), 1);
        // A clock that was put back gives nothing, and takes nothing.
        assert_eq!(admitted(&rates, &large, 50, 0), 0);
    }
}
