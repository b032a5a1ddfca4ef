//! Questions to the user in the middle of a turn: whether a call may run, and what extensions want to know.
//!
//! Everything that is shown here and comes from a model or an extension is made harmless first, and a question stands in the
//! first column, which a model's text never reaches.

use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::AtomicBool;

use holdfast_contract::ids::{CallId, Seq};
use holdfast_contract::session_frames::{GateReason, UiQuestion};
use holdfast_rpc::PersonsAnswer;
use rustyline::DefaultEditor;
use serde_json::{Value, json};

use super::ink::Ink;
use super::safe::{cut, harmless, one_line, safe_json};
use super::terminal::{Entry, Key, Keys, Terminal, show, width};

/// So many lines of arguments are shown at first.
const LINES: usize = 12;

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The frame that asks.
    pub request: Seq,
    pub question: Question,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// Whether a call may run.
    Approval { call: CallId, tool: String, arguments: Value, reasons: Vec<GateReason> },
    /// What an extension wants to know.
    Extension(UiQuestion),
}

/// What came of a question.
#[derive(Debug)]
pub(crate) enum Reply {
    /// An approval's answer.
    Approval(PersonsAnswer),
    /// An extension's answer; none dismisses the question.
    Extension(Option<Value>),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal has gone.
    End,
    /// Somebody else answered.
    Withdrawn,
}

/// Asks, and waits for the answer.
pub(crate) fn ask(asked: &Asked, terminal: &Terminal, withdrawn: &AtomicBool, ink: Ink) -> Reply {
    let dialogue = Dialogue { terminal, withdrawn, ink };
    match &asked.question {
        Question::Approval { call, tool, arguments, reasons } => {
            dialogue.approval(*call, tool, arguments, reasons)
        }
        Question::Extension(question) => dialogue.extension(question),
    }
}

/// The lines that describe a call: whose, with what, and who asks why. All of them, or as many as fit a screen.
pub(crate) fn described(
    ink: Ink,
    columns: usize,
    (call, tool): (CallId, &str),
    arguments: &Value,
    reasons: &[GateReason],
    all: bool,
) -> Vec<String> {
    let headline = format!("{} wants to run (call {call})", one_line(tool));
    let mut lines =
        vec![format!("{} {}", ink.notable("?"), ink.bold(&cut(&headline, columns.saturating_sub(2))))];
    let pretty = safe_json(&serde_json::to_string_pretty(arguments).unwrap_or_default());
    let count = pretty.lines().count();
    let room = columns.saturating_sub(2).max(8);
    let mut more = count > LINES;
    for line in pretty.lines().take(if all { usize::MAX } else { LINES }) {
        let short = cut(line, room);
        more |= short != line;
        lines.push(format!("  {}", if all { line } else { &short }));
    }
    if more && !all {
        let rest = count.saturating_sub(LINES);
        let what = if rest > 0 {
            format!("… {rest} more lines; v shows all")
        } else {
            "… v shows all".to_owned()
        };
        lines.push(format!("  {}", ink.dim(&what)));
    }
    for GateReason { hook, reason } in reasons {
        let why = format!("{}: {}", one_line(hook.as_str()), one_line(reason));
        lines.push(format!("  {}", if all { why } else { cut(&why, room.max(60)) }));
    }
    lines
}

struct Dialogue<'a> {
    terminal: &'a Terminal,
    withdrawn: &'a AtomicBool,
    ink: Ink,
}

impl Dialogue<'_> {
    fn approval(&self, call: CallId, tool: &str, arguments: &Value, reasons: &[GateReason]) -> Reply {
        let describe = |all: bool| {
            for line in described(self.ink, width(), (call, tool), arguments, reasons, all) {
                show(&format!("{line}\n"));
            }
        };
        describe(false);
        loop {
            // First the keys, then the words: what is typed once the question is shown counts.
            let keys = Keys::new(self.terminal, self.withdrawn);
            show("  y once, s session, a always, e edit, n deny, v all: ");
            let answer = loop {
                match keys.next() {
                    Key::Character('y') => break ("once", Reply::Approval(PersonsAnswer::Once)),
                    Key::Character('s') => {
                        break ("for this session", Reply::Approval(PersonsAnswer::Session));
                    }
                    Key::Character('a') => break ("always", Reply::Approval(PersonsAnswer::Always)),
                    Key::Character(letter @ ('e' | 'n' | 'v')) => {
                        drop(keys);
                        show(&format!("{letter}\n"));
                        match letter {
                            'v' => {
                                describe(true);
                                break ("", Reply::Withdrawn);
                            }
                            'e' => match self.edit(arguments) {
                                Some(arguments) => return Reply::Approval(PersonsAnswer::Edit { arguments }),
                                None => break ("", Reply::Withdrawn),
                            },
                            _ => return self.denial(),
                        }
                    }
                    Key::Interrupt => break ("interrupted", Reply::Interrupt),
                    Key::End => break ("", Reply::End),
                    Key::Withdrawn => break ("answered elsewhere", Reply::Withdrawn),
                    _ => {}
                }
            };
            match answer {
                // Looked at, or not edited after all: the question stands.
                ("", Reply::Withdrawn) => {}
                (word, reply) => {
                    show(&format!("{word}\n"));
                    return reply;
                }
            }
        }
    }

    fn denial(&self) -> Reply {
        match self.line("  why (Enter for no reason): ", true) {
            Ok(reason) if reason.trim().is_empty() => {
                Reply::Approval(PersonsAnswer::Deny { reason: "the user denied it".to_owned() })
            }
            Ok(reason) => Reply::Approval(PersonsAnswer::Deny { reason }),
            Err(reply) => reply,
        }
    }

    /// The arguments as the user wants them; none if they gave up.
    fn edit(&self, arguments: &Value) -> Option<Value> {
        let program = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR")).ok();
        let program = program.filter(|program| !program.trim().is_empty());
        let mut text = match program {
            Some(_) => safe_json(&serde_json::to_string_pretty(arguments).ok()?),
            None => safe_json(&arguments.to_string()),
        };
        loop {
            text = match &program {
                Some(program) => self.in_editor(program, &text)?,
                None => DefaultEditor::new().ok()?.readline_with_initial("  edit: ", (&text, "")).ok()?,
            };
            match serde_json::from_str(text.trim()) {
                Ok(value) => return Some(value),
                Err(error) => {
                    let place = format!("line {}, column {}", error.line(), error.column());
                    show(&format!("  {}\n", self.ink.bad(&format!("this is not JSON: {error}"))));
                    show(&format!("  {} at {place}; mend it, or Ctrl-C to go back\n", near(&text, &error)));
                    if program.is_some() && self.line("  Enter edits again: ", true).is_err() {
                        return None;
                    }
                }
            }
        }
    }

    /// The text after the user's own editor had it.
    fn in_editor(&self, program: &str, text: &str) -> Option<String> {
        let name = format!("holdfast-{}-{:?}.json", std::process::id(), std::time::Instant::now());
        let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).collect();
        let path = std::env::temp_dir().join(name);
        let edited = (|| {
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            drop(file);
            self.terminal.lend();
            let run = format!("{program} \"$1\"");
            let ended = std::process::Command::new("sh").args(["-c", &run, "sh"]).arg(&path).status();
            self.terminal.quiet();
            match ended? {
                status if status.success() => std::fs::read_to_string(&path),
                status => Err(std::io::Error::other(format!("it ended with {status}"))),
            }
        })();
        // It may never have been made.
        let _none = std::fs::remove_file(&path);
        if let Err(error) = &edited {
            show(&format!("  {}\n", self.ink.bad(&format!("the editor `{}`: {error}", one_line(program)))));
        }
        edited.ok()
    }

    fn extension(&self, question: &UiQuestion) -> Reply {
        let headline = |prompt: &str| {
            let text = harmless(prompt).replace('\n', "\n  ");
            show(&format!("{} {}\n", self.ink.notable("?"), self.ink.bold(&text)));
        };
        match question {
            UiQuestion::Confirm { prompt } => {
                headline(prompt);
                let keys = Keys::new(self.terminal, self.withdrawn);
                show("  y yes, n no: ");
                let (word, reply) = loop {
                    match keys.next() {
                        Key::Character('y') => break ("yes", Reply::Extension(Some(json!(true)))),
                        Key::Character('n') => break ("no", Reply::Extension(Some(json!(false)))),
                        Key::Interrupt => break ("interrupted", Reply::Interrupt),
                        Key::End => break ("", Reply::End),
                        Key::Withdrawn => break ("answered elsewhere", Reply::Withdrawn),
                        _ => {}
                    }
                };
                show(&format!("{word}\n"));
                reply
            }
            UiQuestion::Select { prompt, options } => {
                headline(prompt);
                for (index, option) in options.iter().enumerate() {
                    show(&format!("  {} {}\n", index + 1, one_line(option)));
                }
                loop {
                    let typed = match self.line("  number (Enter for none): ", true) {
                        Ok(typed) => typed,
                        Err(reply) => return reply,
                    };
                    let typed = typed.trim();
                    let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                    let chosen = number.and_then(|index| options.get(index));
                    match chosen.or_else(|| options.iter().find(|option| *option == typed)) {
                        Some(option) => return Reply::Extension(Some(json!(option))),
                        None if typed.is_empty() => return Reply::Extension(None),
                        None => show(&format!("  a number from 1 to {}\n", options.len())),
                    }
                }
            }
            UiQuestion::Input { prompt, secret } => {
                headline(prompt);
                let hint = if *secret { "  (not shown): " } else { "  : " };
                match self.line(hint, !secret) {
                    Ok(text) => Reply::Extension(Some(json!(text))),
                    Err(reply) => reply,
                }
            }
            UiQuestion::Custom { prompt, .. } => {
                headline(prompt);
                match self.line("  : ", true) {
                    Ok(text) if text.is_empty() => Reply::Extension(None),
                    Ok(text) => Reply::Extension(Some(json!(text))),
                    Err(reply) => reply,
                }
            }
        }
    }

    fn line(&self, prompt: &str, echo: bool) -> Result<String, Reply> {
        let keys = Keys::new(self.terminal, self.withdrawn);
        show(prompt);
        let (word, reply) = match keys.line(echo) {
            Entry::Line(line) => return Ok(line),
            Entry::Interrupt => ("interrupted", Reply::Interrupt),
            Entry::End => ("", Reply::End),
            Entry::Withdrawn => ("answered elsewhere", Reply::Withdrawn),
        };
        show(&format!("{word}\n"));
        Err(reply)
    }
}

/// The text around the place where reading it failed.
fn near(text: &str, error: &serde_json::Error) -> String {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let from = error.column().saturating_sub(12);
    let around: String = line.chars().skip(from).take(20).collect();
    format!("near `{}`", one_line(&around))
}
