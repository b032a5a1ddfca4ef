//! The rules, each a function from what it looks at to the list of what breaks it. An empty list is a pass.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_text::{Literals, Token, code_only, tokens, without_inline_tests};
use crate::tree::{Crate, File};

/// Lines that a file may have.
pub const FILE_LIMIT: usize = 800;

/// Lines of code that the kernel may have; [`kernel_lines`] says what counts.
pub const KERNEL_LIMIT: usize = 2_500;

/// Crates that building the program may need, ours included.
pub const CRATE_LIMIT: usize = 400;

/// Modules that are made by a generator, whose `unsafe` is the generator's: the guest's side of the component model.
const UNSAFE_GENERATED: &str = "sdk/rust/src/bindings/";

/// Modules that may hold `unsafe`, each of which argues why it is sound.
const UNSAFE_ALLOWED: &[&str] = &[
    "crates/sandbox/src/linux/spawn.rs",
    "crates/sandbox/src/linux/init.rs",
    "crates/lane-wasm/src/component/precompiled.rs",
    "crates/lane-plugin/src/abi.rs",
    "crates/lane-plugin/src/crash.rs",
    "crates/lane-plugin/src/library.rs",
    "sdk/rust-plugin/src/abi.rs",
    "sdk/rust-plugin/src/lib.rs",
    "crates/store/src/system_error.rs",
    "crates/testkit/src/disk/vfs.rs",
];

/// Folders in which vendors may be named.
// The last one lists names of files, some of which are called after the program that reads them.
const VENDORS_ALLOWED: &[&str] = &["extensions/", "crates/model/", "crates/lane-native/src/protected.rs"];

/// Files of ours that read a file by the standard library alone: those of the kernel below `/proc`, and what an editor has just written.
/// Everything else may be a pipe, a device or without end.
const READS_ALLOWED: &[&str] = &[
    "crates/cli/src/chat/ask.rs",
    "crates/cli/src/commands/offline/bench.rs",
    "crates/lane-native/src/mounts.rs",
    "crates/sandbox/src/linux/group.rs",
    "crates/sandbox/src/linux/shared_memory.rs",
];

const VENDORS: &[&str] = &[
    "anthropic",
    "claude",
    "deepseek",
    "discord",
    "gemini",
    "gpt",
    "mistral",
    "ollama",
    "openai",
    "telegram",
    "whatsapp",
];

const BAD_CRATE_NAMES: &[&str] = &["core", "common", "utils", "helpers"];

/// Modules of the standard library that reach outside, keep hidden state, or suspend.
const KERNEL_MODULES: &[&str] =
    &["env", "fs", "future", "io", "net", "os", "process", "random", "task", "thread", "time"];

/// Words that have no place in the kernel, wherever they come from.
const KERNEL_WORDS: &[&str] = &[
    "Barrier",
    "Condvar",
    "Future",
    "HashMap",
    "HashSet",
    "Instant",
    "Mutex",
    "RandomState",
    "RwLock",
    "SystemTime",
    "async",
    "atomic",
    "await",
    "mpsc",
    "rand",
    "thread_local",
    "tokio",
    "unsafe",
];

const KERNEL_MACROS: &[&str] = &["dbg", "eprint", "eprintln", "print", "println"];

/// Where a crate stands. Dependencies point to a lower rank only; equal ranks do not know each other.
fn rank(folder: &str) -> Option<u8> {
    let short = folder.strip_prefix("crates/").unwrap_or(folder);
    Some(match short {
        "yaml" | "words" | "atomic-file" | "untrusted-files" | "contract" => 0,
        "kernel" => 1,
        "store" | "model" | "policy" | "home" | "schedules" | "secrets" => 2,
        "bus" => 3,
        "runtime" | "loader" => 4,
        "rpc" | "replay" | "bench" | "app" => 5,
        "authoring" => 6,
        "cli" => 7,
        "sdk/rust/macros" => 0,
        "sandbox" | "program" => 1,
        "jsonrpc" => 0,
        "sdk/rust" => 1,
        "sdk/rust-plugin" => 0,
        "holdfast" => 8,
        "testkit" | "tests" | "benches" => SUPPORT,
        _ if short.starts_with("lane-") => 2,
        _ if folder.starts_with("extensions/") => 4,
        _ => return None,
    })
}

/// Pairs on one layer of which the first may depend on the second: the home reads its policy file, and the contract reads
/// manifests with the YAML reader.
const KNOWS: &[(&str, &str)] = &[
    ("crates/home", "crates/policy"),
    ("crates/contract", "crates/yaml"),
    ("crates/program", "crates/sandbox"),
];

/// Crates that may depend on fewer of ours than their layer allows.
const NARROW: &[(&str, &[&str])] = &[
    ("crates/yaml", &[]),
    ("crates/atomic-file", &[]),
    ("crates/untrusted-files", &[]),
    ("crates/words", &[]),
    ("crates/contract", &["crates/yaml"]),
    (
        "crates/home",
        &["crates/contract", "crates/policy", "crates/yaml", "crates/atomic-file", "crates/untrusted-files"],
    ),
    ("crates/schedules", &["crates/contract"]),
    ("crates/secrets", &["crates/contract", "crates/atomic-file", "crates/untrusted-files"]),
    ("crates/sandbox", &["crates/contract"]),
    ("crates/program", &["crates/contract", "crates/sandbox", "crates/untrusted-files"]),
    ("crates/jsonrpc", &[]),
];

/// Crates for tests and benches: they may depend on anything, and no product crate depends on them.
const SUPPORT: u8 = 9;

/// Dependencies point down only.
pub fn layers(crates: &[Crate]) -> Vec<String> {
    let mut broken = Vec::new();
    for from in crates {
        let Some(from_rank) = rank(&from.folder) else {
            broken.push(format!(
                "`{}` in {}/ has no place in the layers: give it one in `rank` in tests/tests/architecture/rules.rs",
                from.name, from.folder
            ));
            continue;
        };
        for to in crates.iter().filter(|to| from.dependencies.contains(&to.name)) {
            let points_down = rank(&to.folder).is_none_or(|to_rank| to_rank < from_rank);
            let known = KNOWS.contains(&(from.folder.as_str(), to.folder.as_str()));
            let narrow = NARROW.iter().find(|(folder, _)| *folder == from.folder);
            let beyond = narrow.is_some_and(|(_, below)| !below.contains(&to.folder.as_str()));
            if from_rank != SUPPORT && (beyond || !(points_down || known)) {
                broken.push(format!(
                    "`{}` ({}/) depends on `{}` ({}/): dependencies point down only",
                    from.name, from.folder, to.name, to.folder
                ));
            }
        }
    }
    broken
}

/// The kernel depends on the contract and on nothing else.
pub fn kernel_dependencies(crates: &[Crate]) -> Vec<String> {
    crates
        .iter()
        .filter(|found| found.folder == "crates/kernel")
        .flat_map(|kernel| &kernel.dependencies)
        .filter(|name| *name != "holdfast-contract")
        .map(|name| format!("the kernel depends on `{name}`: it may depend on `holdfast-contract` alone"))
        .collect()
}

/// The runtime and replay know lanes as `dyn Lane`: which lanes there are is chosen above them.
pub fn lane_dependencies(crates: &[Crate]) -> Vec<String> {
    let without_lanes = ["crates/runtime", "crates/replay"];
    crates
        .iter()
        .filter(|found| without_lanes.contains(&found.folder.as_str()))
        .flat_map(|found| found.dependencies.iter().map(move |name| (found, name)))
        .filter(|(_, name)| name.starts_with("holdfast-lane-"))
        .map(|(found, name)| {
            format!("`{}` depends on `{name}`: it may know lanes as `dyn Lane` only", found.name)
        })
        .collect()
}

/// A built-in extension is written as anybody's would be: against the contract, the native lane and what confines programs, and nothing
/// else of ours.
pub fn extension_dependencies(crates: &[Crate]) -> Vec<String> {
    let allowed = [
        "holdfast-sandbox",
        "holdfast-contract",
        "holdfast-lane-native",
        "holdfast-atomic-file",
        "holdfast-untrusted-files",
    ];
    let ours = |name: &String| crates.iter().any(|found| found.name == *name);
    crates
        .iter()
        .filter(|found| found.folder.starts_with("extensions/"))
        .flat_map(|found| found.dependencies.iter().map(move |name| (found, name)))
        .filter(|(_, name)| ours(name) && !allowed.contains(&name.as_str()))
        .map(|(found, name)| {
            format!("`{}` depends on `{name}`: an extension may depend on {}", found.name, allowed.join(", "))
        })
        .collect()
}

/// The SDK is its own world: guests depend on it, and neither side of the interface on the other.
pub fn sdk_dependencies(crates: &[Crate]) -> Vec<String> {
    let inside =
        |name: &str| crates.iter().any(|found| found.name == name && found.folder.starts_with("sdk/"));
    let ours = |name: &str| crates.iter().any(|found| found.name == name);
    let mut broken = Vec::new();
    for found in crates.iter().filter(|found| rank(&found.folder) != Some(SUPPORT)) {
        let sdk = found.folder.starts_with("sdk/");
        for name in found.dependencies.iter().filter(|name| ours(name) && inside(name) != sdk) {
            broken.push(format!(
                "`{}` depends on `{name}`: the SDK and the program share `wit/` and nothing else",
                found.name
            ));
        }
    }
    broken
}

/// The kernel touches no clock, file, socket, thread, random or async, and no map whose order varies.
pub fn kernel_is_pure(files: &[File]) -> Vec<String> {
    kernel_code(files).flat_map(|(file, code)| impure(file, &tokens(&code))).collect()
}

fn impure(file: &File, tokens: &[Token]) -> Vec<String> {
    let at = |place: usize| tokens.get(place).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let word = token.text.as_str();
        let atomic_type = word.starts_with("Atomic") && word.len() > "Atomic".len();
        if KERNEL_WORDS.contains(&word)
            || atomic_type
            || (KERNEL_MACROS.contains(&word) && at(place + 1) == "!")
            || (word == "static" && at(place + 1) == "mut")
        {
            found.push(token.clone());
        }
        if ["std", "core", "alloc"].contains(&word) && at(place + 1) == ":" && at(place + 2) == ":" {
            found
                .extend(first_segments(&tokens[place + 3..]).filter(|segment| {
                    KERNEL_MODULES.contains(&segment.text.as_str()) || segment.text == "*"
                }));
        }
    }
    found
        .iter()
        .map(|token| format!("{}:{}: `{}` in the kernel", file.path, token.line, token.text))
        .collect()
}

/// What stands directly under a path: `fs` in `std::fs::read`, both `fs` and `io` in `std::{fs, io::Read}`.
fn first_segments(tokens: &[Token]) -> impl Iterator<Item = Token> {
    let mut segments = Vec::new();
    if tokens.first().is_some_and(|token| token.text == "{") {
        let mut depth = 0;
        let mut fresh = true;
        for token in tokens {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                "," if depth == 1 => fresh = true,
                _ if fresh && depth == 1 => {
                    segments.push(token.clone());
                    fresh = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    } else {
        segments.extend(tokens.first().cloned());
    }
    segments.into_iter()
}

/// The kernel's lines of code, without blank lines, comments, tests, imports and lines that only close brackets: dense formatting and
/// glob imports gain nothing.
pub fn kernel_lines(files: &[File]) -> usize {
    kernel_code(files).map(|(_, code)| lines_of_code(&code)).sum()
}

/// The same with imports and lines that only have brackets.
pub fn kernel_lines_with_brackets(files: &[File]) -> usize {
    kernel_code(files).map(|(_, code)| code.lines().filter(|line| !line.trim().is_empty()).count()).sum()
}

fn lines_of_code(code: &str) -> usize {
    let mut in_import = false;
    let counts = |line: &str| {
        let line = line.trim();
        let is_import = in_import || line.trim_start_matches("pub ").starts_with("use ");
        in_import = is_import && !line.ends_with(';');
        !is_import && line.chars().any(|c| !"(){}[];,".contains(c))
    };
    code.lines().map(counts).filter(|counts| *counts).count()
}

/// The kernel is small.
pub fn kernel_is_small(lines: usize) -> Vec<String> {
    let message = || format!("the kernel has {lines} lines of code; {KERNEL_LIMIT} is the limit");
    if lines > KERNEL_LIMIT { vec![message()] } else { Vec::new() }
}

fn kernel_code(files: &[File]) -> impl Iterator<Item = (&File, String)> {
    files
        .iter()
        .filter(|file| file.path.starts_with("crates/kernel/src/") && !file.is_test())
        .map(|file| (file, without_inline_tests(&code_only(&file.text, Literals::Blank))))
}

/// Where the contract may have methods that change a value: the visitor of a body's contents, and what reads or writes a format step by
/// step. A state that changes belongs to the kernel.
const CONTRACT_BUILDERS: &[&str] = &["crates/contract/src/values/canonical.rs"];
const CONTRACT_VISITORS: &[&str] = &["contents", "drop"];

/// The contract holds values: no method of it takes `&mut self`, except builders and visitors.
pub fn contract_is_data(files: &[File]) -> Vec<String> {
    const FOLDER: &str = "crates/contract/src/";
    let is_builder = |path: &str| CONTRACT_BUILDERS.contains(&path);
    files
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && !file.is_test() && !is_builder(&file.path))
        .flat_map(|file| {
            let code = without_inline_tests(&code_only(&file.text, Literals::Blank));
            let found = mutating_methods(&tokens(&code));
            let found = found.into_iter().filter(|method| !CONTRACT_VISITORS.contains(&method.text.as_str()));
            found.map(|method| {
                let Token { text, line } = method;
                format!(
                    "{}:{line}: `{text}` takes `&mut self`: what changes a state belongs to the kernel",
                    file.path
                )
            })
        })
        .collect()
}

/// The names of the methods that take `&mut self` or `&'a mut self`.
fn mutating_methods(tokens: &[Token]) -> Vec<Token> {
    let text = |place: usize| tokens.get(place).map_or("", |token| token.text.as_str());
    let functions = tokens.iter().enumerate().filter(|(_, token)| token.text == "fn");
    let takes_mut_self = |name: &usize| {
        let parameters = parameters(tokens, *name).unwrap_or(tokens.len());
        let receiver: Vec<&str> =
            (parameters + 1..parameters + 6).map(text).take_while(|word| *word != "self").collect();
        receiver.first() == Some(&"&") && receiver.last() == Some(&"mut")
    };
    functions
        .map(|(place, _)| place + 1)
        .filter(takes_mut_self)
        .filter_map(|name| tokens.get(name).cloned())
        .collect()
}

/// Where the parameters of the function of this name open, behind its generics.
fn parameters(tokens: &[Token], name: usize) -> Option<usize> {
    let mut depth = 0;
    for place in name + 1..tokens.len() {
        match tokens[place].text.as_str() {
            "<" => depth += 1,
            ">" if tokens[place - 1].text != "-" => depth -= 1,
            "(" if depth == 0 => return Some(place),
            _ => {}
        }
    }
    None
}

/// Source files that a folder may have, tests and the crate's or folder's own map not counted.
pub const FOLDER_LIMIT: usize = 12;

/// A folder can be read as a list. Generated code is exempt.
pub fn folder_size(files: &[File]) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
        let product = ["crates/", "extensions/", "sdk/rust/"].iter().any(|of| folder.starts_with(of));
        let source = folder.split('/').any(|part| part == "src") && !file.path.starts_with(UNSAFE_GENERATED);
        let counted = !name.ends_with("_tests.rs") && !["lib.rs", "main.rs", "mod.rs"].contains(&name);
        if product && source && counted {
            *folders.entry(folder).or_default() += 1;
        }
    }
    let too_many = folders.into_iter().filter(|(_, count)| *count > FOLDER_LIMIT);
    too_many.map(|(folder, count)| format!("{folder}: {count} files; {FOLDER_LIMIT} is the limit")).collect()
}

/// No file is too long to be read in one go. Generated bindings are not read.
pub fn file_length(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| !file.path.starts_with(UNSAFE_GENERATED))
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LIMIT)
        .map(|(file, lines)| format!("{}: {lines} lines; {FILE_LIMIT} is the limit", file.path))
        .collect()
}

/// The crates in the output of `cargo tree --prefix none`, each version once.
pub fn compiled_crates(tree: &str) -> BTreeSet<&str> {
    tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty()).collect()
}

/// A first run compiles few crates.
pub fn crate_count(tree: &str) -> Vec<String> {
    let count = compiled_crates(tree).len();
    let message = || {
        format!(
            "building the program needs {count} crates; {CRATE_LIMIT} is the limit: `cargo tree -p holdfast -e normal,build` \
             shows who brings them"
        )
    };
    if count > CRATE_LIMIT { vec![message()] } else { Vec::new() }
}

/// A crate's name says what is in it.
pub fn crate_names(crates: &[Crate]) -> Vec<String> {
    crates
        .iter()
        .filter(|found| {
            let words = found.name.split(['-', '_']).chain(found.folder.split(['/', '-']));
            words.into_iter().any(|word| BAD_CRATE_NAMES.contains(&word))
        })
        .map(|found| format!("`{}` in {}/: name it after what it holds", found.name, found.folder))
        .collect()
}

/// `unsafe` stays in the modules that are listed.
pub fn unsafe_places(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| {
            !UNSAFE_ALLOWED.contains(&file.path.as_str()) && !file.path.starts_with(UNSAFE_GENERATED)
        })
        .flat_map(|file| {
            let found = tokens(&code_only(&file.text, Literals::Blank));
            let found = found.into_iter().filter(|token| token.text == "unsafe");
            found.map(|token| format!("{}:{}: `unsafe` outside the listed modules", file.path, token.line))
        })
        .collect()
}

/// Files are read by what checks their kind and their size.
pub fn unchecked_reads(files: &[File]) -> Vec<String> {
    let product = |path: &str| {
        let ours = path.starts_with("crates/") || path.starts_with("extensions/");
        let support = path.starts_with("crates/testkit/") || path.starts_with("crates/untrusted-files/");
        ours && path.contains("/src/") && !support && !path.ends_with("/testing.rs")
    };
    files
        .iter()
        .filter(|file| product(&file.path) && !file.is_test() && !READS_ALLOWED.contains(&file.path.as_str()))
        .flat_map(|file| {
            let code = without_inline_tests(&code_only(&file.text, Literals::Blank));
            let lines: Vec<String> = code.lines().map(str::to_owned).collect();
            lines.into_iter().enumerate().filter_map(|(index, line)| {
                let read = ["fs::read(", "fs::read_to_string("].iter().find(|it| line.contains(**it))?;
                Some(format!("{}:{}: `{read}…)`; use holdfast_untrusted_files", file.path, index + 1))
            })
        })
        .collect()
}

/// A crate takes the workspace's lints.
pub fn crate_lints(folder: &str, manifest: &str) -> Vec<String> {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    if lines.find(|line| !line.is_empty()) == Some("workspace = true") {
        Vec::new()
    } else {
        vec![format!("{folder}/Cargo.toml: `[lints]` with `workspace = true` is missing")]
    }
}

/// A crate's first file opens by saying what lives there.
pub fn crate_opening(path: &str, text: &str) -> Vec<String> {
    if text.starts_with("//! ") { Vec::new() } else { vec![format!("{path}: does not begin with `//!`")] }
}

/// Vendors are named only where their adapters live.
pub fn vendor_names(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| !file.is_test() && !VENDORS_ALLOWED.iter().any(|folder| file.path.starts_with(folder)))
        .flat_map(|file| {
            let code = without_inline_tests(&code_only(&file.text, Literals::Keep)).to_lowercase();
            let lines: Vec<String> = code.lines().map(str::to_owned).collect();
            lines.into_iter().enumerate().filter_map(|(index, line)| {
                let vendor = VENDORS.iter().find(|vendor| line.contains(*vendor))?;
                Some(format!("{}:{}: names {vendor}", file.path, index + 1))
            })
        })
        .collect()
}

/// Nothing is left for later in the source: what is missing is an issue, or is not there.
pub fn leftovers(files: &[File]) -> Vec<String> {
    let marks =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("unimpl", "emented!"), concat!("to", "do!")];
    files
        .iter()
        .flat_map(|file| {
            file.text.lines().enumerate().filter_map(move |(index, line)| {
                let mark = marks.iter().find(|mark| line.contains(**mark))?;
                Some(format!("{}:{}: {mark}", file.path, index + 1))
            })
        })
        .collect()
}

/// A decision about a boolean is an `if`: no arm of a `match` is `true` or `false` alone, with or without a guard.
pub fn boolean_matches(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| !file.path.starts_with(UNSAFE_GENERATED)) {
        let tokens = tokens(&code_only(&file.text, Literals::Blank));
        for window in tokens.windows(4) {
            let [before, value, arrow, end] = window else { continue };
            let is_boolean = matches!(value.text.as_str(), "true" | "false");
            let begins_arm = matches!(before.text.as_str(), "{" | "," | "}");
            let is_arm = arrow.text == "if" || (arrow.text == "=" && end.text == ">");
            if is_boolean && begins_arm && is_arm {
                broken.push(format!("{}:{}: a `match` on a boolean: write `if`", file.path, value.line));
            }
        }
    }
    broken
}
