//! Every command that reads the log, on every damaged database: its answer is that of the undamaged one, or it says with a code that
//! something is wrong. None panics, none hangs, none is silently wrong.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Damage, Outcome, copy, crashed, damages, recorded};
use crate::shared::{Ran, Rpc, Scene, finish, until};

/// Commands that read without an owner.
const READING: &[&[&str]] = &[
    &["session", "list", "--all"],
    &["session", "show", "good"],
    &["session", "show", "bad"],
    &["log", "list"],
    &["log", "show", "bad"],
    &["log", "export", "bad"],
    &["replay", "bad"],
];

/// Commands that start an owner.
const OWNING: &[&[&str]] = &[&["bus", "list"], &["bus", "dead", "list"]];

fn at(scene: &Scene, home: &Path, arguments: &[&str]) -> Ran {
    finish(scene.command_at(home, arguments).spawn().unwrap())
}

/// What is compared: a problem in the program's own words, and the output without what differs from one run to the next.
struct Answer {
    ran: Ran,
}

impl Answer {
    fn of(ran: Ran) -> Self {
        Self { ran }
    }

    fn is_told(&self) -> bool {
        let Ran { code, out, err } = &self.ran;
        // A replay that differs says so in its answer.
        err.contains("[HF-") || (*code == Some(1) && out.contains(": differs at frame"))
    }

    fn is_silently_wrong(&self, whole: &Answer) -> bool {
        !self.is_told() && (self.ran.code != whole.ran.code || self.ran.out != whole.ran.out)
    }

    fn is_broken(&self) -> bool {
        let Ran { code, err, .. } = &self.ran;
        err.contains("panicked") || code.is_none_or(|code| code > 3) || (*code != Some(0) && !self.is_told())
    }
}

/// Tries each damage on a copy of the home, with each command; gives what was silently wrong or broke.
fn sweep(scene: &Scene, damages: &[(&'static str, Outcome, Damage)], commands: &[&[&str]]) -> Vec<String> {
    let home = scene.home();
    let copied = |name: &str| {
        let to = scene.root().join("copies").join(name);
        drop(std::fs::remove_dir_all(&to));
        copy(&home, &to);
        to
    };
    let whole = copied("whole");
    let expected: Vec<Answer> = commands.iter().map(|words| Answer::of(at(scene, &whole, words))).collect();
    assert!(expected.iter().all(|answer| answer.ran.code == Some(0)));
    let mut wrong = Vec::new();
    for (number, (name, _, damage)) in damages.iter().enumerate() {
        for (words, expected) in commands.iter().zip(&expected) {
            let home = copied(&number.to_string());
            damage(&home);
            let answer = Answer::of(at(scene, &home, words));
            if answer.is_silently_wrong(expected) || answer.is_broken() {
                wrong.push(format!("{name}: {words:?}\n{:#?}", answer.ran));
            }
            std::fs::remove_dir_all(&home).unwrap();
        }
    }
    wrong
}

#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

// Issue 19.
#[test]
fn no_damage_is_shown_as_if_it_had_been_said() {
    let scene = recorded();
    none(&sweep(&scene, &damages(), READING));
}

// Issue 19.
#[test]
fn no_damage_makes_an_owner_answer_wrongly() {
    let scene = recorded();
    // A start takes long, so only damages of the bus are tried with all of them.
    let of_bus =
        |name: &str| ["deliver", "subscriber", "event", "name of"].iter().any(|part| name.contains(part));
    let (bus, others): (Vec<_>, Vec<_>) = damages().into_iter().partition(|(name, ..)| of_bus(name));
    let mut wrong = sweep(&scene, &bus, OWNING);
    let (one, two): (Vec<_>, Vec<_>) =
        others.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    for (damages, command) in [one, two].into_iter().zip(OWNING) {
        let damages: Vec<_> = damages.into_iter().map(|(_, damage)| damage).collect();
        wrong.extend(sweep(&scene, &damages, &[*command]));
    }
    none(&wrong);
}

/// A backup of a damaged home is refused or reported, and so is the home that is restored from it.
#[test]
fn a_backup_of_a_damaged_home_says_so() {
    let scene = recorded();
    let verify = |home: &Path| at(&scene, home, &["log", "verify"]);
    let mut wrong = Vec::new();
    for (number, (name, _, damage)) in damages().iter().enumerate() {
        let home = scene.root().join("copies").join(number.to_string());
        copy(&scene.home(), &home);
        damage(&home);
        let damaged = verify(&home).code != Some(0);
        let archive = scene.outside().join(format!("{number}.tar.zst"));
        let backup = at(&scene, &home, &["backup", archive.to_str().unwrap()]);
        let told = backup.err.contains("[HF-");
        if backup.err.contains("panicked") || (damaged && !told) || (backup.code != Some(0) && !told) {
            wrong.push(format!("{name}: {backup:#?}"));
        }
        if archive.exists() {
            let back = scene.root().join("copies").join(format!("back-{number}"));
            let restored = at(&scene, &back, &["restore", archive.to_str().unwrap()]);
            let verified = (back.exists()).then(|| verify(&back));
            // What proved that frames are missing stays behind, so the backup itself had to say it.
            let silent = restored.code == Some(0) && verified.is_none_or(|verified| verified.code != Some(0));
            if silent || restored.err.contains("panicked") {
                wrong.push(format!("{name}: restored {restored:#?}"));
            }
            drop(std::fs::remove_dir_all(back));
        }
        std::fs::remove_dir_all(&home).unwrap();
    }
    none(&wrong);
}

/// A home that comes up on a damaged database says what is wrong with it, or does not come up and says why.
#[test]
fn a_damaged_home_comes_up_or_says_why_not() {
    let scene = recorded();
    for (number, (name, _, damage)) in damages().iter().enumerate().step_by(5) {
        let home = scene.root().join("copies").join(number.to_string());
        copy(&scene.home(), &home);
        damage(&home);
        let mut up = scene.command_at(&home, &["up", "--unsupervised"]);
        let mut up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let is_up = || {
            let status = at(&scene, &home, &["status", "--json"]);
            assert!(!status.err.contains("panicked"), "{name}: {status:#?}");
            serde_json::from_str::<Value>(&status.out).unwrap_or_default()["process"].is_u64()
        };
        until(&format!("{name}: it comes up or ends"), || up.try_wait().unwrap().is_some() || is_up());
        if up.try_wait().unwrap().is_none() {
            let down = at(&scene, &home, &["down"]);
            assert!(down.code == Some(0) || down.err.contains("[HF-"), "{name}: {down:#?}");
        }
        let up = finish(up);
        assert!(!up.err.contains("panicked"), "{name}: {up:#?}");
        assert!(up.code == Some(0) || up.err.contains("[HF-"), "{name}: {up:#?}");
    }
}

/// The same for a database whose owner was killed, whose newest frames are in the write-ahead log.
#[test]
fn no_damage_of_a_write_ahead_log_is_shown_as_if_nothing_had_been_said() {
    let scene = recorded();
    let mut owner: Rpc = scene.rpc(&[]);
    owner.ask("session.rename", json!({ "session": "good", "name": "renamed" }));
    until("it has started", || owner.ask("system.status", json!({}))["starting"].is_null());
    owner.ask("session.rename", json!({ "session": "bad", "name": "renamed" }));
    owner.kill();
    let reading: Vec<&[&str]> = READING.iter().copied().filter(|words| words[0] != "replay").collect();
    none(&sweep(&scene, &crashed(), &reading));
}
