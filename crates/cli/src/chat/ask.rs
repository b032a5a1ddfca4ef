//! Questions to the user in the middle of a turn: whether a call may run, and what extensions want to know. The chat and every
//! command ask them here.
//!
//! Everything that is shown here and comes from a model or an extension is made harmless first, and a question stands in the
//! first column, which a model's text never reaches. It names the extension that it is about. What was typed before it could be
//! read is thrown away.

use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{ExtensionId, Seq};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{GateReason, UiQuestion, UiRequested};
use holdfast_rpc::{ApprovalChoice, ApprovalInfo, ApprovalShow, Client, SessionMethod};
use holdfast_untrusted_files::ProgramSearch;
use rustyline::DefaultEditor;
use serde_json::{Value, json};

use super::terminal::{Entry, Key, Keys, Terminal};
use super::text::margin::{MARGIN, margined};
use super::text::sanitize::{cut, one_line, safe_json};
use super::text::style::TextStyle;

/// So many lines of arguments are shown at first.
const MAX_ARGUMENT_LINES: usize = 12;

/// A key that comes sooner after a question appears was meant for something else.
const READING_TIME: Duration = Duration::from_millis(300);

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    /// The frame that asks.
    pub request: Seq,
    pub question: PromptKind,
}

impl Prompt {
    /// Whether a frame asks a person something.
    pub(crate) fn is_in(frame: &Frame) -> bool {
        matches!(frame.envelope.kind, FrameKind::ApprovalRequested | FrameKind::UiRequested)
    }

    /// What a frame asks, in full. An error if it no longer waits for an answer.
    pub(crate) async fn of(frame: &Frame, client: &Client) -> Result<Self, Problem> {
        let (session, request) = (frame.envelope.stream.clone(), frame.envelope.seq);
        if frame.envelope.kind == FrameKind::ApprovalRequested {
            let show = SessionMethod::ApprovalShow(ApprovalShow { session, approval: request });
            return Ok(Self { request, question: PromptKind::Approval(client.ask(&show).await?) });
        }
        match client.body(frame).await? {
            Body::UiRequested(UiRequested { extension, question, .. }) => {
                Ok(Self { request, question: PromptKind::Extension { extension, question } })
            }
            _ => Err(Problem::new(Code::Internal, format!("frame {request} of `{session}` asks nothing"))),
        }
    }

    /// The request that a frame answers.
    pub(crate) fn answered_by(frame: &Frame) -> Option<Seq> {
        let field = match frame.envelope.kind {
            FrameKind::ApprovalAnswered => "approval",
            FrameKind::UiAnswered => "request",
            _ => return None,
        };
        frame.body.as_ref()?[field].as_u64().map(Seq)
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum PromptKind {
    /// Whether a call may run.
    Approval(ApprovalInfo),
    /// What an extension wants to know.
    Extension { extension: ExtensionId, question: UiQuestion },
}

/// The reply to a question.
#[derive(Debug)]
pub(crate) enum QuestionReply {
    /// An approval's answer.
    Approval(ApprovalChoice),
    /// An extension's answer; none dismisses the question.
    Extension(Option<Value>),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal has gone.
    End,
    /// Another client answered.
    Withdrawn,
}

/// Asks, and waits for the answer.
pub(crate) fn ask(
    asked: &Prompt,
    terminal: &Terminal,
    withdrawn: &AtomicBool,
    text_style: TextStyle,
) -> QuestionReply {
    let dialogue = Dialogue { terminal, withdrawn, text_style };
    match &asked.question {
        PromptKind::Approval(approval) => dialogue.approval(approval),
        PromptKind::Extension { extension, question } => dialogue.extension(extension, question),
    }
}

/// A line for a question of our own, if there is one.
pub(crate) fn read_line(terminal: &Terminal, prompt: &str) -> Option<String> {
    let withdrawn = AtomicBool::new(false);
    Dialogue { terminal, withdrawn: &withdrawn, text_style: TextStyle::Plain }.line(prompt, true).ok()
}

/// The lines that describe a call: whose, with what, and who asks why. All of them, or as many as fit a screen.
pub(crate) fn described(
    text_style: TextStyle,
    columns: usize,
    asked: &ApprovalInfo,
    all: bool,
) -> CallDescription {
    let ApprovalInfo { call, tool, extension, arguments, reasons, .. } = asked;
    let headline = format!("{} wants to run (call {call})", one_line(tool.as_str()));
    let mut lines = vec![format!(
        "{} {}",
        text_style.notable("?"),
        text_style.bold(&cut(&headline, columns.saturating_sub(2)))
    )];
    if let Some(extension) = extension {
        lines.push(margined(&format!("a tool of `{extension}`"), columns));
    }
    let pretty = safe_json(&serde_json::to_string_pretty(arguments).unwrap_or_default());
    let count = pretty.lines().count();
    let room = columns.saturating_sub(2).max(8);
    let mut more = count > MAX_ARGUMENT_LINES;
    for line in pretty.lines().take(if all { usize::MAX } else { MAX_ARGUMENT_LINES }) {
        let short = cut(line, room);
        more |= short != line;
        lines.push(if all { margined(line, columns) } else { format!("{MARGIN}{short}") });
    }
    if more && !all {
        let rest = count.saturating_sub(MAX_ARGUMENT_LINES);
        let what = if rest > 0 {
            format!("… {rest} more lines; v shows all")
        } else {
            "… v shows all".to_owned()
        };
        lines.push(format!("  {}", text_style.dim(&what)));
    }
    for GateReason { hook, reason } in reasons {
        let why = format!("{}: {}", one_line(hook.as_str()), one_line(reason));
        let short = cut(&why, room);
        more |= short != why;
        lines.push(if all { margined(&why, columns) } else { format!("{MARGIN}{short}") });
    }
    CallDescription { lines, cut: more && !all }
}

/// A call in words.
pub(crate) struct CallDescription {
    pub lines: Vec<String>,
    /// Whether something of it is not shown.
    pub cut: bool,
}

struct Dialogue<'a> {
    terminal: &'a Terminal,
    withdrawn: &'a AtomicBool,
    text_style: TextStyle,
}

impl Dialogue<'_> {
    fn approval(&self, asked: &ApprovalInfo) -> QuestionReply {
        let describe = |all: bool| {
            let described = described(self.text_style, self.terminal.width(), asked, all);
            for line in described.lines {
                self.terminal.show(&format!("{line}\n"));
            }
            let reach = "s and a allow it with any arguments: s in this session, a always, also unattended";
            self.terminal
                .show(&format!("{}\n", self.text_style.dim(&margined(reach, self.terminal.width()))));
            described.cut
        };
        let view = if describe(false) { ", v all" } else { "" };
        std::thread::sleep(READING_TIME);
        let edit = if self.terminal.can_edit() { "e edit, " } else { "" };
        loop {
            // First the keys, then the words: what is typed once the question is shown counts.
            let keys = Keys::new(self.terminal, self.withdrawn);
            self.terminal.show(&format!("  y once, s session, a always, {edit}n deny{view}: "));
            let answer = loop {
                match keys.next() {
                    Key::Character('y') => {
                        break Some(("once", QuestionReply::Approval(ApprovalChoice::Once)));
                    }
                    Key::Character('s') => {
                        break Some(("for this session", QuestionReply::Approval(ApprovalChoice::Session)));
                    }
                    Key::Character('a') => {
                        break Some(("always", QuestionReply::Approval(ApprovalChoice::Always)));
                    }
                    Key::Character('e') if edit.is_empty() => {}
                    Key::Character('v') if view.is_empty() => {}
                    Key::Character(letter @ ('e' | 'n' | 'v')) => {
                        drop(keys);
                        self.terminal.show(&format!("{letter}\n"));
                        match letter {
                            'v' => {
                                describe(true);
                                break None;
                            }
                            'e' => match self.edit(&asked.arguments) {
                                Some(arguments) => {
                                    return QuestionReply::Approval(ApprovalChoice::Edit { arguments });
                                }
                                None => break None,
                            },
                            _ => return self.denial(),
                        }
                    }
                    Key::Interrupt => break Some(("interrupted", QuestionReply::Interrupt)),
                    Key::End => break Some(("", QuestionReply::End)),
                    Key::Withdrawn => break Some(("answered elsewhere", QuestionReply::Withdrawn)),
                    _ => {}
                }
            };
            // Without an answer it was looked at, or not edited after all: the question is asked again.
            if let Some((word, reply)) = answer {
                self.terminal.show(&format!("{word}\n"));
                return reply;
            }
        }
    }

    fn denial(&self) -> QuestionReply {
        match self.line("  why (Enter for no reason): ", true) {
            Ok(reason) if reason.trim().is_empty() => {
                QuestionReply::Approval(ApprovalChoice::Deny { reason: "the user denied it".to_owned() })
            }
            Ok(reason) => QuestionReply::Approval(ApprovalChoice::Deny { reason }),
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
                    self.terminal
                        .show(&format!("  {}\n", self.text_style.bad(&format!("this is not JSON: {error}"))));
                    self.terminal.show(&format!(
                        "  {} at {place}; fix it, or Ctrl-C to go back\n",
                        near(&text, &error)
                    ));
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
            let mut shell = std::process::Command::new("/bin/sh");
            // An editor that lies in the workspace is not the user's.
            shell.env("PATH", ProgramSearch::of_this_process().path());
            let ended = shell.args(["-c", &run, "sh"]).arg(&path).status();
            self.terminal.quiet();
            match ended? {
                status if status.success() => std::fs::read_to_string(&path),
                status => Err(std::io::Error::other(format!("it ended with {status}"))),
            }
        })();
        // It may never have been made.
        let _none = std::fs::remove_file(&path);
        if let Err(error) = &edited {
            self.terminal.show(&format!(
                "  {}\n",
                self.text_style.bad(&format!("the editor `{}`: {error}", one_line(program)))
            ));
        }
        edited.ok()
    }

    fn extension(&self, extension: &ExtensionId, question: &UiQuestion) -> QuestionReply {
        let columns = self.terminal.width();
        let headline = |prompt: &str| {
            let who = cut(&format!("`{extension}` asks:"), columns.saturating_sub(2));
            self.terminal.show(&format!("{} {}\n", self.text_style.notable("?"), self.text_style.bold(&who)));
            self.terminal.show(&format!("{}\n", margined(prompt, columns)));
        };
        match question {
            UiQuestion::Confirm { prompt } => {
                headline(prompt);
                std::thread::sleep(READING_TIME);
                let keys = Keys::new(self.terminal, self.withdrawn);
                self.terminal.show("  y yes, n no: ");
                let (word, reply) = loop {
                    match keys.next() {
                        Key::Character('y') => break ("yes", QuestionReply::Extension(Some(json!(true)))),
                        Key::Character('n') => break ("no", QuestionReply::Extension(Some(json!(false)))),
                        Key::Interrupt => break ("interrupted", QuestionReply::Interrupt),
                        Key::End => break ("", QuestionReply::End),
                        Key::Withdrawn => break ("answered elsewhere", QuestionReply::Withdrawn),
                        _ => {}
                    }
                };
                self.terminal.show(&format!("{word}\n"));
                reply
            }
            UiQuestion::Select { prompt, options } => {
                headline(prompt);
                if let Some(letters) = letters(options) {
                    std::thread::sleep(READING_TIME);
                    return self.choice(options, &letters);
                }
                for (index, option) in options.iter().enumerate() {
                    let option = format!("{} {}", index + 1, one_line(option));
                    self.terminal.show(&format!("{}\n", margined(&option, columns)));
                }
                std::thread::sleep(READING_TIME);
                loop {
                    let typed = match self.line("  number (Enter for none): ", true) {
                        Ok(typed) => typed,
                        Err(reply) => return reply,
                    };
                    let typed = typed.trim();
                    let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                    let chosen = number.and_then(|index| options.get(index));
                    match chosen.or_else(|| options.iter().find(|option| *option == typed)) {
                        Some(option) => return QuestionReply::Extension(Some(json!(option))),
                        None if typed.is_empty() => return QuestionReply::Extension(None),
                        None => self.terminal.show(&format!("  a number from 1 to {}\n", options.len())),
                    }
                }
            }
            UiQuestion::Input { prompt, secret } => {
                headline(prompt);
                std::thread::sleep(READING_TIME);
                let hint = if *secret {
                    format!("  secret, not shown; `{extension}` receives it: ")
                } else {
                    "  : ".to_owned()
                };
                match self.line(&hint, !secret) {
                    Ok(text) => QuestionReply::Extension(Some(json!(text))),
                    Err(reply) => reply,
                }
            }
            UiQuestion::Custom { prompt, .. } => {
                headline(prompt);
                std::thread::sleep(READING_TIME);
                match self.line("  : ", true) {
                    Ok(text) if text.is_empty() => QuestionReply::Extension(None),
                    Ok(text) => QuestionReply::Extension(Some(json!(text))),
                    Err(reply) => reply,
                }
            }
        }
    }

    /// One of a few words, by its first letter, as approvals are answered.
    fn choice(&self, options: &[String], letters: &[char]) -> QuestionReply {
        let keys = Keys::new(self.terminal, self.withdrawn);
        let offered: Vec<String> =
            letters.iter().zip(options).map(|(letter, option)| format!("{letter} {option}")).collect();
        self.terminal.show(&format!("  {}: ", offered.join(", ")));
        let (word, reply) = loop {
            match keys.next() {
                Key::Character(typed) => {
                    let place = letters.iter().position(|letter| *letter == typed);
                    if let Some(option) = place.and_then(|place| options.get(place)) {
                        break (option.as_str(), QuestionReply::Extension(Some(json!(option))));
                    }
                }
                Key::Interrupt => break ("interrupted", QuestionReply::Interrupt),
                Key::End => break ("", QuestionReply::End),
                Key::Withdrawn => break ("answered elsewhere", QuestionReply::Withdrawn),
                Key::Enter | Key::Erase | Key::EraseAll => {}
            }
        };
        self.terminal.show(&format!("{word}\n"));
        reply
    }

    fn line(&self, prompt: &str, echo: bool) -> Result<String, QuestionReply> {
        let keys = Keys::new(self.terminal, self.withdrawn);
        self.terminal.show(prompt);
        let (word, reply) = match keys.line(echo) {
            Entry::Line(line) => return Ok(line),
            Entry::Interrupt => ("interrupted", QuestionReply::Interrupt),
            Entry::End => ("", QuestionReply::End),
            Entry::Withdrawn => ("answered elsewhere", QuestionReply::Withdrawn),
        };
        self.terminal.show(&format!("{word}\n"));
        Err(reply)
    }
}

/// The letters that stand for options which are few short words with different first letters.
fn letters(options: &[String]) -> Option<Vec<char>> {
    const MAX_WORDS: usize = 5;
    const MAX_WORD_BYTES: usize = 16;
    let is_word = |option: &String| {
        option.len() <= MAX_WORD_BYTES && option.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let letters: Vec<char> = options.iter().filter_map(|option| option.chars().next()).collect();
    let distinct: BTreeSet<&char> = letters.iter().collect();
    let fit = (1..=MAX_WORDS).contains(&options.len()) && options.iter().all(is_word);
    (fit && distinct.len() == options.len()).then_some(letters)
}

/// The text around the place where reading it failed.
fn near(text: &str, error: &serde_json::Error) -> String {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let from = error.column().saturating_sub(12);
    let around: String = line.chars().skip(from).take(20).collect();
    format!("near `{}`", one_line(&around))
}
