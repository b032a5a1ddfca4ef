//! Extensions that are small and cost much: components that the compiler cannot finish, templates that double a text, schedules that are
//! due all the time. Each is refused with a code, and the rest of the home works.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::shared::{Owner, Scene, finish, until};

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
    // A home that is up answers while it is compiled, and ends.
    let _owner = Owner::begin(&scene);
    let asked = Instant::now();
    scene.run(&["status"]).ok();
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    scene.run(&["down"]).ok();
    until("it ends", || !scene.is_up());
}

// Finding M1: what a program leaves in its folder is removed, however deep it is.
#[test]
fn a_deep_tree_of_a_program_that_is_checked_is_removed() {
    let scene = Scene::new();
    let folder = scene.home().join("extensions/deep");
    let temporary = scene.root().join("temporary");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir(&temporary).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: deep\nname: Deep\ncommand: [python3, main.py]\n").unwrap();
    let code = "import json, os, sys\nfor line in sys.stdin:\n    request = json.loads(line)\n    if 'id' not in request: continue\n    \
                if request['method'] == 'hello':\n        os.chdir(os.environ['HOME'])\n        for _ in range(15000):\n            os.mkdir('d')\n            os.chdir('d')\n        \
                result = {'protocol': '0.1', 'tools': []}\n    else: result = None\n    \
                print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': result}), flush=True)\n";
    fs::write(folder.join("main.py"), code).unwrap();
    let mut command = scene.command(&["ext", "check", "deep"]);
    command.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = finish(command.spawn().unwrap());
    assert!(ran.code == Some(1) && ran.err.contains("nested more than 256 deep"), "{ran:#?}");
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}: {ran:#?}");
}

/// A class with one tool, whose schemas are these.
fn with_schemas(input: &str, output: &str) -> String {
    format!(
        "def chain(length):\n    to = lambda n: {{'$ref': '#/$defs/A%d' % n}}\n    \
         defs = {{'A%d' % n: {{'anyOf': [to(n + 1), to(n + 1)]}} for n in range(length)}}\n    \
         defs['A%d' % length] = {{'type': 'integer'}}\n    \
         return {{'$defs': defs, 'type': 'object', 'properties': {{'n': to(0)}}}}\n\n\n\
         class Bomb:\n    def get_tools(self):\n        def boom(**all):\n            return {{'n': 'x'}}\n        \
         return [{{'name': 'boom', 'description': 'x', 'effects': 'pure', 'input_schema': {input}, \
         'output_schema': {output}, 'function': boom}}]\n"
    )
}

// A check of 2^40 steps would keep a thread busy for years, and two of them the program.
#[test]
fn a_schema_that_asks_for_endless_work_is_reported_and_its_tool_not_called() {
    let plain = "{'type': 'object'}";
    for (input, output) in [("chain(40)", plain), (plain, "chain(40)")] {
        let scene = Scene::new();
        scene.policy("profile: full-auto\n");
        let folder = scene.home().join("extensions/bomb");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("manifest.yaml"), "id: bomb\nname: Bomb\nentrypoint: main:Bomb\n").unwrap();
        fs::write(folder.join("main.py"), with_schemas(input, output)).unwrap();
        scene.run(&["ext", "check", "bomb"]).fails(1, "HF-1007");
        let _owner = Owner::begin(&scene);
        for _ in 0..3 {
            let ran = scene.run(&["call", "boom", r#"{ "n": "x" }"#]);
            assert!(ran.code != Some(0) && ran.err.contains("its references and unions"), "{ran:#?}");
        }
        scene.run(&["call", "file_list", "{}"]).ok();
    }
}

// Finding M9: every event is a frame, and an extension without any grant may publish its own.
#[test]
fn a_flood_of_events_is_refused_and_reported_and_stops_nobody() {
    let scene = Scene::new();
    scene.settings(
        "models: { default: offline }\ncalls: { host_rate: { per_second: 5, burst: 300, bytes_per_second: 100000, burst_bytes: 5000000 } }\n",
    );
    scene.policy("profile: full-auto\n");
    let install = |id: &str, class: &str, code: &str| {
        let folder = scene.home().join("extensions").join(id);
        fs::create_dir_all(&folder).unwrap();
        let manifest = format!("id: {id}\nname: {class}\nentrypoint: main:{class}\n");
        fs::write(folder.join("manifest.yaml"), manifest).unwrap();
        fs::write(folder.join("main.py"), code).unwrap();
    };
    let flood = "class Flood:\n    async def initialize(self, context):\n        self.context = context\n\n    \
                 async def run_background(self):\n        refused = ''\n        for number in range(5000):\n            \
                 try:\n                await self.context.emit('flood.drop', {'n': number})\n            \
                 except Exception as error:\n                refused = str(error)\n        \
                 (self.context.data_dir / 'refused').write_text(refused)\n";
    let large = flood
        .replace("Flood", "Large")
        .replace("flood", "large")
        .replace("{'n': number}", "{'t': 'x' * 100000}");
    let calm = "class Calm:\n    async def initialize(self, context):\n        self.context = context\n\n    \
                async def run_background(self):\n        await self.context.emit('calm.drop', {'n': 1})\n";
    install("flood", "Flood", flood);
    install("large", "Large", &large.replace("range(5000)", "range(500)"));
    install("calm", "Calm", calm);
    let owner = Owner::begin(&scene);
    let said = |id: &str| fs::read_to_string(scene.home().join(format!("data/{id}/refused"))).ok();
    for id in ["flood", "large"] {
        until("it has published all that it could", || said(id).is_some());
        assert!(said(id).unwrap().contains("too many"), "{id}: {:?}", said(id));
    }
    until("others publish meanwhile", || scene.run(&["bus", "list"]).out.contains("calm.drop"));
    scene.run(&["down"]).ok();
    drop(owner);
    let frames = scene.frames("system");
    let of = |id: &str| {
        frames
            .iter()
            .filter(|frame| frame["kind"] == "host.called" && frame["body"]["extension"] == id)
            .collect::<Vec<_>>()
    };
    for (id, most) in [("flood", 600), ("large", 120)] {
        let calls = of(id);
        let refused = calls.iter().filter(|frame| frame.to_string().contains("HF-8015")).count();
        assert!(calls.len() < most, "{id}: {} calls were recorded", calls.len());
        assert!((1..=3).contains(&refused), "{id}: {refused} refusals were recorded");
    }
    scene.verifies();
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
