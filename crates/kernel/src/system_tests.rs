//! The system machine in scenes: facts in, decisions out, one line each. Commands are answered by the scene, oldest first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::*;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::*;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::*;
use holdfast_contract::session_frames::*;
use holdfast_contract::system_frames::*;
use holdfast_contract::tool::ToolSpec;

use crate::System;
use LifecycleCommand::{Destroy, Initialize, Load, Start, Stop};

/// A system machine, the commands that wait for a report, and what each extension registers.
pub(crate) struct Scene {
    pub system: System,
    at: Millis,
    waiting: VecDeque<(Seq, Arc<ExtensionRef>, LifecycleCommand)>,
    pub registers: BTreeMap<&'static str, Vec<Descriptor>>,
    /// The extensions whose lives have no steps.
    lifeless: BTreeSet<&'static str>,
    /// The extensions whose generations never run side by side.
    alone: BTreeSet<&'static str>,
    /// The timer that was set last, and when it fires.
    timer: Option<(Seq, Millis)>,
}

pub(crate) fn ext(id: &str, needs: &[&str]) -> FoundExtension {
    let depends_on = needs.iter().map(|id| ExtensionId::from(*id)).collect();
    FoundExtension { id: id.into(), digest: Digest::of(b"1"), depends_on, ..FoundExtension::default() }
}

/// Another content of the same extension.
pub(crate) fn edited(found: FoundExtension, content: &str) -> FoundExtension {
    FoundExtension { digest: Digest::of(content.as_bytes()), ..found }
}

pub(crate) fn boom(message: &str) -> LifecycleOutcome {
    LifecycleOutcome::Failed(Fault::new(Code::ExtensionFault, message))
}

impl Scene {
    /// A system that has just started for the first time.
    pub fn started() -> Self {
        let (system, waiting) = (System::new(), VecDeque::new());
        let (registers, lifeless, alone) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut scene = Self { system, at: Millis(0), waiting, registers, lifeless, alone, timer: None };
        scene.start();
        scene
    }

    /// The same system in another process: nothing is under way any more. As in logs of earlier versions, nothing is known about how the
    /// process before ended.
    pub fn start(&mut self) -> Vec<String> {
        self.waiting.clear();
        self.tell(SystemStarted { kernel: 1, version: "test".into(), ..SystemStarted::default() })
    }

    /// The same, with what was executing when the process before died.
    pub fn start_after(&mut self, executing: &[&str]) -> Vec<String> {
        self.waiting.clear();
        let executing = Some(executing.iter().map(|content| Digest::of(content.as_bytes())).collect());
        self.tell(SystemStarted {
            kernel: 1,
            version: "test".into(),
            executing,
            crashed: Vec::new(),
            last_good: true,
            inspects: false,
        })
    }

    /// The same, with whose code ended the process before.
    pub fn start_after_crash_of(&mut self, content: &str) -> Vec<String> {
        self.waiting.clear();
        let crashed = vec![Digest::of(content.as_bytes())];
        let (version, executing) = ("test".into(), Some(Vec::new()));
        self.tell(SystemStarted { kernel: 1, version, executing, crashed, last_good: true, inspects: false })
    }

    /// A system with these extensions up.
    pub fn up(found: impl Into<Vec<FoundExtension>>) -> Self {
        let mut scene = Self::started();
        scene.find(found);
        scene.settle();
        scene
    }

    pub fn tell(&mut self, body: impl Into<Body>) -> Vec<String> {
        self.answer(None, body)
    }

    fn answer(&mut self, cause: Option<Seq>, body: impl Into<Body>) -> Vec<String> {
        let input = Input { at: self.at, source: FrameSource::Host, cause, body: body.into() };
        let before = self.system.next_seq();
        let Effects { frames, acts } = match self.system.step(input) {
            Ok(effects) => effects,
            Err(fault) => {
                assert_eq!(self.system.next_seq(), before, "a refused fact gets no number");
                return vec![format!("refused: {}", fault.message)];
            }
        };
        for act in acts {
            match act {
                Act::Lifecycle { decided_by, extension, command } => {
                    self.waiting.push_back((decided_by, extension, command));
                }
                Act::SetTimer { decided_by, at } => self.timer = Some((decided_by, at)),
                _ => {}
            }
        }
        let mut lines: Vec<String> = frames.into_iter().skip(1).flat_map(|draft| line(draft.body)).collect();
        if self.system.is_dirty() {
            lines.extend(self.tell(SystemSettled::default()));
        } else if self.system.misses_outages() {
            lines.extend(self.tell(SystemSettled { outages: true }));
        }
        lines
    }

    pub fn find(&mut self, found: impl Into<Vec<FoundExtension>>) -> Vec<String> {
        self.tell(ExtensionsFound { found: found.into() })
    }

    /// Reports on a command that waits, with its outcome.
    pub fn report(&mut self, id: &str, outcome: LifecycleOutcome) -> Vec<String> {
        let place = self.waiting.iter().position(|(_, extension, _)| extension.id.as_str() == id);
        let (cause, extension, command) = self.waiting.remove(place.expect(id)).unwrap();
        let (id, generation) = (extension.id.clone(), extension.generation);
        self.answer(Some(cause), ExtensionReported { id, generation, command, outcome })
    }

    /// Reports that a command that waits was carried out.
    pub fn done(&mut self, id: &str) -> Vec<String> {
        let outcome = match self.waiting.iter().find(|(_, extension, _)| extension.id.as_str() == id) {
            Some((_, _, Load)) => {
                let descriptors = self.registers.get(id).cloned().unwrap_or_default();
                let (lives, alone) = (!self.lifeless.contains(id), self.alone.contains(id));
                LifecycleOutcome::Loaded { descriptors, lives, alone }
            }
            _ => LifecycleOutcome::Done,
        };
        self.report(id, outcome)
    }

    /// Carries out whatever is commanded until nothing is, and tells what was decided on the way.
    pub fn settle(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some((_, extension, _)) = self.waiting.front() {
            let id = extension.id.as_str().to_owned();
            lines.extend(self.done(&id));
        }
        lines
    }

    fn fault(&mut self, id: &str, generation: u64) -> Vec<String> {
        let (phase, fault) = ("tool.call".into(), Fault::new(Code::ExtensionFault, "trapped"));
        self.tell(ExtensionFaulted { id: id.into(), generation: Generation(generation), phase, fault })
    }

    pub fn unhealthy(&mut self, id: &str, generation: u64) -> Vec<String> {
        self.tell(HealthReported { id: id.into(), generation: Generation(generation), healthy: false })
    }

    /// Lets the timer that was set last fire.
    pub fn fire(&mut self) -> Vec<String> {
        let (timer, at) = self.timer.take().expect("a timer");
        self.at = at;
        self.tell(TimerFired { timer })
    }

    pub fn remove(&mut self, id: &str) -> Vec<String> {
        self.tell(ExtensionRemoved { id: id.into() })
    }

    pub fn stop(&mut self) -> Vec<String> {
        self.tell(SystemStopping { reason: "test".into() })
    }

    /// Each extension with its state, the generation that serves, and what is wrong.
    pub(crate) fn states(&self) -> Vec<String> {
        let word = |view: ExtensionView| {
            let state = view.state();
            let serves = view.active.map(|it| format!("@{}", it.generation.0)).unwrap_or_default();
            let fault = view.fault.map(|fault| format!(": {}", fault.message)).unwrap_or_default();
            format!("{}{serves} {state:?}{fault}", view.id)
        };
        self.system.extensions().map(word).collect()
    }
}

/// A decision in a few words.
fn line(body: Body) -> Vec<String> {
    let name = |it: &ExtensionRef| format!("{}@{}", it.id, it.generation.0);
    vec![match body {
        Body::ExtensionCommanded(it) => {
            let word = match it.command {
                Load => "load",
                Initialize => "initialize",
                Start => "start",
                Stop => "stop",
                Destroy => "destroy",
            };
            format!("{word} {}", name(&it.extension))
        }
        Body::ExtensionStateChanged(it) => {
            let why = it.fault.map(|fault| format!(": {} {}", fault.code, fault.message)).unwrap_or_default();
            let again = it.again.map(|at| format!(", again at {}", at.0)).unwrap_or_default();
            format!("{}@{} {:?}{why}{again}", it.id, it.generation.0, it.state)
        }
        Body::ExtensionReloaded(it) => format!("{} reloaded {} → {}", it.id, it.from.0, it.to.0),
        Body::ExtensionRolledBack(it) => {
            format!("{} rolled back {} → {} after {} faults", it.id, it.from.0, it.to.0, it.faults)
        }
        Body::RegistryChanged(it) => {
            let stack = |change: StackChange| {
                let stack: Vec<String> = change.stack.iter().map(|it| name(it)).collect();
                format!("{}/{} = [{}]", change.kind, change.id, stack.join(" over "))
            };
            return it.changes.into_iter().map(stack).collect();
        }
        Body::ScheduleFired(it) => format!("{} fired for {}: {}", it.schedule, it.due.0, it.task),
        Body::ScheduleSkipped(it) => format!("{} skipped {}: {}", it.schedule, it.due.0, it.reason),
        Body::SystemStopped(_) => "stopped".to_owned(),
        other => format!("{other:?}"),
    }]
}

// Order.

#[test]
fn extensions_come_up_in_dependency_order() {
    let mut scene = Scene::started();
    assert_eq!(scene.find([ext("app", &["base"]), ext("base", &[])]), ["load base@1"]);
    assert_eq!(scene.done("base"), ["load app@1", "initialize base@1"]);
    assert_eq!(scene.done("app"), [""; 0], "app waits until base is initialised");
    assert_eq!(scene.done("base"), ["initialize app@1", "start base@1"]);
    assert_eq!(scene.done("app"), [""; 0], "and until it is started");
    assert_eq!(scene.done("base"), ["start app@1", "base@1 Active"]);
    assert_eq!(scene.done("app"), ["app@1 Active"]);
}

#[test]
fn extensions_go_down_in_reverse_order() {
    let mut scene = Scene::up([ext("app", &["base"]), ext("base", &[]), ext("other", &[])]);
    let stopping = ["app@1 Inactive", "base@1 Inactive", "other@1 Inactive", "stop app@1", "stop other@1"];
    assert_eq!(scene.stop(), stopping);
    assert_eq!(scene.done("app"), ["destroy app@1"]);
    assert_eq!(scene.done("app"), ["stop base@1"], "only when app is gone");
    assert_eq!(scene.settle(), ["destroy other@1", "destroy base@1", "stopped"]);
    assert_eq!(scene.find([ext("late", &[])]), ["refused: nothing in the system waits for this fact"]);
}

#[test]
fn a_life_without_steps_is_only_loaded_and_still_keeps_the_order() {
    let mut scene = Scene::started();
    scene.lifeless.insert("between");
    let found = [ext("app", &["between"]), ext("base", &[]), ext("between", &["base"])];
    assert_eq!(scene.find(found), ["load base@1"]);
    assert_eq!(scene.done("base"), ["initialize base@1", "load between@1"]);
    assert_eq!(scene.done("between"), ["load app@1"]);
    assert_eq!(scene.done("app"), [""; 0], "app waits for base, which it does not name");
    assert_eq!(scene.done("base"), ["start base@1", "initialize app@1"]);
    assert_eq!(scene.done("app"), [""; 0]);
    assert_eq!(scene.done("base"), ["base@1 Active", "start app@1", "between@1 Active"]);
    assert_eq!(scene.done("app"), ["app@1 Active"]);
    assert_eq!(scene.stop(), ["app@1 Inactive", "base@1 Inactive", "between@1 Inactive", "stop app@1"]);
    assert_eq!(scene.done("app"), ["destroy app@1"]);
    assert_eq!(scene.done("app"), ["stop base@1"], "only when app is gone");
    assert_eq!(scene.settle(), ["destroy base@1", "stopped"]);
}

#[test]
fn nothing_is_decided_before_everything_that_came_is_taken() {
    let mut scene = Scene::started();
    let tell = |scene: &mut Scene, body: Body| {
        let input = Input { at: Millis(0), source: FrameSource::Host, cause: None, body };
        scene.system.step(input).unwrap().frames.len()
    };
    assert_eq!(tell(&mut scene, ExtensionsFound { found: vec![ext("app", &["base"])] }.into()), 1);
    assert_eq!(tell(&mut scene, ExtensionsFound { found: vec![ext("base", &[])] }.into()), 1);
    assert_eq!(scene.tell(SystemSettled::default()), ["load base@1"], "app never failed for want of base");
    assert_eq!(scene.tell(SystemSettled::default()), ["refused: nothing in the system waits for this fact"]);
}

#[test]
fn a_system_stops_in_the_middle_of_starting() {
    let mut scene = Scene::started();
    scene.find([ext("app", &["base"]), ext("base", &[])]);
    assert_eq!(scene.stop(), ["app@1 Inactive", "base@1 Inactive"]);
    assert_eq!(scene.done("base"), ["destroy base@1"], "what was under way is waited for, and undone");
    assert_eq!(scene.done("base"), ["stopped"]);
}

// Dependencies.

#[test]
fn a_missing_dependency_is_named_and_waited_for() {
    let mut scene = Scene::started();
    let missing = "app@1 Error: HF-4001 `app` depends on `base`, which is not installed";
    assert_eq!(scene.find([ext("app", &["base"])]), [missing]);
    assert_eq!(scene.find([ext("other", &[])]), ["load other@1"], "nothing has changed for app");
    scene.find([ext("base", &[])]);
    scene.settle();
    assert_eq!(scene.states(), ["app@2 Active", "base@1 Active", "other@1 Active"]);
}

#[test]
fn a_dependency_cycle_is_reported_and_can_be_fixed() {
    let mut scene = Scene::started();
    let found = [ext("a", &["b"]), ext("b", &["c"]), ext("c", &["a"]), ext("d", &["a"])];
    let circle = [
        "a@1 Error: HF-4002 `a` depends on itself through a → b → c → a",
        "b@1 Error: HF-4002 `b` depends on itself through b → c → a → b",
        "c@1 Error: HF-4002 `c` depends on itself through c → a → b → c",
        "d@1 Error: HF-4001 `d` depends on `a`, which failed: `a` depends on itself through a → b → c → a",
    ];
    assert_eq!(scene.find(found), circle);
    scene.find([edited(ext("c", &[]), "2")]);
    scene.settle();
    assert_eq!(scene.states(), ["a@2 Active", "b@2 Active", "c@2 Active", "d@2 Active"]);
}

#[test]
fn a_circle_made_by_an_edit_does_not_hold_up_the_end() {
    let mut scene = Scene::up([ext("a", &[]), ext("b", &["a"])]);
    let circle = "a@2 Error: HF-4002 `a` depends on itself through a → b → a";
    assert_eq!(scene.find([edited(ext("a", &["b"]), "2")]), [circle]);
    assert_eq!(scene.states()[0], "a@1 Active: `a` depends on itself through a → b → a");
    scene.stop();
    assert_eq!(scene.settle(), ["destroy b@1", "stop a@1", "destroy a@1", "stopped"]);
}

#[test]
fn a_failure_takes_its_dependents_with_it() {
    let mut scene = Scene::started();
    scene.find([ext("base", &[]), ext("app", &["base"]), ext("top", &["app"])]);
    let fallen = [
        "base@1 Error: HF-4003 no database",
        "app@1 Error: HF-4001 `app` depends on `base`, which failed: no database",
        "top@1 Error: HF-4001 `top` depends on `app`, which failed: `app` depends on `base`, which failed: no database",
    ];
    assert_eq!(scene.report("base", boom("no database")), fallen);
    assert_eq!(scene.settle(), [""; 0], "nothing had been loaded, so nothing is destroyed");
}

#[test]
fn removing_a_dependency_stops_its_dependents_first() {
    let mut scene = Scene::up([ext("base", &[]), ext("app", &["base"])]);
    let fallen = "app@1 Error: HF-4001 `app` depends on `base`, which is not installed";
    assert_eq!(scene.remove("base"), ["base@1 Inactive", fallen, "stop app@1"]);
    assert_eq!(scene.settle(), ["destroy app@1", "stop base@1", "destroy base@1"]);
    scene.find([ext("base", &[])]);
    scene.settle();
    assert_eq!(scene.states(), ["app@2 Active", "base@2 Active"], "app comes back by itself");
}

#[test]
fn removing_a_dependency_fails_dependents_on_their_way_up() {
    let mut scene = Scene::started();
    scene.find([ext("base", &[]), ext("app", &["base"])]);
    scene.done("base");
    let fallen = "app@1 Error: HF-4001 `app` depends on `base`, which is not installed";
    assert_eq!(scene.remove("base"), ["base@1 Inactive", fallen]);
    assert_eq!(scene.report("app", boom("too late")), [""; 0], "what failed to load is not destroyed");
    assert_eq!(scene.settle(), ["destroy base@1"]);
}

// Generations.

#[test]
fn a_new_generation_takes_over_when_it_has_started() {
    let mut scene = Scene::up([ext("a", &[])]);
    assert_eq!(scene.find([ext("a", &[])]), [""; 0], "the same content again is nothing new");
    assert_eq!(scene.find([edited(ext("a", &[]), "2")]), ["load a@2"]);
    assert_eq!(scene.states(), ["a@1 Active"]);
    let taken_over =
        ["initialize a@2", "start a@2", "a@2 Active", "a reloaded 1 → 2", "stop a@1", "destroy a@1"];
    assert_eq!(scene.settle(), taken_over);
}

#[test]
fn a_newer_generation_overtakes_one_that_rises() {
    let mut scene = Scene::up([ext("a", &[])]);
    scene.find([edited(ext("a", &[]), "2")]);
    assert_eq!(scene.find([edited(ext("a", &[]), "3")]), ["load a@3"]);
    scene.settle();
    assert_eq!(scene.states(), ["a@3 Active"]);
}

#[test]
fn a_new_generation_that_fails_leaves_the_old_one() {
    let mut scene = Scene::up([ext("a", &[]), ext("b", &["a"])]);
    scene.find([edited(ext("a", &[]), "2")]);
    scene.done("a");
    assert_eq!(scene.report("a", boom("bad key")), ["a@2 Error: HF-4003 bad key", "destroy a@2"]);
    assert_eq!(scene.states(), ["a@1 Active: bad key", "b@1 Active"]);
    assert_eq!(scene.find([ext("a", &[])]), [""; 0], "back to what serves");
    assert_eq!(scene.states(), ["a@1 Active", "b@1 Active"]);
}

#[test]
fn a_generation_that_keeps_faulting_is_rolled_back() {
    let mut scene = Scene::up([ext("a", &[])]);
    scene.find([edited(ext("a", &[]), "2")]);
    scene.settle();
    assert_eq!([scene.fault("a", 2), scene.fault("a", 2)].concat(), [""; 0]);
    assert_eq!(scene.fault("a", 2), ["load a@3"], "the old content, under a new number");
    let back = "a rolled back 2 → 3 after 3 faults";
    assert_eq!(scene.settle()[2..], ["a@3 Active", back, "stop a@2", "destroy a@2"]);
    for _ in 0..2 {
        scene.fault("a", 3);
    }
    assert_eq!(scene.fault("a", 3), ["a@3 Error: HF-4003 trapped", "stop a@3"], "there is nothing older");
}

#[test]
fn faults_far_apart_do_not_add_up() {
    let mut scene = Scene::up([ext("a", &[])]);
    for minute in 0..10 {
        scene.at = Millis(minute * 60_000);
        assert_eq!(scene.fault("a", 1), [""; 0]);
    }
    assert_eq!(scene.fault("a", 7), ["refused: the extension has no such generation"]);
}

#[test]
fn an_unhealthy_extension_is_stopped_and_its_dependents_with_it() {
    let mut scene = Scene::up([ext("a", &[]), ext("b", &["a"])]);
    let fallen = [
        "a@1 Error: HF-4004 `a` reported that it is unhealthy, again at 1000",
        "b@1 Error: HF-4001 `b` depends on `a`, which failed: `a` reported that it is unhealthy",
        "stop b@1",
    ];
    assert_eq!(scene.unhealthy("a", 1), fallen);
    assert_eq!(scene.settle(), ["destroy b@1", "stop a@1", "destroy a@1"]);
    scene.find([ext("a", &[])]);
    scene.settle();
    assert_eq!(scene.states(), ["a@2 Active", "b@2 Active"]);
}

#[test]
fn what_cannot_be_read_is_an_error_and_disturbs_nobody() {
    let rejected = |id: &str| {
        let fault = Fault::new(Code::ManifestSyntax, "line 3");
        ExtensionRejected { id: id.into(), fault }
    };
    let mut scene = Scene::up([ext("a", &[])]);
    assert_eq!(scene.tell(rejected("a")), [""; 0], "a goes on serving");
    assert_eq!(scene.tell(rejected("b")), ["b@0 Error: HF-1002 line 3"]);
    assert_eq!(scene.states(), ["a@1 Active: line 3", "b Error: line 3"]);
}

#[test]
fn a_report_that_nobody_waits_for_is_refused() {
    let mut scene = Scene::up([ext("a", &[])]);
    let report = |command| {
        let (id, generation, outcome) = ("a".into(), Generation(1), LifecycleOutcome::Done);
        ExtensionReported { id, generation, command, outcome }
    };
    assert_eq!(scene.tell(report(Stop)), ["refused: this command is not in progress"]);
    assert_eq!(scene.answer(Some(Seq(3)), report(Start)), ["refused: this command is not in progress"]);
}

#[test]
fn numbers_go_on_after_a_restart_and_nothing_else_does() {
    let mut scene = Scene::up([ext("a", &[])]);
    scene.find([edited(ext("a", &[]), "2")]);
    scene.start();
    assert_eq!(scene.states(), [""; 0]);
    assert_eq!(scene.find([ext("a", &[])]), ["load a@3"]);
}

// Anything.

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn whatever_happens_the_system_can_be_stopped() {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut scene = Scene::started();
        let pick = |dice: &mut Dice| NAMES[dice.roll(5) as usize];
        for _ in 0..60 {
            let (id, generation) = (pick(&mut dice), dice.roll(6));
            match dice.roll(12) {
                0..=3 => {
                    let needs: Vec<_> = (0..dice.roll(3)).map(|_| pick(&mut dice)).collect();
                    scene.find([edited(ext(id, &needs), &dice.roll(4).to_string())]);
                }
                4 => drop(scene.remove(id)),
                5 => drop(scene.unhealthy(id, generation)),
                6 => drop(scene.fault(id, generation)),
                9 if scene.timer.is_some() => drop(scene.fire()),
                7 if dice.roll(8) == 0 => drop(scene.start()),
                8 if !scene.waiting.is_empty() => {
                    let id = scene.waiting[0].1.id.as_str().to_owned();
                    scene.report(&id, boom("boom"));
                }
                _ if !scene.waiting.is_empty() => {
                    let place = dice.roll(scene.waiting.len() as u64) as usize;
                    let id = scene.waiting[place].1.id.as_str().to_owned();
                    scene.done(&id);
                }
                _ => {}
            }
        }
        scene.settle();
        let stopped = [scene.stop(), scene.settle()].concat();
        assert_eq!(stopped.last().map(String::as_str), Some("stopped"), "seed {seed}: {:?}", scene.system);
    }
}

// Coming back.

#[test]
fn what_went_down_comes_back_after_a_pause_that_grows() {
    let mut scene = Scene::up([ext("app", &["base"]), ext("base", &[])]);
    let down = scene.unhealthy("base", 1);
    let why = "HF-4004 `base` reported that it is unhealthy";
    assert_eq!(down[0], format!("base@1 Error: {why}, again at 1000"));
    scene.settle();
    assert_eq!(
        scene.states()[0],
        "app Error: `app` depends on `base`, which failed: `base` reported that it is unhealthy"
    );
    assert_eq!(scene.fire(), ["load base@2", "load app@2"][..1]);
    scene.settle();
    assert_eq!(scene.states(), ["app@2 Active", "base@2 Active"], "its dependents come back with it");
    assert!(scene.unhealthy("base", 2)[0].ends_with("again at 3000"), "the pause is twice as long");
    for generation in 3..=6 {
        scene.settle();
        scene.fire();
        scene.settle();
        scene.unhealthy("base", generation);
    }
    scene.settle();
    scene.fire();
    scene.settle();
    assert!(scene.unhealthy("base", 7)[0].ends_with("unhealthy"), "no further retry is planned");
    scene.settle();
    assert_eq!(
        scene.tell(ExtensionRetried { id: "base".into(), reason: "fixed".into(), reload: false }),
        ["load base@8"]
    );
    scene.settle();
    assert_eq!(scene.states(), ["app@8 Active", "base@8 Active"]);
}

#[test]
fn a_timer_that_nobody_set_and_one_of_an_extension_that_is_back_do_nothing() {
    let mut scene = Scene::up([ext("base", &[])]);
    assert_eq!(scene.tell(TimerFired { timer: Seq(3) }), ["refused: no extension waits for this timer"]);
    scene.unhealthy("base", 1);
    scene.settle();
    scene.find([edited(ext("base", &[]), "2")]);
    scene.settle();
    assert_eq!(scene.fire(), [""; 0]);
    assert_eq!(scene.states(), ["base@2 Active"]);
    let retried = scene.tell(ExtensionRetried { id: "base".into(), reason: "for fun".into(), reload: false });
    assert_eq!(retried, ["refused: no such extension is down"]);
}

#[test]
fn an_extension_that_is_up_is_reloaded_with_the_same_content() {
    let mut scene = Scene::up([ext("base", &[])]);
    let reload = || ExtensionRetried { id: "base".into(), reason: "for fun".into(), reload: true };
    assert_eq!(scene.tell(reload()), ["load base@2"]);
    scene.settle();
    assert_eq!(scene.states(), ["base@2 Active"]);
    let unknown = ExtensionRetried { id: "other".into(), ..reload() };
    assert_eq!(scene.tell(unknown), ["refused: no such extension is down"]);
}

// The process dies.

#[test]
fn what_was_starting_when_the_process_died_twice_stays_down_and_the_rest_comes_up() {
    let all = || [ext("bad", &[]), ext("fine", &[]), ext("needs", &["bad"])];
    let mut scene = Scene::started();
    scene.find(all());
    // Both are being loaded when the process dies.
    scene.start();
    assert_eq!(scene.find(all()), ["load bad@2"], "those that were starting come up one at a time");
    // It dies again.
    scene.start();
    let found = scene.find(all());
    let kept = "bad@2 Error: HF-4006 the process died 2 times in a row while it was starting";
    assert_eq!(found[0], kept);
    scene.settle();
    let states = scene.states();
    assert_eq!(states[1], "fine@3 Active");
    assert!(states[0].starts_with("bad Error: the process died"));
    assert!(states[2].starts_with("needs Error: `needs` depends on `bad`, which failed: the process died"));
    // It stays down in the next process, until it is fixed.
    scene.start();
    assert_eq!(scene.find(all())[0], kept);
    scene.settle();
    assert_eq!(scene.find([edited(ext("bad", &[]), "fixed")]), ["load bad@3"]);
    scene.settle();
    assert_eq!(scene.states(), ["bad@3 Active", "fine@4 Active", "needs@5 Active"]);
}

#[test]
fn a_process_that_was_stopped_while_extensions_rose_has_not_died() {
    let mut scene = Scene::started();
    for _ in 0..3 {
        scene.find([ext("slow", &[])]);
        scene.stop();
        scene.settle();
        scene.start();
    }
    assert!(scene.find([ext("slow", &[])])[0].starts_with("load slow@"));
}

// Finding D8.
#[test]
fn only_code_that_was_executing_when_the_process_died_is_a_suspect() {
    let all = || [edited(ext("bad", &[]), "bad"), edited(ext("fine", &[]), "fine")];
    let mut scene = Scene::started();
    scene.find(all());
    // Both are being loaded whenever the process dies, and the code of neither is executing.
    for _ in 0..5 {
        scene.start_after(&[]);
        assert_eq!(scene.find(all()).len(), 2, "none of them is a suspect");
    }
    scene.start_after(&["bad"]);
    assert_eq!(scene.find(all()).len(), 1, "a suspect starts after the others");
    let lines = [scene.done("fine"), scene.done("fine"), scene.done("fine")].concat();
    assert_eq!(lines.last().map(String::as_str), Some("load bad@7"));
    scene.start_after(&["bad"]);
    assert!(scene.find(all()).concat().contains("bad@7 Error: HF-4006"), "{:?}", scene.states());
    scene.settle();
    assert_eq!(scene.states()[1], "fine@8 Active");
}

// Finding D9.
#[test]
fn the_last_good_content_stands_in_for_broken_content_also_in_the_next_process() {
    let (good, broken) = (edited(ext("it", &[]), "good"), edited(ext("it", &[]), "broken"));
    let mut scene = Scene::started();
    scene.start_after(&[]);
    scene.find([good.clone()]);
    scene.settle();
    scene.stop();
    scene.settle();

    scene.start_after(&[]);
    assert_eq!(scene.find([broken.clone()]), ["load it@2"]);
    assert_eq!(scene.report("it", boom("line 3")), ["it@2 Error: HF-4003 line 3", "load it@3"]);
    scene.settle();
    assert_eq!(scene.states(), ["it@3 Active: line 3"]);
    assert_eq!(scene.system.extensions().next().unwrap().active.unwrap().digest, good.digest);

    // It cannot even be read.
    scene.stop();
    scene.settle();
    scene.start_after(&[]);
    let unreadable = Fault::new(Code::ExtensionUnreadable, "no right");
    let lines = scene.tell(ExtensionRejected { id: "it".into(), fault: unreadable });
    assert_eq!(lines, ["it@3 Error: HF-4010 no right", "load it@4"]);
    scene.settle();
    assert_eq!(scene.states(), ["it@4 Active: no right"]);

    // It ends by itself: what stands in is restarted.
    scene.tell(HealthReported { id: "it".into(), generation: Generation(4), healthy: false });
    scene.settle();
    assert_eq!(scene.states(), ["it Error: no right"]);
    assert_eq!(scene.fire(), ["load it@5"]);
    scene.settle();
    assert_eq!(scene.states(), ["it@5 Active: no right"]);

    // The edit is undone, then the extension is removed.
    scene.find([good]);
    assert_eq!(scene.states(), ["it@5 Active"]);
    scene.tell(ExtensionRemoved { id: "it".into() });
    scene.settle();
    assert_eq!(scene.find([broken]), ["load it@6"]);
    assert_eq!(scene.report("it", boom("line 3")), ["it@6 Error: HF-4003 line 3"], "nothing is left of it");
}

// Finding D16.
#[test]
fn content_that_was_only_listed_has_not_shown_that_it_is_good() {
    let (good, broken) = (edited(ext("it", &[]), "good"), edited(ext("it", &[]), "broken"));
    let mut scene = Scene::started();
    scene.start_after(&[]);
    scene.find([good]);
    scene.settle();
    scene.stop();
    scene.settle();
    let (version, executing) = ("test".into(), Some(Vec::new()));
    let crashed = Vec::new();
    scene.tell(SystemStarted { kernel: 1, version, executing, crashed, last_good: true, inspects: true });
    scene.find([broken.clone()]);
    scene.settle();
    scene.stop();
    scene.settle();
    scene.start_after(&[]);
    assert_eq!(scene.find([broken]), ["load it@3"]);
    assert_eq!(scene.report("it", boom("line 3"))[1], "load it@4", "the good content stands in");
}

// One at a time.

#[test]
fn a_generation_that_cannot_run_beside_the_old_one_waits_until_that_has_stopped() {
    let mut scene = Scene::started();
    scene.alone.insert("poller");
    scene.find([ext("poller", &[])]);
    scene.settle();
    assert_eq!(scene.find([edited(ext("poller", &[]), "2")]), ["load poller@2"]);
    assert_eq!(scene.done("poller"), ["initialize poller@2"]);
    assert_eq!(scene.done("poller"), ["stop poller@1"], "the old one first");
    assert_eq!(scene.done("poller"), ["start poller@2"]);
    let over = ["poller@2 Active", "poller reloaded 1 → 2", "destroy poller@1"];
    assert_eq!(scene.done("poller"), over);
}

#[test]
fn the_old_generation_starts_again_when_the_new_one_cannot() {
    let mut scene = Scene::started();
    scene.alone.insert("poller");
    scene.find([ext("poller", &[])]);
    scene.settle();
    scene.find([edited(ext("poller", &[]), "2")]);
    scene.done("poller");
    scene.done("poller");
    scene.done("poller");
    let failed = scene.report("poller", boom("the port is taken"));
    assert_eq!(failed, ["poller@2 Error: HF-4003 the port is taken", "start poller@1", "destroy poller@2"]);
    scene.settle();
    assert_eq!(scene.states(), ["poller@1 Active: the port is taken"]);
}

#[test]
fn a_start_whose_process_was_killed_is_repeated_after_a_pause() {
    let killed = || LifecycleOutcome::Failed(Fault::new(Code::ProcessKilled, "killed"));
    let mut scene = Scene::started();
    scene.find([ext("a", &[])]);
    assert_eq!(scene.report("a", killed())[0], "a@1 Error: HF-4012 killed, again at 1000");
    scene.settle();
    assert_eq!(scene.fire(), ["load a@2"]);
    scene.done("a");
    assert!(scene.report("a", killed())[0].ends_with("again at 3000"), "also while it is initialised");
    scene.settle();
    scene.fire();
    scene.settle();
    assert_eq!(scene.states(), ["a@3 Active"]);

    // A new version that was killed while it started is tried again too; the old one goes on meanwhile.
    scene.find([edited(ext("a", &[]), "2")]);
    assert!(scene.report("a", killed())[0].starts_with("a@4 Error: HF-4012 killed, again at "));
    scene.settle();
    assert_eq!(scene.states()[0].split(':').next(), Some("a@3 Active"));
    scene.fire();
    scene.settle();
    assert_eq!(scene.states(), ["a@5 Active"]);
}

#[test]
fn dependents_restart_only_when_the_exports_change() {
    let tool = |name: &str| Descriptor::tool(ToolSpec::named(name, "A tool."));
    let mut scene = Scene::started();
    scene.registers.insert("base", vec![tool("one")]);
    scene.find([ext("app", &["base"]), ext("base", &[])]);
    scene.settle();
    scene.find([edited(ext("base", &[]), "2")]);
    assert!(!scene.settle().iter().any(|line| line.contains("app@2")), "the same tools");
    scene.registers.insert("base", vec![tool("one"), tool("two")]);
    scene.find([edited(ext("base", &[]), "3")]);
    assert!(scene.settle().contains(&"app reloaded 1 → 2".to_owned()));
    assert_eq!(scene.states(), ["app@2 Active", "base@3 Active"]);
}
