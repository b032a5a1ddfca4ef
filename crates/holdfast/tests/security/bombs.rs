//! Extensions that are small and cost much: components that the compiler cannot finish, templates that double a text, schedules that are
//! due all the time. Each is refused with a code, and the rest of the home works.

use std::fmt::Write as _;
use std::fs;

use crate::shared::Scene;

/// A component with one function of many variables and branches: each branch may set any variable.
fn costly_component(locals: usize, branches: usize) -> Vec<u8> {
    let mut body = String::new();
    for branch in 0..branches {
        let (one, other) = (branch % locals, (branch * 7 + 3) % locals);
        writeln!(
            body,
            "(if (i32.and (local.get {one}) (i32.const {branch})) (then (local.set {other} (i32.add (local.get {one}) (local.get {})))))",
            (branch * 13 + 5) % locals
        )
        .unwrap();
    }
    let variables = "i32 ".repeat(locals);
    let sum: String = (0..locals)
        .map(|local| format!("(local.set 0 (i32.xor (local.get 0) (local.get {local})))\n"))
        .collect();
    let text = format!(
        "(component (core module (func (export \"f\") (result i32) (local {variables}) (loop $l {body} (br_if $l (local.get 1))) {sum} local.get 0)))"
    );
    wat::parse_str(text).unwrap()
}

// Finding M6.
#[test]
fn a_component_that_takes_too_long_to_compile_is_refused() {
    let scene = Scene::new();
    let folder = scene.home().join("extensions/bomb");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: bomb\nname: x\nentrypoint: bomb.wasm\n").unwrap();
    let bomb = costly_component(20_000, 60_000);
    assert!(bomb.len() < 4 << 20, "{} bytes", bomb.len());
    fs::write(folder.join("bomb.wasm"), bomb).unwrap();
    scene.run(&["ext", "check", "bomb"]).fails(1, "HF-4114");
    scene.run(&["call", "file_list", "{}"]).ok();
}

// Finding M7.
#[test]
fn a_template_that_doubles_a_text_is_refused() {
    let scene = Scene::new();
    let bomb = "{% set ns=namespace(s=\"xxxxxxxxxx\") %}{% for i in range(32) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}";
    let folder = scene.home().join("extensions/doubling");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: doubling\nname: x\nagent: { instructions: help }\n")
        .unwrap();
    fs::write(folder.join("prompt.jinja2"), bomb).unwrap();
    let checked = scene.run(&["ext", "check", "doubling"]);
    assert!(checked.code != Some(0) && checked.err.contains("too much memory"), "{checked:#?}");
    let good = scene.home().join("extensions/good");
    fs::create_dir_all(&good).unwrap();
    fs::write(good.join("manifest.yaml"), "id: good\nname: x\nagent: { instructions: help }\n").unwrap();
    fs::write(good.join("prompt.jinja2"), "You are {{ id }}.").unwrap();
    scene.run(&["ext", "check", "good"]).ok();
    scene.run(&["call", "file_list", "{}"]).ok();
}

// Finding M9.
#[test]
fn schedules_that_are_due_all_the_time_are_refused() {
    let scene = Scene::new();
    let folder = |id: &str| scene.home().join("extensions").join(id);
    let plant = |id: &str, schedules: Vec<String>| {
        fs::create_dir_all(folder(id)).unwrap();
        let schedules = schedules.join("\n");
        let text = format!("id: {id}\nname: x\nagent: {{ instructions: help }}\nschedules:\n{schedules}\n");
        fs::write(folder(id).join("manifest.yaml"), text).unwrap();
    };
    let every =
        |number: usize, pause: &str| format!("  - {{ name: s{number}, cron: 'every {pause}', task: t }}");
    plant("many", (0..2_000).map(|number| every(number, "1s")).collect());
    plant("numerous", (0..65).map(|number| every(number, "1h")).collect());
    plant("frequent", (0..3).map(|number| every(number, "1s")).collect());
    plant("fine", (0..2).map(|number| every(number, "1s")).collect());
    for id in ["many", "numerous", "frequent"] {
        scene.run(&["ext", "check", id]).fails(1, "HF-4306");
    }
    scene.run(&["ext", "check", "fine"]).ok();
}
