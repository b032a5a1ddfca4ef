//! Which lane, for every kind of folder.

use std::path::Path;

use super::{LaneKind, lane, parse};

/// The lane, or the rendered problem, of an extension `x` with these further fields and files.
fn choose(fields: &str, files: &[&str]) -> Result<LaneKind, String> {
    let parsed = parse(Path::new("manifest.yaml"), &format!("{{id: x, name: X, {fields}}}")).unwrap();
    lane(&parsed.manifest, files).map_err(|problem| problem.to_string())
}

#[test]
fn each_lane_is_found() {
    for (fields, files, expected) in [
        ("agent: {}", &["manifest.yaml"] as &[&str], LaneKind::Declarative),
        ("agent: {}", &["manifest.yaml", "prompt.jinja2", "README.md"], LaneKind::Declarative),
        ("command: ./run", &["manifest.yaml", "run"], LaneKind::Process),
        ("command: [python3, main.py]", &["manifest.yaml", "main.py"], LaneKind::Process),
        ("command: ./run, agent: {}", &["run"], LaneKind::Process),
        ("", &["manifest.yaml", "x.wasm"], LaneKind::Wasm),
        ("entrypoint: b.wasm", &["a.wasm", "b.wasm"], LaneKind::Wasm),
        ("entrypoint: target/b.wasm", &["target"], LaneKind::Wasm),
        ("", &["manifest.yaml", "main.py", "helpers.py"], LaneKind::Python),
        ("entrypoint: 'main:X'", &["main.py", "index.js", "x.wasm"], LaneKind::Python),
        ("entrypoint: 'parts.main:X'", &["parts"], LaneKind::Python),
        ("entrypoint: 'parts:X'", &["parts"], LaneKind::Python),
        ("entrypoint: tool.py", &["tool.py"], LaneKind::Python),
        ("entrypoint: 'main:X', agent: {}", &["main.py"], LaneKind::Python),
        ("package: '@some/pack'", &["manifest.yaml"], LaneKind::Node),
        ("", &["index.mjs"], LaneKind::Node),
        ("", &["index.ts", "package.json"], LaneKind::Node),
        ("entrypoint: ./dist/pack.js", &["dist"], LaneKind::Node),
        ("mcp: {command: npx server}", &[], LaneKind::Mcp),
        ("mcp: {url: 'https://example.com/mcp'}", &["main.py"], LaneKind::Mcp),
        ("entrypoint: libx.so", &["libx.so"], LaneKind::Plugin),
        ("entrypoint: build/libx.dylib", &["build"], LaneKind::Plugin),
        ("", &["manifest.yaml", "libx.so", "plugin.c"], LaneKind::Plugin),
        ("entrypoint: 'native:kv'", &[], LaneKind::Native),
    ] {
        assert_eq!(choose(fields, files), Ok(expected), "{fields} {files:?}");
    }
}

#[test]
fn what_cannot_be_decided_is_an_error_that_lists_the_ways() {
    for (fields, files, expected) in [
        (
            "",
            &["manifest.yaml", "notes.txt"] as &[&str],
            "error[HF-1006]: nothing says how `x` is run
  help: Add `entrypoint`, `command`, `package`, `mcp` or `agent`, or put a `main.py`, `index.js`, `.wasm` or `.so` file into the folder.",
        ),
        (
            "",
            &["main.py", "index.js", "b.wasm", "a.wasm"],
            "error[HF-1007]: `x` could be run in more than one way: `a.wasm` (wasm), `b.wasm` (wasm), `main.py` (python), `index.js` (node)
  help: Keep one of them, or say with `entrypoint` what to start.",
        ),
        (
            "agent: {}",
            &["main.py"],
            "error[HF-1007]: `x` could be run in more than one way: `main.py` (python), `agent` (declarative)
  help: Keep one of them, or say with `entrypoint` what to start.",
        ),
        (
            "command: ./run, mcp: {command: ./server}",
            &["run", "main.py"],
            "error[HF-1007]: `x` could be run in more than one way: `command` (process), `mcp` (mcp)
  help: Keep one of them, or say with `entrypoint` what to start.",
        ),
        (
            "entrypoint: 'mian:X'",
            &["main.py"],
            "error[HF-1007]: `entrypoint` is `mian:X`, but there is no `mian.py` in the folder
  help: Did you mean `main.py`?",
        ),
        (
            "entrypoint: x.wasm",
            &["manifest.yaml"],
            "error[HF-1007]: `entrypoint` is `x.wasm`, but there is no `x.wasm` in the folder
  help: Add `x.wasm`, or name a file that is there.",
        ),
        (
            "entrypoint: x.wasm",
            &["manifest.yaml", "x.js"],
            "error[HF-1007]: `entrypoint` is `x.wasm`, but there is no `x.wasm` in the folder
  help: Build it from the sources in the folder: `holdfast ext build x`.",
        ),
        (
            "entrypoint: 'main:'",
            &["main.py"],
            "error[HF-1007]: nothing can start `main:`
  help: Write `module:Class`, or a file that ends in `.py`, `.wasm`, `.js`, `.mjs`, `.ts` or `.so`.",
        ),
        (
            "entrypoint: run.sh",
            &["run.sh"],
            "error[HF-1007]: nothing can start `run.sh`
  help: Write `module:Class`, or a file that ends in `.py`, `.wasm`, `.js`, `.mjs`, `.ts` or `.so`.",
        ),
    ] {
        assert_eq!(choose(fields, files), Err(expected.to_owned()), "{fields} {files:?}");
    }
}

#[test]
fn names_are_those_that_serialise() {
    for lane in [LaneKind::Declarative, LaneKind::Process, LaneKind::Wasm, LaneKind::Python, LaneKind::Node] {
        assert_eq!(serde_json::to_value(lane).unwrap(), lane.as_str());
    }
}
