//! What ARCHITECTURE.md calls an invariant and a test can see: layers, a pure and small kernel, file sizes, names.
//!
//! Each rule is checked twice: on the workspace, and on a planted violation, which shows that it can fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

#[path = "architecture/rules.rs"]
mod rules;
#[path = "architecture/rust_text.rs"]
mod rust_text;
#[path = "architecture/tree.rs"]
mod tree;

use std::fs;

use rust_text::{Literals, code_only, without_inline_tests};
use tree::{Crate, File};

fn holds(broken: Vec<String>) {
    assert!(broken.is_empty(), "\n  {}\n", broken.join("\n  "));
}

fn breaks(broken: Vec<String>, expected: &str) {
    assert!(broken.iter().any(|line| line.contains(expected)), "{expected:?} is not in {broken:#?}");
}

fn planted_crate(name: &str, folder: &str, dependencies: &[&str]) -> Crate {
    let dependencies = dependencies.iter().map(|&name| name.to_owned()).collect();
    Crate { name: name.to_owned(), folder: folder.to_owned(), dependencies }
}

fn in_kernel(text: &str) -> Vec<File> {
    vec![File::new("kernel/src/planted.rs", text)]
}

#[test]
fn dependencies_point_down() {
    holds(rules::layers(&tree::crates()));
}

#[test]
fn an_upward_dependency_is_noticed() {
    let crates = [
        planted_crate("holdfast-contract", "contract", &["holdfast-kernel"]),
        planted_crate("holdfast-kernel", "kernel", &[]),
        planted_crate("holdfast-store", "store", &["holdfast-policy"]),
        planted_crate("holdfast-policy", "policy", &["holdfast-testkit"]),
        planted_crate("holdfast-lane-a", "lanes/a", &["holdfast-lane-b"]),
        planted_crate("holdfast-lane-b", "lanes/b", &["holdfast-store"]),
        planted_crate("holdfast-testkit", "testkit", &["holdfast-policy"]),
        planted_crate("holdfast-home", "home", &["holdfast-contract", "holdfast-policy", "holdfast-kernel"]),
        planted_crate("holdfast-secrets", "secrets", &["holdfast-contract", "holdfast-kernel"]),
        planted_crate("holdfast-new", "new", &[]),
    ];
    let broken = rules::layers(&crates);
    breaks(broken.clone(), "`holdfast-contract` (contract/) depends on `holdfast-kernel`");
    breaks(broken.clone(), "`holdfast-store` (store/) depends on `holdfast-policy`");
    breaks(broken.clone(), "`holdfast-policy` (policy/) depends on `holdfast-testkit`");
    breaks(broken.clone(), "`holdfast-lane-a` (lanes/a/) depends on `holdfast-lane-b`");
    breaks(broken.clone(), "`holdfast-lane-b` (lanes/b/) depends on `holdfast-store`");
    breaks(broken.clone(), "`holdfast-home` (home/) depends on `holdfast-kernel`");
    breaks(broken.clone(), "`holdfast-secrets` (secrets/) depends on `holdfast-kernel`");
    breaks(broken.clone(), "`holdfast-new` in new/ has no place");
    assert_eq!(broken.len(), 8, "{broken:#?}");
}

#[test]
fn the_kernel_depends_on_the_contract_alone() {
    let crates = tree::crates();
    assert!(crates.iter().any(|found| found.folder == "kernel"));
    holds(rules::kernel_dependencies(&crates));
}

#[test]
fn another_dependency_of_the_kernel_is_noticed() {
    let kernel = planted_crate("holdfast-kernel", "kernel", &["holdfast-contract", "serde"]);
    breaks(rules::kernel_dependencies(&[kernel]), "`serde`");
}

#[test]
fn extensions_depend_on_what_anybody_may() {
    let crates = tree::crates();
    assert!(crates.iter().any(|found| found.folder.starts_with("extensions/")));
    holds(rules::extension_dependencies(&crates));
}

#[test]
fn an_extension_with_inside_knowledge_is_noticed() {
    let crates = [
        planted_crate("holdfast-policy", "policy", &[]),
        planted_crate("holdfast-lane-native", "lanes/native", &[]),
        planted_crate("ext-a", "extensions/a", &["holdfast-lane-native", "serde", "ext-b"]),
        planted_crate("ext-b", "extensions/b", &["holdfast-policy"]),
    ];
    let broken = rules::extension_dependencies(&crates);
    breaks(broken.clone(), "`ext-a` depends on `ext-b`");
    breaks(broken.clone(), "`ext-b` depends on `holdfast-policy`");
    assert_eq!(broken.len(), 2, "{broken:#?}");
}

#[test]
fn the_sdk_and_the_program_share_the_interface_alone() {
    holds(rules::sdk_dependencies(&tree::crates()));
    let crates = [
        planted_crate("holdfast-contract", "contract", &["holdfast-extension"]),
        planted_crate("holdfast-extension", "sdk/rust", &["holdfast-contract"]),
    ];
    let broken = rules::sdk_dependencies(&crates);
    breaks(broken.clone(), "`holdfast-contract` depends on `holdfast-extension`");
    breaks(broken, "`holdfast-extension` depends on `holdfast-contract`");
}

#[test]
fn the_kernel_is_pure() {
    holds(rules::kernel_is_pure(&tree::files(&["rs"])));
}

#[test]
fn everything_impure_in_the_kernel_is_noticed() {
    let planted = [
        ("let now = std::time::Instant::now();", "time"),
        ("use std::{collections::BTreeMap, fs};", "fs"),
        ("use core::{fmt, time::Duration};", "time"),
        ("use std::io::Read;", "io"),
        ("use std::net::TcpStream;", "net"),
        ("std::thread::yield_now();", "thread"),
        ("std::process::exit(1);", "process"),
        ("std::env::var(name)", "env"),
        ("use std::*;", "*"),
        ("use std::sync::{Arc, Mutex};", "Mutex"),
        ("use std::sync::RwLock;", "RwLock"),
        ("use std::sync::mpsc::channel;", "mpsc"),
        ("counter: AtomicU64,", "AtomicU64"),
        ("rand::random()", "rand"),
        ("async fn step() {}", "async"),
        ("answer.await", "await"),
        ("fn step() -> impl Future {}", "Future"),
        ("tokio::spawn(step)", "tokio"),
        ("let map = HashMap::new();", "HashMap"),
        ("let set: HashSet<u8> = x;", "HashSet"),
        ("println!(\"here\");", "println"),
        ("unsafe { x() }", "unsafe"),
        ("static mut COUNT: u8 = 0;", "static"),
        ("thread_local! {}", "thread_local"),
    ];
    for (text, expected) in planted {
        breaks(rules::kernel_is_pure(&in_kernel(text)), &format!("kernel/src/planted.rs:1: `{expected}`"));
    }
}

#[test]
fn what_the_kernel_only_says_is_no_matter() {
    let text = r##"//! No HashMap, no async. /* unsafe */
        use std::sync::Arc; /* std::fs /* nested */ tokio */
        use std::collections::{BTreeMap, btree_map};
        fn time<'a>(quote: char, io: &'a str) -> bool { quote == '"' && io == "unsafe" || r#"std::fs "quoted""# == io }
        #[cfg(test)]
        mod tests { fn now() { std::time::Instant::now(); } }"##;
    holds(rules::kernel_is_pure(&in_kernel(text)));
    holds(rules::kernel_is_pure(&[File::new("kernel/src/planted_tests.rs", "use std::fs;")]));
}

#[test]
fn the_kernel_is_small() {
    let lines = rules::kernel_lines(&tree::files(&["rs"]));
    println!("kernel: {lines} of {} lines of code", rules::KERNEL_LIMIT);
    assert!(lines > 0);
    holds(rules::kernel_is_small(lines));
}

#[test]
fn only_code_counts_as_kernel_lines_and_too_much_is_noticed() {
    let text = "//! Doc.\n\nfn a() {\n    // why\n    b();\n}\n/* more\nmore */\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    assert_eq!(rules::kernel_lines(&in_kernel(text)), 3);
    let long = "step();\n".repeat(rules::KERNEL_LIMIT + 1);
    breaks(rules::kernel_is_small(rules::kernel_lines(&in_kernel(&long))), "1501 lines");
}

#[test]
fn no_file_is_too_long() {
    holds(rules::file_length(&tree::files(&["rs", "py", "js", "mjs", "ts"])));
}

#[test]
fn a_file_that_is_too_long_is_noticed() {
    let long = "x();\n".repeat(rules::FILE_LIMIT + 1);
    breaks(rules::file_length(&[File::new("store/src/long.rs", &long)]), "store/src/long.rs: 801 lines");
    holds(rules::file_length(&[File::new("store/src/fits.rs", &"x();\n".repeat(rules::FILE_LIMIT))]));
}

#[test]
fn crates_are_named_after_what_they_hold() {
    holds(rules::crate_names(&tree::crates()));
}

#[test]
fn a_crate_named_after_nothing_is_noticed() {
    breaks(rules::crate_names(&[planted_crate("holdfast-core", "core", &[])]), "holdfast-core");
    breaks(rules::crate_names(&[planted_crate("holdfast-x", "lanes/utils", &[])]), "lanes/utils");
    holds(rules::crate_names(&[planted_crate("holdfast-score", "score", &[])]));
}

#[test]
fn unsafe_code_stays_in_the_listed_modules() {
    holds(rules::unsafe_places(&tree::files(&["rs"])));
}

#[test]
fn unsafe_code_elsewhere_is_noticed() {
    let text = "#![deny(unsafe_code)]\n// unsafe\nunsafe fn planted() {}";
    let broken = rules::unsafe_places(&[File::new("runtime/src/planted.rs", text)]);
    breaks(broken.clone(), "runtime/src/planted.rs:3");
    assert_eq!(broken.len(), 1);
}

#[test]
fn every_crate_takes_the_lints_and_says_what_it_is() {
    for found in tree::crates() {
        let folder = tree::root().join(&found.folder);
        holds(rules::crate_lints(&found.folder, &fs::read_to_string(folder.join("Cargo.toml")).unwrap()));
        let first = ["src/lib.rs", "src/main.rs"]
            .map(|name| folder.join(name))
            .into_iter()
            .find(|path| path.exists());
        let first = first.unwrap_or_else(|| panic!("{} has neither lib.rs nor main.rs", found.folder));
        holds(rules::crate_opening(&first.display().to_string(), &fs::read_to_string(&first).unwrap()));
    }
}

#[test]
fn a_crate_without_lints_or_opening_is_noticed() {
    breaks(rules::crate_lints("kernel", "[package]\nname = \"x\"\n"), "kernel/Cargo.toml");
    breaks(
        rules::crate_lints("kernel", "[lints]\n\n[dependencies]\nworkspace = true\n"),
        "kernel/Cargo.toml",
    );
    holds(rules::crate_lints("kernel", "[package]\n\n[lints]\nworkspace = true\n"));
    breaks(rules::crate_opening("kernel/src/lib.rs", "pub mod session;"), "kernel/src/lib.rs");
}

#[test]
fn vendors_are_named_only_beside_their_adapters() {
    holds(rules::vendor_names(&tree::files(&["rs", "py", "js", "mjs", "ts"])));
}

#[test]
fn a_vendor_elsewhere_is_noticed() {
    let planted = |path: &str| rules::vendor_names(&[File::new(path, "// OpenAI\nlet name = \"Telegram\";")]);
    breaks(planted("runtime/src/planted.rs"), "runtime/src/planted.rs:2: names telegram");
    assert_eq!(planted("runtime/src/planted.rs").len(), 1);
    holds(planted("model/src/planted.rs"));
    holds(planted("extensions/chat/src/planted.rs"));
    holds(planted("contract/src/manifest_tests.rs"));
}

#[test]
fn nothing_is_left_for_later() {
    holds(rules::leftovers(&tree::files(&["rs", "py", "js", "mjs", "ts"])));
}

#[test]
fn something_left_for_later_is_noticed() {
    let planted = |text: &str| rules::leftovers(&[File::new("store/src/planted.rs", text)]);
    breaks(planted(concat!("\n// TO", "DO: sync")), "store/src/planted.rs:2");
    breaks(planted(concat!("// FIX", "ME")), "store/src/planted.rs:1");
    breaks(planted(concat!("unimpl", "emented!()")), "store/src/planted.rs:1");
    breaks(planted(concat!("to", "do!()")), "store/src/planted.rs:1");
}

#[test]
fn source_is_read_as_a_compiler_would() {
    let text = "let a = \"// no\"; // yes\nlet b = '\\''; /* c */ let d: &'static str = r\"\\\";\nlet e = b\"x\\\"y\";";
    let expected =
        "let a = \"     \";       \nlet b = '  ';         let d: &'static str = r\" \";\nlet e = b\"    \";";
    let blanked = code_only(text, Literals::Blank);
    assert_eq!(blanked.trim_end(), expected);
    assert_eq!(code_only("\"kept\" // gone", Literals::Keep).trim_end(), "\"kept\"");
    assert_eq!(without_inline_tests("a\n#[cfg(test)]\nmod t { { } }\nb"), "a\n\n\nb");
    assert_eq!(without_inline_tests("#[cfg(test)]\nmod hooks_tests;"), "\nmod hooks_tests;");
}
