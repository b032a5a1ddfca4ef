//! Lines that a person types at the terminal of a command, or that a program writes to its standard input.

use std::io::{BufRead, IsTerminal, Read, Write};

use holdfast_contract::problem::{Code, Problem};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// The longest value that is read from standard input.
const MAX_VALUE_BYTES: u64 = 64 * 1024;

/// A line of standard input; none at its end.
pub(crate) fn line() -> Option<String> {
    let mut text = String::new();
    match std::io::stdin().lock().read_line(&mut text) {
        Ok(read) if read > 0 => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
        _ => None,
    }
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
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_VALUE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| missing(format!("standard input cannot be read: {error}")))?;
    if text.len() as u64 > MAX_VALUE_BYTES {
        return Err(missing(format!("the value of `{name}` has more than {MAX_VALUE_BYTES} bytes")));
    }
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(value.strip_suffix('\r').unwrap_or(value).to_owned())
}

/// Whether a person agrees. Without a terminal nobody can be asked, and `yes` has to be said beforehand.
pub(crate) fn confirmed(yes: bool, question: &str) -> Result<bool, Problem> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        let problem = Problem::new(Code::UsageInvalid, format!("{question} Nobody can be asked here"));
        return Err(problem.help("Say so with `--yes`."));
    }
    prompt(&format!("{question} [y/N] "));
    Ok(line().is_some_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes")))
}

/// Writes a question to the terminal; the answer is typed behind it.
pub(crate) fn prompt(text: &str) {
    let mut err = std::io::stderr().lock();
    // A terminal that is gone gives no answer either.
    let _closed = write!(err, "{text}").and_then(|()| err.flush());
}
