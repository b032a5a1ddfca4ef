//! Native plugins: loaded under `trusted` alone, hot-reloaded, kept down when they end the process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::shared::{Owner, Scene, until};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn compile(source: &Path, library: &Path) {
    let mut command = Command::new("cc");
    command.args(["-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1", "-I"]);
    let ran = command.arg(root().join("sdk/c")).arg("-o").arg(library).arg(source).arg("-lpthread").output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A plugin whose tool `trip` does what it is told; `greeting` is what it answers otherwise.
fn tripping(greeting: &str, constructor: &str) -> String {
    format!(
        r#"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "holdfast_plugin.h"
{constructor}
static holdfast_buffer describe(const uint8_t *data, size_t length) {{
    return holdfast_result(holdfast_json_of(data, length),
        "{{\"protocol\":\"0.1\",\"tools\":[{{\"name\":\"trip\",\"effects\":\"pure\",\"timeout_ms\":300}}]}}");
}}
static volatile int endless = 1;
static int overflow(volatile char *above) {{
    volatile char here[4096];
    here[0] = above ? above[0] : 1;
    return endless ? overflow(here) + here[0] : 0;
}}
static holdfast_buffer call(const holdfast_host *host, const uint8_t *data, size_t length) {{
    holdfast_json request = holdfast_json_of(data, length), params = holdfast_json_get(request, "params");
    holdfast_json how = holdfast_json_get(holdfast_json_get(params, "arguments"), "how");
    holdfast_buffer nothing = {{NULL, 0}};
    (void)host;
    if (holdfast_json_is(holdfast_json_get(request, "method"), "\"cancel\"")) return nothing;
    if (holdfast_json_is(how, "\"abort\"")) abort();
    if (holdfast_json_is(how, "\"segfault\"")) *(volatile int *)8 = 1;
    if (holdfast_json_is(how, "\"overflow\"")) overflow(NULL);
    if (holdfast_json_is(how, "\"exit\"")) exit(0);
    if (holdfast_json_is(how, "\"hang\"")) for (;;) pause();
    return holdfast_result(request, "\"{greeting}\"");
}}
static void release(holdfast_buffer answer) {{ free(answer.data); }}
const holdfast_plugin *holdfast_plugin_v1(void) {{
    static const holdfast_plugin table = {{HOLDFAST_PLUGIN_ABI, sizeof(holdfast_plugin), describe, call, release}};
    return &table;
}}
"#
    )
}

/// Installs a plugin, which replaces the one before at once.
fn install(scene: &Scene, id: &str, source: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), format!("id: {id}\nname: {id}\nentrypoint: {id}.so\n")).unwrap();
    let (file, built) = (scene.root().join("plugin.c"), scene.root().join("built.so"));
    fs::write(&file, source).unwrap();
    compile(&file, &built);
    fs::rename(built, folder.join(format!("{id}.so"))).unwrap();
}

fn example(scene: &Scene) {
    install(scene, "system-info", &fs::read_to_string(root().join("examples/system-info/plugin.c")).unwrap());
}

fn trusted() -> Scene {
    let scene = Scene::new();
    scene.policy("profile: trusted\n");
    scene
}

fn trip(scene: &Scene, how: &str) -> crate::shared::Ran {
    scene.run(&["call", "trip", &format!(r#"{{"how": "{how}"}}"#)])
}

fn state(scene: &Scene, id: &str) -> String {
    scene.run(&["ext", "doctor", id]).out
}

#[test]
fn a_plugin_runs_under_trusted_and_is_refused_elsewhere() {
    let scene = Scene::new();
    example(&scene);
    for profile in ["safe", "standard", "full-auto"] {
        scene.policy(&format!("profile: {profile}\n"));
        assert!(
            state(&scene, "system-info").contains("HF-4401"),
            "{profile}: {}",
            state(&scene, "system-info")
        );
        scene.run(&["call", "system_info"]).fails(1, "HF-3101");
        scene.run(&["ext", "check", "system-info"]).fails(1, "HF-4401");
    }
    scene.policy("profile: trusted\n");
    scene.run(&["ext", "check", "system-info"]).ok();
    assert!(scene.run(&["call", "system_info"]).ok().out.contains("processors"));
    // The last good version does not come back where plugins are refused.
    scene.policy("profile: standard\n");
    scene.run(&["call", "system_info"]).fails(1, "HF-3101");
    // What it answered is in the log, so that nobody needs it to replay.
    fs::remove_dir_all(scene.home().join("extensions/system-info")).unwrap();
    let sessions = scene.run(&["session", "list", "--all", "--json"]).ok().lines();
    let mut mocked = 0;
    for session in &sessions {
        let replayed = scene.run(&["replay", session["session"].as_str().unwrap()]).ok();
        mocked += usize::from(replayed.out.contains("system-info"));
    }
    assert_eq!(mocked, 1, "the verdict names what was not run again");
    scene.verifies();
}

#[test]
fn a_plugin_in_rust_keeps_state_and_replays() {
    let scene = trusted();
    let target = root().join("target/plugins");
    let mut build = Command::new("cargo");
    build.args(["build", "--offline", "--quiet", "--manifest-path"]);
    build.arg(root().join("examples/text-statistics/Cargo.toml")).arg("--target-dir").arg(&target);
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let folder = scene.home().join("extensions/text-statistics");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(root().join("examples/text-statistics/manifest.yaml"), folder.join("manifest.yaml")).unwrap();
    fs::copy(target.join("debug/libtext_statistics.so"), folder.join("text-statistics.so")).unwrap();
    let steps = serde_json::json!([
        { "calls": [{ "tool": "text_statistics", "arguments": { "text": "one two" } }] },
        { "calls": [{ "tool": "text_statistics", "arguments": { "text": "three" } }] },
        { "says": "done" },
    ]);
    scene.turn("counted", &steps).ok();
    let frames = scene.frames("counted");
    let results: Vec<&Value> = frames.iter().filter(|frame| frame["kind"] == "tool.returned").collect();
    let shown = format!("{results:?}");
    assert!(shown.contains("asked") && results.len() == 2, "{shown}");
    scene.run(&["replay", "counted"]).ok();
    scene.verifies();
}

#[test]
fn a_plugin_that_ends_the_process_is_quarantined_at_the_next_start() {
    for how in ["abort", "segfault", "overflow", "exit"] {
        let scene = trusted();
        example(&scene);
        install(&scene, "tripping", &tripping("hello", ""));
        assert!(trip(&scene, "").ok().out.contains("hello"));
        let died = trip(&scene, how);
        assert!(died.code.is_none() || how == "exit", "{how}: {died:?}");
        let doctor = state(&scene, "tripping");
        assert!(doctor.contains("HF-4006") && doctor.contains("ended the process"), "{how}: {doctor}");
        assert!(scene.run(&["call", "system_info"]).ok().out.contains("processors"), "the rest comes up");
        trip(&scene, "").fails(1, "HF-3101");
        // Its author has another try, and other content is tried at once.
        scene.run(&["ext", "restart", "tripping"]).ok();
        assert!(trip(&scene, "").ok().out.contains("hello"), "{how}");
        let died = trip(&scene, how);
        assert!(died.code.is_none() || how == "exit", "{how}: {died:?}");
        install(&scene, "tripping", &tripping("fixed", ""));
        assert!(trip(&scene, "").ok().out.contains("fixed"), "{how}");
        scene.verifies();
    }
}

#[test]
fn a_plugin_that_ends_the_process_while_it_is_loaded_is_quarantined() {
    let scene = trusted();
    example(&scene);
    let constructor = "__attribute__((constructor)) static void early(void) { abort(); }";
    install(&scene, "tripping", &tripping("hello", constructor));
    let died = scene.run(&["call", "system_info"]);
    assert!(died.code.is_none(), "{died:?}");
    assert!(scene.run(&["call", "system_info"]).ok().out.contains("processors"));
    let doctor = state(&scene, "tripping");
    assert!(doctor.contains("HF-4006"), "{doctor}");
}

/// Killed from outside while a plugin's code runs, it is not the plugin's fault.
#[test]
fn a_process_that_is_killed_quarantines_nothing() {
    let scene = trusted();
    install(&scene, "tripping", &tripping("hello", ""));
    let owner = Owner::begin(&scene);
    trip(&scene, "hang").fails(1, "HF-3104");
    drop(owner);
    assert!(trip(&scene, "").ok().out.contains("hello"));
}

#[test]
fn a_plugin_that_hangs_gets_no_further_call() {
    let scene = trusted();
    example(&scene);
    install(&scene, "tripping", &tripping("hello", ""));
    let _owner = Owner::begin(&scene);
    assert!(trip(&scene, "").ok().out.contains("hello"));
    trip(&scene, "hang").fails(1, "HF-3104");
    let refused = trip(&scene, "");
    assert!(refused.err.contains("HF-4402") || refused.err.contains("HF-3104"), "{refused:?}");
    assert!(scene.run(&["call", "system_info"]).ok().out.contains("processors"), "others go on");
}

#[test]
fn an_edited_plugin_is_live_and_a_stricter_profile_ends_it() {
    let scene = trusted();
    install(&scene, "tripping", &tripping("before", ""));
    let _owner = Owner::begin(&scene);
    assert!(trip(&scene, "").ok().out.contains("before"));
    install(&scene, "tripping", &tripping("after", ""));
    until("the edit is live", || trip(&scene, "").out.contains("after"));
    scene.policy("profile: standard\n");
    until("it is gone", || trip(&scene, "").err.contains("HF-3101"));
    assert!(state(&scene, "tripping").contains("HF-4401"));
}
