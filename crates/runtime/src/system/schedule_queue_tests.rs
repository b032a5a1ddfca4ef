//! The schedule queue against the kernel's memory: a year of schedules, over two changes of the clocks and hundreds of restarts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::collections::BTreeMap;

use holdfast_contract::body::Body;
use holdfast_contract::effect::{Act, Input};
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::{
    ExtensionReported, ExtensionsFound, FoundExtension, LifecycleCommand, LifecycleOutcome, MissedPolicy,
    ScheduleEnded, ScheduleSpec, SystemSettled, SystemStarted,
};
use holdfast_kernel::System;
use holdfast_schedules::{GRACE, Timetable, Zone};

use super::{ClockReading, ScheduleQueue};

/// The first moment of 2026 in UTC.
const YEAR: Millis = Millis(1_767_225_600_000);
const DAY: u64 = 86_400_000;
const HOUR: u64 = 3_600_000;

/// A machine that can be stopped: what the kernel remembers stays, the schedule_queue does not.
struct World {
    system: System,
    schedule_queue: ScheduleQueue,
    found: FoundExtension,
    /// The steady clock.
    now: Millis,
    /// By how much the machine's clock was set.
    set: i64,
    /// The due times that were fired, by schedule.
    fired: BTreeMap<String, Vec<Millis>>,
    /// Why due times were passed over.
    skipped: Vec<(String, String)>,
    /// Whether runs fail.
    fails: bool,
}

impl World {
    fn new(schedules: Vec<ScheduleSpec>) -> Self {
        let found = FoundExtension { id: "clock".into(), schedules, ..FoundExtension::default() };
        let mut world = Self {
            system: System::new(),
            schedule_queue: ScheduleQueue::new(Zone::utc()),
            found,
            now: YEAR,
            set: 0,
            fired: BTreeMap::new(),
            skipped: Vec::new(),
            fails: false,
        };
        world.start();
        world
    }

    /// What the clocks show.
    fn clocks(&self) -> ClockReading {
        ClockReading { wall: Millis(self.now.0.saturating_add_signed(self.set)), steady: self.now }
    }

    /// Another process takes the system up.
    fn start(&mut self) {
        self.schedule_queue = ScheduleQueue::new(Zone::utc());
        self.feed(
            SystemStarted { kernel: 1, version: "test".to_owned(), ..SystemStarted::default() }.into(),
            None,
        );
        self.feed(ExtensionsFound { found: vec![self.found.clone()] }.into(), None);
        self.schedule_queue.serves(&self.found.id, &self.found.schedules);
    }

    /// Feeds a fact, and gives the runs that it sets going.
    fn feed(&mut self, body: Body, cause: Option<Seq>) -> Vec<(Seq, ScheduleEnded)> {
        let input = Input { at: self.clocks().wall, source: FrameSource::Host, cause, body };
        let effects = self.system.step(input).unwrap();
        let mut runs = Vec::new();
        for draft in effects.frames {
            match draft.body {
                Body::ScheduleFired(fired) => {
                    self.fired.entry(fired.schedule.to_string()).or_default().push(fired.due);
                }
                Body::ScheduleSkipped(skipped) => {
                    self.skipped.push((skipped.schedule.to_string(), skipped.reason));
                }
                _ => {}
            }
        }
        for act in effects.acts {
            match act {
                Act::RunTask { decided_by, schedule, due, .. } => {
                    let fault = self.fails.then(|| Fault::new(Code::ExtensionFault, "no"));
                    runs.push((decided_by, ScheduleEnded { schedule, due, fault }));
                }
                Act::Lifecycle { decided_by, extension, command } => {
                    let outcome = match command {
                        LifecycleCommand::Load => {
                            LifecycleOutcome::Loaded { descriptors: Vec::new(), lives: false, alone: false }
                        }
                        _ => LifecycleOutcome::Done,
                    };
                    let (id, generation) = (extension.id.clone(), extension.generation);
                    let reported = ExtensionReported { id, generation, command, outcome };
                    runs.extend(self.feed(reported.into(), Some(decided_by)));
                }
                _ => {}
            }
        }
        if self.system.is_dirty() {
            runs.extend(self.feed(SystemSettled::default().into(), None));
        }
        runs
    }

    /// Does what is due now, and gives the runs that it sets going.
    fn tick(&mut self) -> Vec<(Seq, ScheduleEnded)> {
        let due = self.schedule_queue.due(self.clocks(), &self.system.fired);
        due.into_iter().flat_map(|fact| self.feed(fact.into(), None)).collect()
    }

    fn end(&mut self, (cause, ended): (Seq, ScheduleEnded)) {
        self.schedule_queue.ended(&ended, self.clocks(), u32::MAX);
        self.feed(ended.into(), Some(cause));
    }

    /// Runs what is due until a moment; each run ends at once.
    fn until(&mut self, moment: Millis) {
        loop {
            for run in self.tick() {
                self.end(run);
            }
            let next = self.schedule_queue.next_in(self.clocks()).map(|span| self.now.plus(span));
            match next.filter(|next| *next <= moment) {
                Some(next) => self.now = next,
                None => break self.now = moment,
            }
        }
    }
}

fn schedule(name: &str, cron: &str, missed: MissedPolicy) -> ScheduleSpec {
    ScheduleSpec {
        name: name.to_owned(),
        cron: cron.to_owned(),
        task: name.to_owned(),
        timezone: Some("Europe/Vienna".to_owned()),
        missed,
    }
}

/// Numbers that look random and are the same every time.
fn below(seed: &mut u64, bound: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % bound
}

/// What must have run: of what came due while nothing was up, what the policy says; and everything else.
fn expected(spec: &ScheduleSpec, up: &[(Millis, Millis)]) -> Vec<Millis> {
    let timetable = Timetable::of(spec, &Zone::utc()).unwrap();
    let mut runs = Vec::new();
    let mut handled = YEAR;
    for (begun, ended) in up {
        let missed = timetable.due_between(handled, *begun, usize::MAX);
        match spec.missed {
            MissedPolicy::RunOnce => runs.extend(missed.last()),
            MissedPolicy::Skip => runs.extend(missed.last().filter(|due| begun.since(**due) <= GRACE)),
            MissedPolicy::RunAll => runs.extend(&missed[missed.len().saturating_sub(100)..]),
        }
        runs.extend(timetable.due_between(*begun, *ended, usize::MAX));
        handled = *ended;
    }
    runs
}

#[test]
fn a_year_with_two_changes_of_the_clocks_and_five_hundred_restarts() {
    let specs = vec![
        // Left out when the clocks go forward, and twice there when they go back.
        schedule("night", "30 2 * * *", MissedPolicy::RunOnce),
        schedule("hourly", "0 * * * *", MissedPolicy::Skip),
        schedule("quarter", "every 15m", MissedPolicy::RunAll),
        schedule("weekdays", "0 9 * * MON-FRI", MissedPolicy::RunOnce),
    ];
    let mut world = World::new(specs.clone());
    let (mut seed, mut up, mut begun) = (7, Vec::new(), YEAR);
    for restart in 0..500_u64 {
        let stop = Millis(YEAR.0 + 365 * DAY * (restart + 1) / 501 - below(&mut seed, DAY / 4));
        world.until(stop.max(world.now));
        up.push((begun, world.now));
        // Some stops come when a run has just begun, and nobody is told that it has ended.
        if restart % 3 == 0 {
            let next = world.schedule_queue.next_in(world.clocks()).unwrap();
            let soonest = next < Millis(DAY / 12);
            if soonest {
                world.now = world.now.plus(next);
                world.tick();
                up.last_mut().unwrap().1 = world.now;
            }
        }
        world.now = world.now.plus(Millis(below(&mut seed, DAY / 8)));
        world.start();
        begun = world.now;
    }
    world.until(Millis(YEAR.0 + 365 * DAY));
    up.push((begun, world.now));
    for spec in &specs {
        let fired = &world.fired[&format!("clock/{}", spec.name)];
        assert_eq!(*fired, expected(spec, &up), "{}", spec.name);
    }
    let nights = &world.fired["clock/night"];
    assert!(nights.len() > 350, "{} nights", nights.len());
    // What was passed over is said, and once.
    assert!(world.skipped.iter().any(|(id, why)| id == "clock/night" && why.contains("first seen")));
    assert!(world.skipped.iter().any(|(_, why)| why.contains("missed runs are skipped")));
}

#[test]
fn a_schedule_that_never_ran_still_makes_up_for_what_was_missed() {
    let mut world = World::new(vec![schedule("night", "0 3 * * *", MissedPolicy::RunOnce)]);
    world.until(YEAR.plus(Millis(3_600_000)));
    world.now = YEAR.plus(Millis(DAY));
    world.start();
    world.until(world.now);
    assert_eq!(world.fired["clock/night"].len(), 1, "the night's run is made up for");
    world.start();
    world.until(world.now);
    assert_eq!(world.fired["clock/night"].len(), 1, "once");
}

#[test]
fn what_fails_is_tried_five_times_and_then_left_until_it_is_next_due() {
    let mut world = World::new(vec![schedule("hourly", "0 * * * *", MissedPolicy::RunOnce)]);
    world.fails = true;
    world.until(YEAR.plus(Millis(2 * 3_600_000 - 1)));
    let due = YEAR.plus(Millis(3_600_000));
    assert_eq!(world.fired["clock/hourly"], [due; 5]);
    world.until(YEAR.plus(Millis(2 * 3_600_000)));
    assert_eq!(world.fired["clock/hourly"].last(), Some(&YEAR.plus(Millis(2 * 3_600_000))));
}

#[test]
fn a_run_that_takes_long_lets_others_pass_or_wait() {
    let hour = 3_600_000;
    for (missed, later) in [(MissedPolicy::RunOnce, 4), (MissedPolicy::RunAll, 2)] {
        let mut world = World::new(vec![schedule("hourly", "0 * * * *", missed)]);
        world.tick();
        world.now = YEAR.plus(Millis(hour));
        let run = world.tick().remove(0);
        for hours in 2..=3 {
            world.now = YEAR.plus(Millis(hours * hour));
            assert!(world.tick().is_empty());
        }
        world.end(run);
        world.until(YEAR.plus(Millis(4 * hour)));
        let fired = &world.fired["clock/hourly"];
        assert_eq!(fired[1], YEAR.plus(Millis(later * hour)), "{missed:?}: {fired:?}");
    }
}

#[test]
fn a_schedule_that_is_changed_counts_from_then() {
    let mut world = World::new(vec![schedule("it", "0 3 * * *", MissedPolicy::RunOnce)]);
    world.until(YEAR.plus(Millis(DAY / 2 + 60_000)));
    let before = world.fired["clock/it"].len();
    world.found.schedules = vec![schedule("it", "0 * * * *", MissedPolicy::RunOnce)];
    world.schedule_queue.serves(&world.found.id, &world.found.schedules);
    world.until(world.now);
    assert_eq!(world.fired["clock/it"].len(), before, "the hours before were not missed");
    assert!(world.skipped.iter().any(|(_, why)| why.contains("changed")));
}

/// A world in which an hourly schedule has run for five hours.
fn five_hours(cron: &str, missed: MissedPolicy) -> World {
    let mut world = World::new(vec![schedule("it", cron, missed)]);
    world.until(YEAR.plus(Millis(5 * HOUR + 60_000)));
    assert_eq!(world.fired["clock/it"].len(), 5);
    world
}

// Finding D12, for schedules.
#[test]
fn another_attempt_does_not_wait_for_a_clock_that_was_put_back() {
    for by in [25, -25, -25 * 60] {
        let mut world = World::new(vec![schedule("it", "0 * * * *", MissedPolicy::RunOnce)]);
        world.fails = true;
        world.until(YEAR.plus(Millis(HOUR)));
        assert_eq!(world.fired["clock/it"].len(), 1);
        world.set = by * 60_000;
        world.fails = false;
        world.until(world.now.plus(Millis(11_000)));
        assert_eq!(world.fired["clock/it"].len(), 2, "set by {by} minutes");
        assert_eq!(world.fired["clock/it"][1], YEAR.plus(Millis(HOUR)), "the same run");
        world.until(world.now.plus(Millis(2 * HOUR)));
        let next = world.fired["clock/it"].get(2);
        assert!(next.is_some_and(|due| world.clocks().wall.since(*due) < Millis(2 * HOUR)), "{next:?}");
    }
}

#[test]
fn a_clock_that_is_put_back_a_little_repeats_no_run() {
    for cron in ["0 * * * *", "every 1h"] {
        for restarts in [false, true] {
            let mut world = five_hours(cron, MissedPolicy::RunOnce);
            world.set = -(HOUR as i64) / 2;
            if restarts {
                world.start();
            }
            world.until(world.now.plus(Millis(3 * HOUR)));
            let fired = &world.fired["clock/it"];
            let hours: Vec<_> = (1..=7).map(|hour| YEAR.plus(Millis(hour * HOUR))).collect();
            assert_eq!(*fired, hours, "{cron}, {restarts}");
        }
    }
}

#[test]
fn a_clock_that_is_put_back_far_stalls_no_schedule() {
    for cron in ["0 * * * *", "every 1h"] {
        for missed in [MissedPolicy::RunOnce, MissedPolicy::Skip, MissedPolicy::RunAll] {
            for restarts in [false, true] {
                let mut world = five_hours(cron, missed);
                world.set = -25 * HOUR as i64;
                if restarts {
                    world.start();
                }
                world.until(world.now.plus(Millis(5 * HOUR)));
                let fired = &world.fired["clock/it"];
                let after: Vec<_> = (1..=5).map(|hour| Millis(YEAR.0 - 20 * HOUR + hour * HOUR)).collect();
                assert_eq!(fired[5..], after, "{cron}, {missed:?}, {restarts}");
                let said = world.skipped.iter().filter(|(_, why)| why.contains("put back")).count();
                assert_eq!(said, 1, "it is said, and once");
            }
        }
    }
}

#[test]
fn a_clock_that_is_set_forward_and_back_again_runs_nothing_twice() {
    let mut world = five_hours("0 * * * *", MissedPolicy::RunOnce);
    world.set = 25 * HOUR as i64;
    world.until(world.now.plus(Millis(60_000)));
    assert_eq!(world.fired["clock/it"].len(), 6, "what was missed is made up for once");
    world.set = 0;
    world.until(world.now.plus(Millis(2 * HOUR)));
    let fired = &world.fired["clock/it"];
    assert_eq!(fired[6..], [6, 7].map(|hour| YEAR.plus(Millis(hour * HOUR))));
    let mut different = fired.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), fired.len(), "{fired:?}");
}

#[test]
fn a_single_moment_does_not_come_again_when_the_clock_is_put_back() {
    let mut world = World::new(vec![schedule("it", "at 2026-01-02T00:00", MissedPolicy::RunOnce)]);
    world.until(YEAR.plus(Millis(2 * DAY)));
    world.set = -(2 * DAY as i64);
    world.until(world.now.plus(Millis(3 * DAY)));
    assert_eq!(world.fired["clock/it"].len(), 1);
}
