//! Printing: for a person, or as JSON for a program.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::written_whole;
use holdfast_contract::frame::{Frame, FrameSource};
use holdfast_contract::problem::{Code, Problem};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::Value;

use crate::chat::{
    MARGIN, Margin, cut, error_width, margined, one_line, safe_json, sanitize_for_terminal, width, wrapped,
};
use crate::exit::Exit;

/// Where output goes, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// JSON for a program.
    pub json: bool,
    /// Nothing but the result.
    pub quiet: bool,
    /// What happens on the way, too.
    pub verbose: bool,
}

impl Output {
    /// Prints one line. What others wrote in it can neither do anything to a terminal nor begin a row of it.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<(), Problem> {
        let text = text.as_ref();
        if std::io::stdout().is_terminal() {
            write_line(&wrapped(text, width()))
        } else {
            write_line(&one_line(text))
        }
    }

    /// Prints several lines of our own, in which the words of others are one line each.
    pub(crate) fn lines(&self, text: impl AsRef<str>) -> Result<(), Problem> {
        write_line(&sanitize_for_terminal(text.as_ref()))
    }

    /// Prints a named value of somebody else's.
    pub(crate) fn field(&self, name: &str, value: &str) -> Result<(), Problem> {
        self.line(format!("{name:<11} {value}"))
    }

    /// Prints what somebody said.
    pub(crate) fn said(&self, who: &str, text: &str) -> Result<(), Problem> {
        let who = format!("{who:>9}  ");
        if std::io::stdout().is_terminal() {
            let rows = Margin::new(width()).after(who.len()).whole(text);
            write_line(&(who + &rows))
        } else {
            write_line(&(who + &sanitize_for_terminal(text).replace('\n', "\n           ")))
        }
    }

    /// Prints text of a model or a tool: on a terminal with a margin, elsewhere as it is.
    pub(crate) fn foreign(&self, text: &str) -> Result<(), Problem> {
        if std::io::stdout().is_terminal() {
            write_line(&margined(text, width()))
        } else {
            write_line(&sanitize_for_terminal(text))
        }
    }

    /// Prints a document as one line of JSON.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), Problem> {
        let text = written_whole(|| serde_json::to_string(value))
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        self.json(&text)
    }

    /// Prints JSON. A program reads it as it is; on a terminal, characters that cannot be seen are escapes.
    pub(crate) fn json(&self, text: &str) -> Result<(), Problem> {
        if std::io::stdout().is_terminal() { write_line(&safe_json(text)) } else { write_line(text) }
    }

    /// Prints documents, one line of JSON each.
    pub(crate) fn documents(&self, values: &[impl Serialize]) -> Result<Exit, Problem> {
        values.iter().try_for_each(|value| self.document(value))?;
        Ok(Exit::Done)
    }
}

/// Whether the reader of standard output has closed it, as `head` does when it has read enough.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Whether output was lost because its reader has closed it. That is the reader's choice and is not reported.
pub(crate) fn reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

fn write_line(text: &str) -> Result<(), Problem> {
    write_text(&format!("{text}\n"))
}

/// Writes text of our own to standard output. If that fails, the command ends.
pub(crate) fn write_text(text: &str) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        READER_GONE.fetch_or(error.kind() == ErrorKind::BrokenPipe, Ordering::Relaxed);
        Problem::new(Code::UsageInvalid, format!("the output cannot be written: {error}"))
            .help("Check the file or the pipe that standard output leads to.")
    })
}

/// What is on the terminal of a command, which its own lines, foreign text and questions share.
static TERMINAL: Mutex<Shared> = Mutex::new(Shared { text: None, held: None });

struct Shared {
    /// A foreign text that is being written to standard output.
    text: Option<Margin>,
    /// Lines that wait until a question is answered.
    held: Option<Vec<String>>,
}

impl Shared {
    /// Writes whole lines to standard error, below a text that is being written.
    fn tell(&mut self, lines: &str) {
        if let Some(held) = &mut self.held {
            return held.push(lines.to_owned());
        }
        self.end_row();
        let _unheard = writeln!(std::io::stderr().lock(), "{lines}");
    }

    fn end_row(&mut self) {
        if let Some(text) = self.text.as_mut().filter(|text| text.within_row()) {
            let rest = text.finish();
            text.at_row_start();
            let mut out = std::io::stdout().lock();
            // A reader that went away does not stop the turn.
            let _closed = writeln!(out, "{rest}").and_then(|()| out.flush());
        }
    }
}

fn terminal() -> MutexGuard<'static, Shared> {
    TERMINAL.lock()
}

/// A line on standard error, if anybody listens there. On a terminal, what it quotes from others cannot begin a row.
pub(crate) fn tell(words: std::fmt::Arguments<'_>) {
    let text = sanitize_for_terminal(&words.to_string());
    if !std::io::stderr().is_terminal() {
        return terminal().tell(&text);
    }
    let columns = error_width();
    let mut lines = text.split('\n');
    let first = wrapped(lines.next().unwrap_or_default(), columns);
    let rest = lines.map(|line| margined(line.strip_prefix(MARGIN).unwrap_or(line), columns));
    let rows = rest.fold(first, |rows, line| rows + "\n" + &line);
    terminal().tell(&rows);
}

/// A problem on standard error.
pub(crate) fn report(problem: &Problem) {
    let rows = if std::io::stderr().is_terminal() {
        problem_rows(problem, error_width())
    } else {
        sanitize_for_terminal(&problem.to_string())
    };
    terminal().tell(&rows);
}

/// A problem as it is printed, for a terminal of so many columns: it begins with its severity and code, and all else in it has a
/// margin. What to do quotes others too: names, and why something is not loaded.
pub(crate) fn problem_rows(problem: &Problem, columns: usize) -> String {
    let Problem { severity, code, what, location, help, more } = problem;
    let own = format!("{severity}[{code}]: ");
    let mut margin = Margin::new(columns).after(own.len());
    let mut rows = own + &margin.whole(what.trim_end());
    if let Some(location) = location {
        rows.push('\n');
        rows.push_str(&margined(&format!("--> {location}"), columns));
    }
    for line in format!("help: {help}").lines() {
        rows.push('\n');
        rows.push_str(&margined(line.trim_start(), columns));
    }
    more.iter().fold(rows, |rows, problem| rows + "\n" + &problem_rows(problem, columns))
}

/// Writes more of a foreign text to the terminal that standard output is.
pub(crate) fn stream(text: &str) {
    let mut terminal = terminal();
    let rows = terminal.text.get_or_insert_with(|| Margin::new(width())).push(text);
    let mut out = std::io::stdout().lock();
    // A reader that went away does not stop the turn.
    let _closed = out.write_all(rows.as_bytes()).and_then(|()| out.flush());
}

/// Ends the row of a text that was being written.
pub(crate) fn end_stream() {
    let mut terminal = terminal();
    terminal.end_row();
    terminal.text = None;
}

/// Keeps everything else off the terminal until it is dropped, for a question.
pub(crate) struct Quiet(());

impl Quiet {
    pub(crate) fn new() -> Self {
        let mut terminal = terminal();
        terminal.end_row();
        terminal.held.get_or_insert_default();
        Self(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let mut terminal = terminal();
        for lines in terminal.held.take().unwrap_or_default() {
            terminal.tell(&lines);
        }
    }
}

/// A table for a person: columns as wide as they need, lines cut at the terminal's edge. A row that does not begin with a name has the
/// margin, so that it does not look like words of the program.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    empty: &str,
) -> String {
    let rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|cell| one_line(&cell))).collect();
    if rows.is_empty() {
        return empty.to_owned();
    }
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(widest);
    let line = |cells: [&str; N]| {
        let mut text = String::new();
        for (cell, width) in cells.into_iter().zip(widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        cut(text.trim_end(), width())
    };
    let lines = rows.iter().map(|row| {
        let text = line(std::array::from_fn(|column| row[column].as_str()));
        if is_name(&row[0]) { text } else { cut(&format!("{MARGIN}{text}"), width()) }
    });
    std::iter::once(line(head)).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Whether a cell may begin a row: a name, an id, a number or a path, or nothing.
fn is_name(cell: &str) -> bool {
    let starts = |first: char| first.is_alphanumeric() || "_*-/.".contains(first);
    cell.trim_end().is_empty() || (cell.starts_with(starts) && !cell.trim_end().contains(char::is_whitespace))
}

/// A frame for the user of a conversation: without what a model and tools returned, because sanitizers and guardrails decide what of that
/// the user is shown, and the log has it as it came.
pub(crate) fn user_frame_line(frame: &Frame) -> String {
    let raw = matches!(frame.envelope.kind, FrameKind::ModelReturned | FrameKind::ToolReturned);
    match (&frame.body, raw) {
        (Some(_), true) => line_of_frame(frame, "(as it came: `holdfast log show`)"),
        _ => frame_line(frame),
    }
}

/// A frame on one line, cut to fit a screen.
pub(crate) fn frame_line(frame: &Frame) -> String {
    const WIDTH: usize = 100;
    let body = match (&frame.body, &frame.erased) {
        (Some(body), _) => safe_json(&plain(body).to_string()),
        (None, Some(tombstone)) => format!("(erased: {})", one_line(&tombstone.reason)),
        (None, None) => "(missing)".to_owned(),
    };
    let short: String = body.chars().take(WIDTH).collect();
    let more = if short.len() < body.len() { "…" } else { "" };
    line_of_frame(frame, &format!("{short}{more}"))
}

fn line_of_frame(frame: &Frame, body: &str) -> String {
    let envelope = &frame.envelope;
    let cause = envelope.cause.map(|cause| format!("<- {cause}")).unwrap_or_default();
    format!(
        "{:>5} {:<19} {:<7} {:<16} {body}",
        envelope.seq.0,
        envelope.kind,
        cause,
        one_line(&source(&envelope.source))
    )
}

/// Who caused a frame, in a word.
pub(crate) fn source(source: &FrameSource) -> String {
    match source {
        FrameSource::Kernel => "kernel".to_owned(),
        FrameSource::Host => "host".to_owned(),
        FrameSource::Policy(_) => "policy".to_owned(),
        FrameSource::Surface(name) => name.to_string(),
        FrameSource::Model(name) => name.to_string(),
        FrameSource::Extension(extension) => format!("{}@{}", extension.id, extension.generation.0),
    }
}

/// Content without its wrapping and digests without their tails, for reading.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Value::String(format!("#{}", &text[..8]))
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => match (fields.len(), fields.get("json")) {
            (1, Some(json)) => plain(json),
            _ => fields.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        },
        other => other.clone(),
    }
}
