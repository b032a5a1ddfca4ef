//! The commands that list and change what is in a home: on a home that is down, and on one that another process owns.

mod bus;
#[cfg(target_os = "linux")]
mod channels;
mod extensions;
mod policy;
#[cfg(target_os = "linux")]
mod schedules;
mod secrets;

use crate::shared::{Owner, Scene};

/// Checks the same on a home that is down, and on one that is up.
fn down_and_up(scene: &Scene, check: impl Fn(&Scene)) {
    check(scene);
    let _owner = Owner::begin(scene);
    check(scene);
}
