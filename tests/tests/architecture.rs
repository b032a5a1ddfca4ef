//! What ARCHITECTURE.md calls an invariant and a test can see: layers, a pure and small kernel, file sizes, names; and that the docs are
//! written in plain words, with links and file names that exist.
//!
//! Each rule is checked twice: on the workspace, and on a planted violation, which shows that it can fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

#[path = "architecture/glossary.rs"]
mod glossary;
#[path = "architecture/inventory.rs"]
mod inventory;
#[path = "architecture/names.rs"]
mod names;
#[path = "architecture/privileges.rs"]
mod privileges;
#[path = "architecture/prose.rs"]
mod prose;
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
    vec![File::new("crates/kernel/src/planted.rs", text)]
}

#[test]
fn dependencies_point_down() {
    holds(rules::layers(&tree::crates()));
}

#[test]
fn an_upward_dependency_is_noticed() {
    let crates = [
        planted_crate("holdfast-contract", "crates/contract", &["holdfast-kernel"]),
        planted_crate("holdfast-kernel", "crates/kernel", &[]),
        planted_crate("holdfast-store", "crates/store", &["holdfast-policy"]),
        planted_crate("holdfast-policy", "crates/policy", &["holdfast-testkit"]),
        planted_crate("holdfast-lane-a", "crates/lane-a", &["holdfast-lane-b"]),
        planted_crate("holdfast-lane-b", "crates/lane-b", &["holdfast-store"]),
        planted_crate("holdfast-testkit", "crates/testkit", &["holdfast-policy"]),
        planted_crate(
            "holdfast-home",
            "crates/home",
            &["holdfast-contract", "holdfast-policy", "holdfast-kernel"],
        ),
        planted_crate("holdfast-secrets", "crates/secrets", &["holdfast-contract", "holdfast-kernel"]),
        planted_crate("holdfast-new", "crates/new", &[]),
    ];
    let broken = rules::layers(&crates);
    breaks(broken.clone(), "`holdfast-contract` (crates/contract/) depends on `holdfast-kernel`");
    breaks(broken.clone(), "`holdfast-store` (crates/store/) depends on `holdfast-policy`");
    breaks(broken.clone(), "`holdfast-policy` (crates/policy/) depends on `holdfast-testkit`");
    breaks(broken.clone(), "`holdfast-lane-a` (crates/lane-a/) depends on `holdfast-lane-b`");
    breaks(broken.clone(), "`holdfast-lane-b` (crates/lane-b/) depends on `holdfast-store`");
    breaks(broken.clone(), "`holdfast-home` (crates/home/) depends on `holdfast-kernel`");
    breaks(broken.clone(), "`holdfast-secrets` (crates/secrets/) depends on `holdfast-kernel`");
    breaks(broken.clone(), "`holdfast-new` in crates/new/ has no place");
    assert_eq!(broken.len(), 8, "{broken:#?}");
}

#[test]
fn the_kernel_depends_on_the_contract_alone() {
    let crates = tree::crates();
    assert!(crates.iter().any(|found| found.folder == "crates/kernel"));
    holds(rules::kernel_dependencies(&crates));
}

#[test]
fn another_dependency_of_the_kernel_is_noticed() {
    let kernel = planted_crate("holdfast-kernel", "crates/kernel", &["holdfast-contract", "serde"]);
    breaks(rules::kernel_dependencies(&[kernel]), "`serde`");
}

#[test]
fn the_runtime_depends_on_no_lane() {
    holds(rules::lane_dependencies(&tree::crates()));
    let crates = [
        planted_crate("holdfast-runtime", "crates/runtime", &["holdfast-store", "holdfast-lane-wasm"]),
        planted_crate("holdfast-app", "crates/app", &["holdfast-lane-wasm"]),
    ];
    let broken = rules::lane_dependencies(&crates);
    breaks(broken.clone(), "`holdfast-runtime` depends on `holdfast-lane-wasm`");
    assert_eq!(broken.len(), 1, "{broken:#?}");
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
        planted_crate("holdfast-policy", "crates/policy", &[]),
        planted_crate("holdfast-lane-native", "crates/lane-native", &[]),
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
        planted_crate("holdfast-contract", "crates/contract", &["holdfast-extension"]),
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
        breaks(
            rules::kernel_is_pure(&in_kernel(text)),
            &format!("crates/kernel/src/planted.rs:1: `{expected}`"),
        );
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
    holds(rules::kernel_is_pure(&[File::new("crates/kernel/src/planted_tests.rs", "use std::fs;")]));
}

#[test]
fn the_kernel_is_small() {
    let files = tree::files(&["rs"]);
    let (lines, plain) = (rules::kernel_lines(&files), rules::kernel_lines_with_brackets(&files));
    println!("kernel: {lines} of {} lines of code; {plain} with imports and brackets", rules::KERNEL_LIMIT);
    assert!(lines > 0);
    holds(rules::kernel_is_small(lines));
}

#[test]
fn only_code_counts_as_kernel_lines_and_too_much_is_noticed() {
    let text = "//! Doc.\n\nuse d::E;\npub use f::{\n    G,\n};\nfn a() {\n    // why\n    b(E {\n        h,\n    });\n}\n/* more\nmore */\n\
                #[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    assert_eq!(rules::kernel_lines(&in_kernel(text)), 3, "a function, a call and a field");
    let long = "step();\n".repeat(rules::KERNEL_LIMIT + 1);
    breaks(rules::kernel_is_small(rules::kernel_lines(&in_kernel(&long))), "2501 lines");
}

#[test]
fn the_contract_holds_values() {
    holds(rules::contract_is_data(&tree::files(&["rs"])));
}

#[test]
fn a_method_that_changes_a_value_of_the_contract_is_noticed() {
    let text = "impl A {\n    fn read(&self, b: &mut B) {}\n    pub fn add<T: Into<B>>(&mut self, b: T) {}\n    \
                fn next<'a>(&'a mut self) {}\n    fn contents(&mut self, visit: V) {}\n}\n";
    let planted = |path: &str| rules::contract_is_data(&[File::new(path, text)]);
    let broken = planted("crates/contract/src/planted.rs");
    breaks(broken.clone(), "crates/contract/src/planted.rs:3: `add` takes `&mut self`");
    breaks(broken.clone(), "crates/contract/src/planted.rs:4: `next` takes `&mut self`");
    assert_eq!(broken.len(), 2, "{broken:#?}");
    holds(planted("crates/contract/src/planted_tests.rs"));
    holds(planted("crates/kernel/src/planted.rs"));
}

#[test]
fn folders_are_small() {
    holds(rules::folder_size(&tree::files(&["rs"])));
}

#[test]
fn a_folder_with_too_many_files_is_noticed() {
    let planted = |folder: &str, count: usize| -> Vec<File> {
        let numbered = (0..count).map(|number| File::new(&format!("{folder}/{number}.rs"), ""));
        let uncounted =
            ["call_tests.rs", "mod.rs", "lib.rs"].map(|name| File::new(&format!("{folder}/{name}"), ""));
        numbered.chain(uncounted).collect()
    };
    for folder in ["crates/kernel/src/session", "extensions/a/src", "sdk/rust/src"] {
        holds(rules::folder_size(&planted(folder, rules::FOLDER_LIMIT)));
        let broken = rules::folder_size(&planted(folder, rules::FOLDER_LIMIT + 1));
        breaks(broken, &format!("{folder}: 13 files; 12 is the limit"));
    }
    holds(rules::folder_size(&planted("sdk/rust/src/bindings", 60)));
    holds(rules::folder_size(&planted("crates/kernel/tests", 60)));
}

#[test]
fn no_file_is_too_long() {
    holds(rules::file_length(&tree::files(&["rs", "py", "js", "mjs", "ts"])));
}

#[test]
fn a_file_that_is_too_long_is_noticed() {
    let long = "x();\n".repeat(rules::FILE_LIMIT + 1);
    breaks(
        rules::file_length(&[File::new("crates/store/src/long.rs", &long)]),
        "crates/store/src/long.rs: 801 lines",
    );
    holds(rules::file_length(&[File::new("crates/store/src/fits.rs", &"x();\n".repeat(rules::FILE_LIMIT))]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_first_run_compiles_few_crates() {
    let tree = tree::dependency_tree();
    let crates = rules::compiled_crates(&tree);
    println!("cargo run: {} of {} crates", crates.len(), rules::CRATE_LIMIT);
    assert!(crates.iter().any(|line| line.starts_with("holdfast v")), "{crates:#?}");
    holds(rules::crate_count(&tree));
}

#[test]
fn too_many_crates_are_noticed_and_each_version_counts_once() {
    let line = |number: usize| format!("planted-{number} v1.0.0\n");
    let mut tree: String = (0..rules::CRATE_LIMIT).map(line).collect();
    tree += "planted-1 v1.0.0 (*)\n\nplanted-2 v1.0.0\n";
    holds(rules::crate_count(&tree));
    breaks(rules::crate_count(&(tree + "planted-1 v2.0.0\n")), "401 crates; 400 is the limit");
}

#[test]
fn crates_are_named_after_what_they_hold() {
    holds(rules::crate_names(&tree::crates()));
}

#[test]
fn a_crate_named_after_nothing_is_noticed() {
    breaks(rules::crate_names(&[planted_crate("holdfast-core", "crates/core", &[])]), "holdfast-core");
    breaks(rules::crate_names(&[planted_crate("holdfast-x", "crates/lane-utils", &[])]), "crates/lane-utils");
    holds(rules::crate_names(&[planted_crate("holdfast-score", "crates/score", &[])]));
}

#[test]
fn unsafe_code_stays_in_the_listed_modules() {
    holds(rules::unsafe_places(&tree::files(&["rs"])));
}

#[test]
fn unsafe_code_elsewhere_is_noticed() {
    let text = "#![deny(unsafe_code)]\n// unsafe\nunsafe fn planted() {}";
    let broken = rules::unsafe_places(&[File::new("crates/runtime/src/planted.rs", text)]);
    breaks(broken.clone(), "crates/runtime/src/planted.rs:3");
    assert_eq!(broken.len(), 1);
}

#[test]
fn files_are_read_by_what_checks_their_kind_and_size() {
    holds(rules::unchecked_reads(&tree::files(&["rs"])));
}

#[test]
fn a_read_without_a_check_is_noticed() {
    let text = "fn a() {\n    std::fs::read_to_string(path);\n}\n#[cfg(test)]\nmod tests {\n    fn b() { fs::read(path); }\n}\n";
    let broken = rules::unchecked_reads(&[File::new("crates/runtime/src/planted.rs", text)]);
    breaks(broken.clone(), "crates/runtime/src/planted.rs:2");
    assert_eq!(broken.len(), 1);
    holds(rules::unchecked_reads(&[File::new("crates/runtime/tests/planted.rs", text)]));
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
    breaks(rules::crate_lints("crates/kernel", "[package]\nname = \"x\"\n"), "crates/kernel/Cargo.toml");
    breaks(
        rules::crate_lints("crates/kernel", "[lints]\n\n[dependencies]\nworkspace = true\n"),
        "crates/kernel/Cargo.toml",
    );
    holds(rules::crate_lints("crates/kernel", "[package]\n\n[lints]\nworkspace = true\n"));
    breaks(rules::crate_opening("crates/kernel/src/lib.rs", "pub mod session;"), "crates/kernel/src/lib.rs");
}

#[test]
fn vendors_are_named_only_beside_their_adapters() {
    holds(rules::vendor_names(&tree::files(&["rs", "py", "js", "mjs", "ts"])));
}

#[test]
fn a_vendor_elsewhere_is_noticed() {
    let planted = |path: &str| rules::vendor_names(&[File::new(path, "// OpenAI\nlet name = \"Telegram\";")]);
    breaks(planted("crates/runtime/src/planted.rs"), "crates/runtime/src/planted.rs:2: names telegram");
    assert_eq!(planted("crates/runtime/src/planted.rs").len(), 1);
    holds(planted("crates/model/src/planted.rs"));
    holds(planted("extensions/chat/src/planted.rs"));
    holds(planted("crates/contract/src/manifest_tests.rs"));
}

#[test]
fn nothing_is_left_for_later() {
    holds(rules::leftovers(&tree::files(&["rs", "py", "js", "mjs", "ts"])));
}

#[test]
fn something_left_for_later_is_noticed() {
    let planted = |text: &str| rules::leftovers(&[File::new("crates/store/src/planted.rs", text)]);
    breaks(planted(concat!("\n// TO", "DO: sync")), "crates/store/src/planted.rs:2");
    breaks(planted(concat!("// FIX", "ME")), "crates/store/src/planted.rs:1");
    breaks(planted(concat!("unimpl", "emented!()")), "crates/store/src/planted.rs:1");
    breaks(planted(concat!("to", "do!()")), "crates/store/src/planted.rs:1");
}

#[test]
fn booleans_are_decided_with_if() {
    holds(rules::boolean_matches(&tree::files(&["rs"])));
}

#[test]
fn a_match_on_a_boolean_is_noticed() {
    let planted = |text: &str| rules::boolean_matches(&[File::new("crates/store/src/planted.rs", text)]);
    breaks(planted("match a {\n    true => b,\n    false => c,\n}"), "crates/store/src/planted.rs:2");
    breaks(planted("match a {\n    false if b => {}\n    _ => c,\n}"), "crates/store/src/planted.rs:2");
    holds(planted("match (a, b) {\n    (true, false) => c,\n    _ => d(true, |e| false),\n}\nif true {}"));
}

#[test]
fn texts_and_comments_use_established_words() {
    let files = tree::files(&["md", "rs", "wit"]);
    for expected in
        ["README.md", "docs/bus.md", "crates/contract/src/problem.rs", "crates/cli/src/arguments.rs"]
    {
        assert!(files.iter().any(|file| file.path == expected && prose::is_for_users(file)), "{expected}");
    }
    for expected in ["crates/runtime/src/session.rs", "tests/tests/histories.rs", "wit/roles.wit"] {
        assert!(files.iter().any(|file| file.path == expected && prose::is_source(file)), "{expected}");
    }
    holds(prose::words(&files));
}

#[test]
fn a_metaphor_in_a_text_or_a_comment_is_noticed() {
    let page = |text: &str| prose::words(&[File::new("docs/planted.md", text)]);
    for (text, expected) in [
        ("Mend the line.", "mend"),
        ("It is\nmade anew.", "anew"),
        ("A client is let go.", "let go"),
        ("The value is none, whoever asks.", "is none"),
        ("The value is none, whoever asks.", "whoever"),
        ("What came\nof it.", "came of"),
        ("| a | is left alone |", "left alone"),
        ("# What went wrong of late", "of late"),
        ("A name is no number.", "is no number"),
        ("These were no\n`files`.", "were no `"),
        ("It gave no way.", "gave no way"),
        ("It was left behind.", "left behind"),
        ("Of three, none is left.", "none is left"),
    ] {
        breaks(page(text), &format!("\"{expected}\" is not plain"));
    }
    holds(page("There is no such page, and it is no longer wanted. Is it so? No."));
    breaks(page("one\nmade anew"), "docs/planted.md:2:");
    holds(page(
        "Recommended, well-formed; what is left. Alone it is not\n\nwell. `unwell` is a field.\n\n```\nmend\n```\n",
    ));
    let source = "    A = \"1\", \"Title\", \"Mend it.\";\n    /// Whoever asks\n";
    let help = prose::words(&[File::new("crates/cli/src/arguments.rs", "    /// Send it up anew\n")]);
    breaks(help, "\"anew\"");
    breaks(prose::words(&[File::new("crates/contract/src/problem.rs", source)]), "\"mend\"");
    let source = |text: &str| prose::words(&[File::new("crates/runtime/src/planted.rs", text)]);
    breaks(source("// It gives way\n// to the next."), "crates/runtime/src/planted.rs:1: \"gives way\"");
    breaks(source("let text = \"made anew\";"), "\"anew\"");
    breaks(source("// What is none."), "\"is none\"");
    breaks(source("format!(\"`{x}` is no {what}\")"), "\"is no {\"");
    holds(source("fn what_is_no_matter() {}\nlet python = \"if found is None\";"));
    holds(source("// None if there is none.\nfn let_go() {}\n"));
    holds(prose::words(&[File::new("sdk/rust/src/bindings/planted.rs", "// anew")]));
}

#[test]
fn the_glossary_is_short_and_its_types_exist() {
    let text = fs::read_to_string(tree::root().join("docs/glossary.md")).unwrap();
    holds(glossary::broken_rows(&text, &tree::files(&["rs"])));
}

#[test]
fn a_glossary_with_a_wrong_path_or_a_second_row_is_noticed() {
    let sources = [
        File::new("crates/lane-a/src/wire.rs", "use b::Gone;\npub enum Lane { Native }\nimpl Id {}"),
        File::new("crates/lane-a/src/bus/event.rs", "pub fn publish() {} // struct Hidden"),
    ];
    let page = |rows: &str| {
        glossary::broken_rows(&format!("| term | meaning | Rust type |\n|---|---|---|\n{rows}"), &sources)
    };
    holds(page(
        "| a* | . | `lane_a::wire::Lane` |\n| b | . | `lane_a::Lane::Native` |\n| c | . | `lane_a::wire::Id` |\n\
         | d | . | `lane_a::bus` |\n| e | . | `lane_a::bus::publish` |\n",
    ));
    for path in [
        "lane_a::wire::Gone",
        "lane_a::bus::Hidden",
        "lane_a::bus::Lane",
        "lane_a::Lane::Wasm",
        "lane_a::queue",
        "lane_b::wire::Lane",
        "Lane",
    ] {
        breaks(page(&format!("| a | . | `{path}` |\n")), &format!("there is no `{path}`"));
    }
    breaks(page("| a* | . | `lane_a::Lane` |\n| A | . | `lane_a::Id` |\n"), "\"a\" has two rows");
    breaks(page("| a | . | |\n"), "\"a\" names no Rust type");
    let many: String = (0..=glossary::ROW_LIMIT).map(|at| format!("| {at} | . | `lane_a::Id` |\n")).collect();
    breaks(page(&many), "has 61 rows, at most 60 are allowed");
    breaks(page(""), "has 0 rows");
}

#[test]
fn lines_of_prose_are_short() {
    holds(prose::line_length(&tree::files(&["md"])));
}

#[test]
fn a_long_line_of_prose_is_noticed() {
    let long = "word ".repeat(21);
    let page = |text: &str| prose::line_length(&[File::new("docs/planted.md", text)]);
    breaks(page(&format!("short\n{long}")), "docs/planted.md:2: 105 characters");
    breaks(page(&format!("- [a](b.md): {long}")), "docs/planted.md:1");
    let excepted = format!("| {long} |\n\n```\n{long}\n```\n\n    {long}\n\n![{long}](picture.svg)\n");
    holds(page(&excepted));
    holds(page(&format!("<!-- Generated -->\n{long}")));
    holds(page(&"ä".repeat(prose::LINE_LIMIT)));
}

#[test]
fn links_lead_somewhere_and_the_index_is_complete() {
    let files = tree::files(&["md"]);
    holds(prose::links(&files, |path| tree::root().join(path).exists()));
    holds(prose::index(&files));
}

#[test]
fn a_dead_link_and_a_page_outside_the_index_are_noticed() {
    let files = [
        File::new("docs/README.md", "[a](a.md) [b](sub/b.md)"),
        File::new(
            "docs/a.md",
            "# A\n\n[here](#a) [b](sub/b.md#what-it-is) [gone](gone.md) [web](https://x.y/z#a)",
        ),
        File::new("docs/sub/b.md", "## What `it` is\n\n[a](../a.md#b) [security](../../SECURITY.md)"),
        File::new("docs/c.md", ""),
    ];
    let known = |path: &str| path == "SECURITY.md" || files.iter().any(|file| file.path == path);
    let broken = prose::links(&files, known);
    breaks(broken.clone(), "docs/a.md:3: the link gone.md");
    breaks(broken.clone(), "docs/sub/b.md:3: the link ../a.md#b");
    assert_eq!(broken.len(), 2, "{broken:#?}");
    assert_eq!(prose::index(&files), ["docs/README.md links docs/c.md 0 times, it should be once"]);
}

#[test]
fn the_files_that_the_architecture_names_exist() {
    let text = fs::read_to_string(tree::root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.contains("### kernel\n") && text.contains("`session/turn.rs`"));
    holds(prose::named_files(&text, &tree::crates(), |path| tree::root().join(path).exists()));
}

#[test]
fn the_code_map_lists_every_crate_above_its_dependencies() {
    let text = fs::read_to_string(tree::root().join("ARCHITECTURE.md")).unwrap();
    holds(prose::code_map_order(&text, &tree::crates()));
}

#[test]
fn a_row_of_the_code_map_in_the_wrong_place_is_noticed() {
    let crates = [
        planted_crate("holdfast-home", "crates/home", &["holdfast-policy"]),
        planted_crate("holdfast-policy", "crates/policy", &[]),
        planted_crate("holdfast-ext-files", "extensions/files", &["holdfast-policy"]),
    ];
    let map = |rows: &str| prose::code_map_order(&format!("## Code map\n\n{rows}"), &crates);
    holds(map("| `extensions/*/` | b |\n| `crates/home/` | b |\n| `crates/policy/` | b |"));
    breaks(map("| `crates/policy/` |\n| `crates/home/` |"), "the row of crates/home is not above");
    breaks(map("| `crates/policy/` `crates/home/` |"), "the row of crates/home is not above");
    breaks(
        map("| `crates/home/` |\n| `crates/policy/` |\n| `extensions/*/` |"),
        "the row of extensions/files",
    );
    breaks(map("| `crates/home/` |"), "no row for crates/policy");
}

#[test]
fn a_file_that_lies_in_another_crate_is_noticed() {
    let crates = [
        planted_crate("holdfast-kernel", "crates/kernel", &[]),
        planted_crate("lane-a", "crates/lane-a", &[]),
    ];
    let files = [
        "crates/kernel/src/turn.rs",
        "crates/lane-a/src/gateway.rs",
        "crates/contract/src/desk.rs",
        "model/",
    ];
    let named = |text: &str| prose::named_files(text, &crates, |path| files.contains(&path));
    breaks(
        named("## Map\n\n### kernel\n\n`desk.rs` piles up."),
        "ARCHITECTURE.md:5: `desk.rs` is not in kernel",
    );
    breaks(named("### lane crates\n`turn.rs`"), "`turn.rs` is not in lane crates");
    breaks(named("### kernel\n`session/`"), "`session/` is not in kernel");
    breaks(named("### kern\n"), "no crate is called kern");
    holds(named(
        "`any.rs`\n### kernel\n`turn.rs`, `crates/contract/src/desk.rs`, `model/`\n### lane crates\n`gateway.rs`",
    ));
}

#[test]
fn the_tests_that_the_security_page_names_exist() {
    let text = fs::read_to_string(tree::root().join("SECURITY.md")).unwrap();
    holds(prose::named_tests(&prose::BOUNDARIES, &text, &tree::files(&["rs"])));
}

#[test]
fn the_tests_that_the_page_of_behaviours_names_exist() {
    let tables = prose::behaviours();
    let text = fs::read_to_string(tree::root().join(tables[0].page)).unwrap();
    let (sources, mut ids) = (tree::files(&["rs", "py"]), Vec::new());
    for table in &tables {
        holds(prose::named_tests(table, &text, &sources));
        let id = |row: &str| row.split('|').nth(1).unwrap_or_default().trim().to_owned();
        ids.extend(table.rows(&text).into_iter().map(id));
    }
    let numbered =
        |letter: &'static str, count: usize| (1..=count).map(move |number| format!("{letter}{number}"));
    let all = numbered("B", 14).chain(numbered("L", 22)).chain(numbered("R", 34)).chain(numbered("S", 15));
    assert_eq!(ids, all.collect::<Vec<_>>(), "each behaviour stands there once");
}

#[test]
fn a_boundary_without_a_test_is_noticed() {
    let sources = [File::new(
        "crates/a/tests/a.rs",
        "#[test]\n#[cfg(unix)]\nfn kept() {}\nfn helper() {}\n#[tokio::test(flavor = \"x\")]\n// Why.\nasync fn waited() {}\n",
    )];
    let named = |rows: &str| {
        let text = format!(
            "## Boundaries and their tests\n\n| boundary | test | open |\n|---|---|---|\n{rows}\n## Next\n\n| a | b |\n|---|---|\n| x | `gone` |\n"
        );
        prose::named_tests(&prose::BOUNDARIES, &text, &sources)
    };
    holds(named("| the home | `kept`, `waited` | |\n"));
    breaks(named("| the home | `kept`, `gone` | |\n"), "there is no test `gone`");
    breaks(named("| the home | `helper` | |\n"), "there is no test `helper`");
    let python = [File::new("a/test_a.py", "class A:\n    def test_it(self):\n    def other(self):\n")];
    let rows = "## The bus\n\n| id | a | b | test |\n|---|---|---|---|\n";
    let behaviour = |row: &str| prose::named_tests(&prose::behaviours()[0], &format!("{rows}{row}"), &python);
    holds(behaviour("| B1 | it is | it is | `test_it` |\n"));
    breaks(behaviour("| B1 | it is | it is | `other` |\n"), "there is no test `other`");
    breaks(behaviour("| B1 | it is | it is | |\n"), "no test is named for B1");
    breaks(named("| the home | | `kept` |\n"), "no test is named for the home");
    breaks(named(""), "no table under `## Boundaries and their tests`");
}

#[test]
fn public_type_names_are_unique() {
    holds(names::unique_type_names(&tree::files(&["rs"])));
}

#[test]
fn a_public_type_name_that_is_used_twice_is_noticed() {
    let twice = [
        File::new("crates/bus/src/a.rs", "pub struct Event {}"),
        File::new("crates/runtime/src/b.rs", "pub enum Event {}\npub(crate) struct Inner;"),
        File::new(
            "crates/store/src/c.rs",
            "pub(crate) struct Inner;\n#[cfg(test)]\nmod tests { pub struct Event; }",
        ),
        File::new("crates/testkit/src/d.rs", "pub struct Event;"),
    ];
    let broken = names::unique_type_names(&twice);
    breaks(
        broken.clone(),
        "`Event` is the name of several public types: crates/bus/src/a.rs:1, crates/runtime/src/b.rs:1",
    );
    assert_eq!(broken.len(), 1, "{broken:#?}");
}

#[test]
fn retired_names_stay_retired() {
    holds(names::retired_names(&tree::files(&["rs"])));
}

#[test]
fn a_retired_name_is_noticed() {
    let planted = |text: &str| names::retired_names(&[File::new("crates/runtime/src/planted.rs", text)]);
    breaks(planted("pub struct House;"), "crates/runtime/src/planted.rs:1: `House` is a retired name");
    breaks(planted("\nmod refold;"), "crates/runtime/src/planted.rs:2: `refold`");
    breaks(planted("const PATIENCE: u8 = 1;"), "`PATIENCE`");
    breaks(planted("fn visit() {}\npub(crate) async fn refold() {}"), "planted.rs:2: `refold`");
    breaks(
        planted("enum A<T> { One(B), #[serde(rename = \"x\")]\n Two { y: Z },\n #[default]\n Errand, }"),
        "planted.rs:4: `Errand`",
    );
    breaks(planted("enum A { House(B), C }"), "`House`");
    breaks(planted("enum A { B }\nenum C { D, Door(Parent) }"), "planted.rs:2: `Door`");
    holds(planted("/// A house.\npub struct Warehouse; fn remade() {}"));
    holds(planted("enum A { One(House), Two { desk: Desk } }\nfn a(it: A) { b(House, c()); }"));
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

#[test]
fn no_privilege_follows_from_an_id() {
    let ids = privileges::built_in_ids(&tree::root());
    assert!(ids.contains("setup") && ids.contains("results"), "{ids:?}");
    holds(privileges::compared_ids(&tree::files(&["rs"]), &ids));
}

#[test]
fn a_comparison_with_the_id_of_a_built_in_extension_is_noticed() {
    let ids = ["setup", "results", "files"].map(str::to_owned).into();
    let planted = |path: &str, text: &str| privileges::compared_ids(&[File::new(path, text)], &ids);
    let place = "crates/runtime/src/planted.rs";
    for text in [
        "fn a(id: &str) -> bool { id == \"setup\" }",
        "fn a(id: &str) -> bool { \"setup\" != id }",
        "const SETUP: &str = \"setup\";\nfn a(id: &str) -> bool { id == SETUP }",
        "const CORE: &[&str] = &[\"files\", \"other\"];\nfn a(id: &str) -> bool { CORE.contains(&id) }",
        "fn a(id: &str) -> bool { match id { \"results\" => true, _ => false } }",
        "fn a(hook: &str) -> bool { hook.strip_prefix(\"results\").is_some() }",
        "fn a(id: &str) -> bool { matches!(id, \"setup\") }",
        "fn a(id: &Id) -> bool { matches!(id.as_str().get(..9), Some(\"files\" | \"results\")) }",
        "fn a(id: &str) -> bool {\n    matches!(\n        id,\n        \"other\"\n            | \"setup\"\n    )\n}",
        "const SETUP: &str = \"setup\";\nfn a(id: &str) -> bool { matches!(id, SETUP) }",
        "fn a(id: &str) -> bool { matches!(id, it if it == \"setup\") }",
    ] {
        breaks(planted(place, text), "crates/runtime/src/planted.rs");
    }
    for text in [
        "fn a() -> Extension { Extension::new(\"setup\") }",
        "fn a(name: &str) -> bool { name == \"settings\" }",
        "fn a(name: &str) -> bool { matches!(name, \"settings\" | \",\") && told(\"setup\") }",
        "fn a() -> bool { matches!(role(\"setup\"), Role::Tool) }",
        "// id == \"setup\"",
        "#[cfg(test)]\nmod tests { fn a(id: &str) -> bool { id == \"setup\" } }",
    ] {
        holds(planted(place, text));
    }
    holds(planted("crates/runtime/src/planted_tests.rs", "fn a(id: &str) -> bool { id == \"setup\" }"));
    holds(planted("extensions/setup/src/lib.rs", "fn a(id: &str) -> bool { id == \"setup\" }"));
}

#[test]
fn what_is_documented_is_read_and_tested() {
    let files = tree::files(&["rs"]);
    assert!(inventory::inventory(&files).len() > 200, "the formats are found");
    holds(inventory::unread(&files));
    holds(inventory::unwritten_frames(&files));
    holds(inventory::unserved_host_calls(&files));
}

#[test]
fn a_setting_a_frame_and_a_host_call_without_a_reader_are_noticed() {
    let planted = vec![
        File::new(
            "crates/home/src/settings.rs",
            "#[derive(JsonSchema)]\npub struct Settings {\n    pub quiet_hours: Option<u32>,\n    pub limits: u32,\n}\n\n\
             pub struct LoadedSettings {\n    pub settings: Settings,\n}\n",
        ),
        File::new(
            "crates/policy/src/moon.rs",
            "#[derive(JsonSchema)]\npub struct Moon {\n    #[serde(rename = \"phase\")]\n    pub stage: u32,\n}\n",
        ),
        File::new("crates/runtime/src/moon.rs", "fn read(moon: &Moon) { moon.stage; }"),
        File::new("crates/home/src/settings/read.rs", "Settings { quiet_hours: quiet_hours?, limits }"),
        File::new("crates/app/src/reader.rs", "fn read(settings: &Settings) { settings.limits; }"),
        // A word of a sentence is no test of a field, and neither is the name that a file never has.
        File::new(
            "tests/tests/limits.rs",
            "limits: 3; // not in quiet_hours, by the phase of the moon; stage: 1",
        ),
        File::new(
            "crates/contract/src/frames/body.rs",
            "    \"moon.risen\" Fact MoonRisen;\n    \"sun.set\" Fact SunSet;\n",
        ),
        File::new("crates/runtime/src/sun.rs", "tell(SunSet { at })"),
        File::new(
            "crates/contract/src/extension/host_call.rs",
            "    MoonPhase(NoArguments) = \"moon.phase\", Clock, Reads, [],\n",
        ),
    ];
    let unread = inventory::unread(&planted);
    breaks(unread.clone(), "`Settings.quiet_hours` is documented and read by nothing");
    breaks(unread.clone(), "`Settings.quiet_hours` is named by no test");
    breaks(unread.clone(), "`Moon.stage` is named by no test");
    assert_eq!(unread.len(), 3, "{unread:?}");
    let frames = inventory::unwritten_frames(&planted);
    breaks(frames.clone(), "the frame `moon.risen`");
    assert_eq!(frames.len(), 1, "{frames:?}");
    breaks(inventory::unserved_host_calls(&planted), "the host call `moon.phase`");
}
