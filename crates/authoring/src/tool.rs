//! Compilers and other external tools: finding them, running them, and reporting their errors.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::ProgramSearch;

/// A program that builds something.
pub(crate) struct Tool {
    /// Its name.
    pub(crate) name: &'static str,
    /// The environment variable that may name it.
    pub(crate) variable: &'static str,
    /// How to install it.
    pub(crate) install: &'static str,
}

/// zig, as a C compiler.
pub(crate) const ZIG: Tool =
    Tool { name: "zig", variable: "HOLDFAST_ZIG", install: "pip install ziglang==0.17.0" };
/// Python to components.
pub(crate) const COMPONENTIZE_PY: Tool = Tool {
    name: "componentize-py",
    variable: "HOLDFAST_COMPONENTIZE_PY",
    install: "pip install componentize-py==0.25.1",
};
/// JavaScript to components.
pub(crate) const COMPONENTIZE_QJS: Tool = Tool {
    name: "componentize-qjs",
    variable: "HOLDFAST_COMPONENTIZE_QJS",
    install: "npm install --global componentize-qjs@0.4.5",
};
/// cargo with the target for components.
pub(crate) const CARGO: Tool = Tool {
    name: "cargo",
    variable: "HOLDFAST_CARGO",
    install: "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh && rustup target add wasm32-unknown-unknown",
};

impl Tool {
    /// Finds it: the path in the variable, else on the `PATH`.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        match std::env::var_os(self.variable) {
            Some(named) if !named.is_empty() => on_path(&named),
            _ => on_path(&OsString::from(self.name)),
        }
    }

    /// Finds it, or fails with instructions for installing it.
    pub(crate) fn require(&self) -> Result<PathBuf, Problem> {
        self.find().ok_or_else(|| self.missing())
    }

    /// The error that it is missing, with instructions for installing it.
    pub(crate) fn missing(&self) -> Problem {
        Problem::new(Code::BuildTool, format!("`{}` is not installed", self.name))
            .help(format!("Run `{}`, or set {} to the path of the program.", self.install, self.variable))
    }
}

/// A program by its name on the `PATH`, except for what lies in the current folder, or by its own path.
pub(crate) fn on_path(name: &OsString) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_owned());
    }
    ProgramSearch::of_this_process().find(path).programs.into_iter().next()
}

/// Runs a program to completion and captures its output.
pub(crate) fn run(command: &mut Command) -> Result<Output, Problem> {
    command.env("PATH", ProgramSearch::of_this_process().path());
    command.stdin(Stdio::null()).output().map_err(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        Problem::new(Code::BuildTool, format!("`{program}` cannot be run: {error}"))
            .help("Check that it is a program that this machine can run.")
    })
}

/// Runs a compiler. If it fails, its output is the error message.
pub(crate) fn compile(what: &str, command: &mut Command) -> Result<Output, Problem> {
    let output = run(command)?;
    if output.status.success() { Ok(output) } else { Err(failed(what, &output_text(&output))) }
}

/// What a program printed.
pub(crate) fn output_text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{}", out.trim(), err.trim()).trim().to_owned()
}

/// The failure of a compiler, with its output, truncated.
pub(crate) fn failed(what: &str, words: &str) -> Problem {
    const MAX_BYTES: usize = 8_000;
    let words = plain(words);
    let mut cut = words.len().min(MAX_BYTES);
    while !words.is_char_boundary(cut) {
        cut -= 1;
    }
    let more = if cut < words.len() { "\n…" } else { "" };
    let code = Code::BuildFailed;
    Problem::new(code, format!("{what} failed:\n{}{more}", &words[..cut])).help(code.help())
}

/// Text without terminal escape sequences.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => while letters.next().is_some_and(|letter| !letter.is_ascii_alphabetic()) {},
            '\n' | '\t' => plain.push(letter),
            letter if letter.is_control() => {}
            letter => plain.push(letter),
        }
    }
    plain
}
