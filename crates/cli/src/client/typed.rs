//! Lines that a person types at the terminal of a command, or that a program writes to its standard input.

use std::io::{BufRead, IsTerminal, Read, Write};

use holdfast_contract::problem::{Code, Problem};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::client::questions::ask_line;

/// The longest value that is read from standard input.
const MAX_VALUE_BYTES: u64 = 64 * 1024;

/// A line of standard input; none at its end, and none if it is longer than a value may be.
pub(crate) fn line() -> Option<String> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_VALUE_BYTES).read_line(&mut text).ok()?;
    let ended = text.ends_with('\n') || (read as u64) < MAX_VALUE_BYTES;
    (read > 0 && ended).then(|| text.trim_end_matches(['\r', '\n']).to_owned())
}

/// All of standard input, as text of at most so many bytes.
pub(crate) fn standard_input(max_bytes: u64) -> Result<String, Problem> {
    let unusable = |what: String| Problem::new(Code::UsageInvalid, format!("standard input {what}"));
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(max_bytes + 1).read_to_end(&mut bytes);
    read.map_err(|error| unusable(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > max_bytes {
        return Err(unusable(format!("has more than {max_bytes} bytes")).help("Give it less."));
    }
    String::from_utf8(bytes).map_err(|error| {
        unusable(format!("is not valid UTF-8 (byte {})", error.utf8_error().valid_up_to()))
            .help("Convert it first, for example with `iconv -t utf-8`.")
    })
}

/// A line that the terminal does not show. The question is asked once nothing is shown any more, and what was typed before is dropped.
pub(crate) fn hidden_line(question: &str) -> Option<String> {
    let stdin = rustix::stdio::stdin();
    let before = tcgetattr(stdin).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stdin, OptionalActions::Flush, &quiet).ok()?;
    prompt(question);
    let answer = line();
    let _shown = tcsetattr(stdin, OptionalActions::Now, &before);
    eprintln!("");
    answer
}

/// A value that is not to be seen: typed without echo, or else all of standard input without the line break at its end.
pub(crate) fn hidden_value(name: &str) -> Result<String, Problem> {
    let missing = |what: String| Problem::new(Code::UsageInvalid, what);
    if std::io::stdin().is_terminal() {
        let typed = hidden_line(&format!("{name} (not shown): "));
        return typed.ok_or_else(|| missing(format!("no value was typed for `{name}`")));
    }
    let text = standard_input(MAX_VALUE_BYTES)?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(value.strip_suffix('\r').unwrap_or(value).to_owned())
}

/// Whether a person agrees. Without a terminal nobody can be asked, and `yes` has to be said beforehand.
pub(crate) fn confirmed(yes: bool, question: &str) -> Result<bool, Problem> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let problem = Problem::new(Code::UsageInvalid, format!("{question} Nobody can be asked here"));
        return Err(problem.help("Say so with `--yes`."));
    }
    Ok(ask_line(&format!("{question} [y/N]"))
        .is_some_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes")))
}

/// Writes a question to the terminal; the answer is typed behind it.
fn prompt(text: &str) {
    let mut err = std::io::stderr().lock();
    // A terminal that is gone gives no answer either.
    let _closed = write!(err, "{text}").and_then(|()| err.flush());
}
