use std::process::Command;

use crate::linux::calls::{self, FilterOptions, Network};
use crate::report;

#[test]
fn this_machine_can_confine() {
    let report = report();
    assert!(report.confined && report.seccomp && report.namespaces && report.is_whole(), "{report}");
    assert!(report.landlock.is_some_and(|version| version >= 3), "{report}");
    assert!(report.to_string().starts_with("programs run confined\n  landlock: version "));
}

/// On a kernel whose Landlock does not hold signals back, seccomp lets them reach the own group only.
#[test]
fn signals_stay_in_the_group_without_landlocks_help() {
    let mut victim = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    let wanted =
        FilterOptions { group: Some(std::process::id()), signals_by_group: true, network: Network::Closed };
    let filters = calls::filters(&wanted).unwrap();
    let script = format!("kill -9 {}; kill -0 {}; kill -0 0 && echo own", victim.id(), std::process::id());
    let output = std::thread::spawn(move || {
        calls::apply(filters).unwrap();
        Command::new("/bin/sh").args(["-c", &script]).output().unwrap()
    });
    let output = output.join().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "own\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr).matches("not permitted").count(), 2);
    assert!(victim.try_wait().unwrap().is_none(), "it lives");
    victim.kill().unwrap();
    victim.wait().unwrap();
}
