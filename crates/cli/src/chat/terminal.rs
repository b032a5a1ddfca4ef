//! The terminal: its modes, its width, and single keys.
//!
//! While a chat lasts the terminal is quiet: what is typed during a turn is not echoed into the answer and stays for the next
//! prompt, and Ctrl-C is a signal. A command takes the terminal for one question at a time. The mode it was found in comes back on
//! every way out.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};

/// The terminal that the program was started in.
pub(crate) struct Terminal {
    original: Termios,
    shown_on: ShownOn,
    /// What is being done with it. A thread that still reads when the chat is over must not change it again.
    state: Mutex<State>,
}

/// Where questions are shown. A command's standard output is its result, which may go anywhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownOn {
    StandardOutput,
    StandardError,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Chat,
    /// The line editor has it.
    Prompt,
    Left,
}

impl Terminal {
    /// The terminal in its quiet mode; `None` where input or output is not a terminal.
    pub(crate) fn take() -> Option<Self> {
        std::io::stdout().is_terminal().then(|| Self::shown_on(ShownOn::StandardOutput)).flatten()
    }

    /// The same for the questions of a command, which are shown on standard error.
    pub(crate) fn take_for_command() -> Option<Self> {
        std::io::stderr().is_terminal().then(|| Self::shown_on(ShownOn::StandardError)).flatten()
    }

    fn shown_on(shown_on: ShownOn) -> Option<Self> {
        let original = std::io::stdin().is_terminal().then(|| tcgetattr(stdin()).ok()).flatten()?;
        let terminal = Self { original, shown_on, state: Mutex::new(State::Chat) };
        terminal.quiet();
        Some(terminal)
    }

    /// Shows text at once.
    pub(crate) fn show(&self, text: &str) {
        match self.shown_on {
            ShownOn::StandardOutput => show(text),
            ShownOn::StandardError => {
                let mut out = std::io::stderr().lock();
                // A terminal that has gone shows nothing.
                let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            }
        }
    }

    /// Its columns.
    pub(crate) fn width(&self) -> usize {
        match self.shown_on {
            ShownOn::StandardOutput => width(),
            ShownOn::StandardError => error_width(),
        }
    }

    /// Whether a line can be edited, for which standard output is needed.
    pub(crate) fn can_edit(&self) -> bool {
        self.shown_on == ShownOn::StandardOutput || std::io::stdout().is_terminal()
    }

    /// The line editor has the terminal while this runs.
    pub(crate) fn prompt<T>(&self, read: impl FnOnce() -> T) -> T {
        *self.state() = State::Prompt;
        let value = read();
        let mut state = self.state();
        if *state == State::Prompt {
            *state = State::Chat;
        }
        value
    }

    /// The chat or the question is over: the terminal is as it was found, and stays so.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        if *state == State::Prompt {
            // Off the prompt's line, and no more marks around what is pasted.
            self.show("\x1b[?2004l\r\n");
        }
        *state = State::Left;
        // A terminal that has gone needs no mode.
        let _gone = tcsetattr(stdin(), OptionalActions::Drain, &self.original);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// As it was found, for another program.
    pub(crate) fn lend(&self) {
        self.set(&self.original);
    }

    /// No echo, no line editing; Ctrl-C is a signal.
    pub(crate) fn quiet(&self) {
        let mut mode = self.original.clone();
        mode.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        mode.local_modes.insert(LocalModes::ISIG);
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        self.set(&mode);
    }

    /// Every key comes as it is. Input typed before is discarded: it cannot answer a question that was not shown yet.
    fn raw(&self) {
        let mut mode = self.original.clone();
        mode.local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN);
        mode.input_modes.remove(InputModes::ICRNL | InputModes::IXON);
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        self.set(&mode);
        // A terminal that cannot be flushed has nothing to flush.
        let _nothing = tcflush(stdin(), QueueSelector::IFlush);
    }

    fn set(&self, mode: &Termios) {
        let state = self.state();
        if *state == State::Left {
            return;
        }
        // A terminal that has gone needs no mode.
        let _gone = tcsetattr(stdin(), OptionalActions::Drain, mode);
    }
}

/// The terminal's columns; more than any text has where there is no terminal.
pub(crate) fn width() -> usize {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ if std::io::stdout().is_terminal() => 80,
        _ => 1 << 20,
    }
}

/// The same for standard error.
pub(crate) fn error_width() -> usize {
    match tcgetwinsize(stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ if std::io::stderr().is_terminal() => 80,
        _ => 1 << 20,
    }
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character.
    Character(char),
    /// Enter.
    Enter,
    /// Backspace.
    Erase,
    /// Ctrl-U.
    EraseAll,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal has gone.
    End,
    /// The key is no longer wanted.
    Withdrawn,
}

/// A line that was typed, or why there is none.
pub(crate) enum Entry {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal has gone.
    End,
    /// It is no longer wanted.
    Withdrawn,
}

/// The next byte of the terminal.
enum Byte {
    Read(u8),
    /// The terminal is closed.
    Closed,
    /// It is no longer wanted.
    Withdrawn,
}

/// Reads keys one by one until it is dropped, or for as long as they are wanted.
pub(crate) struct Keys<'a> {
    terminal: &'a Terminal,
    withdrawn: &'a AtomicBool,
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        self.terminal.quiet();
    }
}

impl<'a> Keys<'a> {
    pub(crate) fn new(terminal: &'a Terminal, withdrawn: &'a AtomicBool) -> Self {
        terminal.raw();
        Self { terminal, withdrawn }
    }

    /// The next key.
    pub(crate) fn next(&self) -> Key {
        loop {
            match self.byte() {
                Byte::Withdrawn => return Key::Withdrawn,
                Byte::Read(b'\r' | b'\n') => return Key::Enter,
                Byte::Read(0x08 | 0x7f) => return Key::Erase,
                Byte::Read(0x15) => return Key::EraseAll,
                Byte::Read(0x03) => return Key::Interrupt,
                Byte::Read(0x04) | Byte::Closed => return Key::End,
                // An arrow or the like: nothing here wants one.
                Byte::Read(0x1b) => while ready(20) && read().is_some() {},
                Byte::Read(byte) if byte < 0x20 => {}
                Byte::Read(byte) => match self.character(byte) {
                    Some(character) => return Key::Character(character),
                    None => continue,
                },
            }
        }
    }

    /// A line, shown as it is typed or not at all.
    pub(crate) fn line(&self, echo: bool) -> Entry {
        let mut text = String::new();
        loop {
            let shown = match self.next() {
                Key::Enter => {
                    self.terminal.show("\n");
                    return Entry::Line(text);
                }
                Key::Interrupt => return Entry::Interrupt,
                Key::End => return Entry::End,
                Key::Withdrawn => return Entry::Withdrawn,
                Key::Character(character) => {
                    text.push(character);
                    super::text::sanitize::one_line(&character.to_string())
                }
                Key::Erase => text.pop().map(erased).unwrap_or_default(),
                Key::EraseAll => std::mem::take(&mut text).chars().map(erased).collect(),
            };
            if echo {
                self.terminal.show(&shown);
            }
        }
    }

    fn character(&self, first: u8) -> Option<char> {
        let length = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        let mut bytes = vec![first];
        while bytes.len() < length {
            let Byte::Read(byte) = self.byte() else { return None };
            bytes.push(byte);
        }
        std::str::from_utf8(&bytes).ok()?.chars().next()
    }

    fn byte(&self) -> Byte {
        while !ready(50) {
            if self.withdrawn.load(Ordering::Relaxed) {
                return Byte::Withdrawn;
            }
        }
        read().map_or(Byte::Closed, Byte::Read)
    }
}

/// Shows text at once.
pub(crate) fn show(text: &str) {
    let mut out = std::io::stdout().lock();
    // The reader of the output may have gone; the chat notices that elsewhere.
    let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn erased(character: char) -> String {
    let width = unicode_width::UnicodeWidthChar::width(character).unwrap_or(0);
    "\x08 \x08".repeat(width)
}

fn ready(milliseconds: i64) -> bool {
    let stdin = stdin();
    let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
    matches!(poll(&mut wanted, Some(&wait)), Ok(count) if count > 0)
}

fn read() -> Option<u8> {
    let mut byte = [0];
    match rustix::io::read(stdin(), &mut byte) {
        Ok(1) => Some(byte[0]),
        _ => None,
    }
}
