//! What the user types. A thread of its own reads it, because reading a terminal blocks: a line at the prompt, with history,
//! completion and hints, or the answer to a question. Where there is no terminal, lines are read as they are.

use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc as blocking};

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::check_regular;
use parking_lot::Mutex;
use rustyline::completion::Completer;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter, HistoryHinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};
use tokio::sync::mpsc;

use super::ask::{Prompt, QuestionReply, ask};
use super::terminal::Terminal;
use super::text::style::TextStyle;

/// Longer lines are neither remembered nor hinted at.
const MAX_REMEMBERED_CHARS: usize = 64 << 10;

/// What is wanted from the user.
pub(crate) enum InputRequest {
    /// A line at the prompt.
    Line,
    /// An answer, until another client has given it.
    Answer(Box<Prompt>, Arc<AtomicBool>),
}

/// What the user did.
pub(crate) enum Typed {
    /// A line at the prompt.
    Line(String),
    /// Ctrl-C at an empty prompt.
    Interrupt,
    /// Ctrl-D, or there is no more input.
    End,
    /// An answer.
    Reply(QuestionReply),
}

/// Words that complete a slash, each with what it does.
pub(crate) type Words = Arc<Mutex<Vec<(String, String)>>>;

/// The user's side.
pub(crate) struct Input {
    wanted: blocking::Sender<InputRequest>,
    pub typed: mpsc::UnboundedReceiver<Typed>,
    /// Prints above the prompt while a line is being typed.
    pub printer: Option<Box<dyn ExternalPrinter + Send>>,
}

impl Input {
    /// Starts to read.
    pub(crate) fn start(
        terminal: Option<Arc<Terminal>>,
        history: PathBuf,
        text_style: TextStyle,
        words: Words,
    ) -> Result<Self, Problem> {
        let (wanted, wants) = blocking::channel();
        let (types, typed) = mpsc::unbounded_channel();
        let mut printer: Option<Box<dyn ExternalPrinter + Send>> = None;
        let begun = match terminal {
            Some(terminal) => {
                let mut editor = editor(&history, text_style, words)?;
                printer = editor.create_external_printer().ok().map(|printer| Box::new(printer) as _);
                let read = move || at_terminal(&wants, &types, &mut editor, &terminal, &history, text_style);
                std::thread::Builder::new().name("chat-input".to_owned()).spawn(read)
            }
            None => {
                let read = move || plainly(&wants, &types);
                std::thread::Builder::new().name("chat-input".to_owned()).spawn(read)
            }
        };
        begun.map_err(|error| Problem::new(Code::Internal, format!("no thread can be started: {error}")))?;
        Ok(Self { wanted, typed, printer })
    }

    /// Asks the user for something. One thing at a time.
    pub(crate) fn want(&self, wanted: InputRequest) {
        // A thread that has gone has said that input ended.
        let _gone = self.wanted.send(wanted);
    }
}

/// The longest line that is read where there is no terminal.
const MAX_LINE_BYTES: u64 = 8 << 20;

fn plainly(wants: &blocking::Receiver<InputRequest>, types: &mpsc::UnboundedSender<Typed>) {
    let mut lines = std::io::stdin().lock();
    while wants.recv().is_ok() {
        let mut line = Vec::new();
        // Input without an end has no lines.
        let typed = match (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(count) if count > 0 && (count as u64) < MAX_LINE_BYTES => {
                let text = String::from_utf8_lossy(&line);
                Typed::Line(text.trim_end_matches(['\n', '\r']).to_owned())
            }
            _ => Typed::End,
        };
        if types.send(typed).is_err() {
            return;
        }
    }
}

fn at_terminal(
    wants: &blocking::Receiver<InputRequest>,
    types: &mpsc::UnboundedSender<Typed>,
    editor: &mut Editor<Slash, DefaultHistory>,
    terminal: &Terminal,
    history: &Path,
    text_style: TextStyle,
) {
    while let Ok(wanted) = wants.recv() {
        let typed = match wanted {
            InputRequest::Line => terminal.prompt(|| line(editor, history)),
            InputRequest::Answer(asked, withdrawn) => {
                Typed::Reply(ask(&asked, terminal, &withdrawn, text_style))
            }
        };
        if types.send(typed).is_err() {
            return;
        }
    }
}

fn line(editor: &mut Editor<Slash, DefaultHistory>, history: &Path) -> Typed {
    let mut text = String::new();
    let mut more = false;
    loop {
        match editor.readline(if more { MORE } else { PROMPT }) {
            // A backslash at the end: the next line belongs to it.
            Ok(line) if line.ends_with('\\') => {
                text.push_str(&line[..line.len() - 1]);
                text.push('\n');
                more = true;
            }
            Ok(line) => {
                text.push_str(&line);
                let known = text.len() <= MAX_REMEMBERED_CHARS
                    && editor.add_history_entry(text.as_str()).unwrap_or(false);
                if known && check_regular(history).is_ok() {
                    // A history that cannot be written is a pity, and no reason to stop.
                    let _unsaved = editor.append_history(history);
                }
                return Typed::Line(text);
            }
            Err(ReadlineError::Interrupted) if more => {
                text.clear();
                more = false;
            }
            Err(ReadlineError::Interrupted) => return Typed::Interrupt,
            // A window that changed its size.
            Err(ReadlineError::Signal(_)) => {}
            Err(_) => return Typed::End,
        }
    }
}

/// What stands before a line.
const PROMPT: &str = "› ";

/// What stands before the lines that follow it.
const MORE: &str = "… ";

fn editor(
    history: &Path,
    text_style: TextStyle,
    words: Words,
) -> Result<Editor<Slash, DefaultHistory>, Problem> {
    let broken =
        |error: ReadlineError| Problem::new(Code::Internal, format!("the terminal cannot be used: {error}"));
    let config = Config::builder()
        .max_history_size(10_000)
        .map_err(broken)?
        .history_ignore_dups(true)
        .map_err(broken)?
        .history_ignore_space(true)
        .bracketed_paste(true)
        .build();
    let mut editor = Editor::with_config(config).map_err(broken)?;
    editor.set_auto_add_history(false);
    editor.set_helper(Some(Slash { words, text_style, history: HistoryHinter::default() }));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(Clear)));
    if let Some(folder) = history.parent() {
        // A history that is not there yet is an empty one.
        let _none = std::fs::create_dir_all(folder);
    }
    if check_regular(history).is_ok() {
        let _none = editor.load_history(history);
    }
    Ok(editor)
}

/// Ctrl-C clears a line, and is told of only where there is nothing to clear.
struct Clear;

impl ConditionalEventHandler for Clear {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        (!context.line().is_empty()).then_some(Cmd::Kill(Movement::WholeBuffer))
    }
}

/// Completes slash commands, and hints at them and at earlier lines.
struct Slash {
    words: Words,
    text_style: TextStyle,
    history: HistoryHinter,
}

impl Slash {
    fn beginning_with(&self, text: &str) -> Vec<(String, String)> {
        let words = self.words.lock();
        words.iter().filter(|(word, _)| word.starts_with(text)).cloned().collect()
    }
}

/// A hint, and how much of it an arrow takes over.
struct Suggestion {
    text: String,
    taken: usize,
}

impl Hint for Suggestion {
    fn display(&self) -> &str {
        &self.text
    }

    fn completion(&self) -> Option<&str> {
        (self.taken > 0).then(|| &self.text[..self.taken])
    }
}

impl Hinter for Slash {
    type Hint = Suggestion;

    fn hint(&self, line: &str, at: usize, context: &Context<'_>) -> Option<Suggestion> {
        if line.is_empty() || line.len() > 1024 || at < line.len() {
            return None;
        }
        if line.starts_with('/') && !line.contains([' ', '\n']) {
            let (word, about) = self.beginning_with(line).into_iter().next()?;
            let rest = &word[line.len()..];
            return Some(Suggestion { text: format!("{rest}  {about}"), taken: rest.len() });
        }
        let text = self.history.hint(line, at, context)?;
        let taken = text.len();
        (!text.contains('\n')).then_some(Suggestion { text, taken })
    }
}

impl Completer for Slash {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..at];
        if !typed.starts_with('/') || typed.contains('\n') {
            return Ok((at, Vec::new()));
        }
        let found = self.beginning_with(typed);
        Ok((0, found.into_iter().map(|(word, _)| word).collect()))
    }
}

impl Highlighter for Slash {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(self.text_style.bold(prompt))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.text_style.dim(hint))
    }
}

impl Validator for Slash {}

impl Helper for Slash {}
