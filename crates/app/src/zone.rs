//! The time zone of the machine.

use std::ffi::OsString;

use holdfast_runtime::Zone;

/// The time zone of this machine: what `TZ` names, or what `/etc/localtime` leads to; without either, UTC.
pub(crate) fn host_zone(environment: fn(&str) -> Option<OsString>) -> Zone {
    let variable = environment("TZ").and_then(|zone| zone.into_string().ok());
    let link = || Some(std::fs::read_link("/etc/localtime").ok()?.to_str()?.to_owned());
    let name = variable.filter(|zone| !zone.is_empty()).or_else(link).unwrap_or_default();
    let name = name.rsplit_once("zoneinfo/").map_or(name.as_str(), |(_, name)| name);
    Zone::named(name.trim_start_matches(':')).unwrap_or_else(|_| Zone::utc())
}
