//! What a long command is doing: on a terminal a line that moves, with the seconds; elsewhere one line for each step.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::output::Output;

/// How progress is shown.
enum ProgressStyle {
    Nowhere,
    Lines,
    Moving,
}

/// Shows one step after the other on standard error.
pub(crate) struct BuildProgress {
    shown: ProgressStyle,
    running: Option<Running>,
}

struct Running {
    step: String,
    since: Instant,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl BuildProgress {
    /// As it fits the output.
    pub(crate) fn new(output: &Output) -> Self {
        let shown = match (output.json || output.quiet, std::io::stderr().is_terminal()) {
            (true, _) => ProgressStyle::Nowhere,
            (false, true) => ProgressStyle::Moving,
            (false, false) => ProgressStyle::Lines,
        };
        Self { shown, running: None }
    }

    /// The step before is done, and this one begins.
    pub(crate) fn begin(&mut self, step: &str) {
        self.finish(true);
        match self.shown {
            ProgressStyle::Nowhere => {}
            ProgressStyle::Lines => eprintln!("{step}"),
            ProgressStyle::Moving => self.running = Some(Running::start(step)),
        }
    }

    /// Nothing comes after the step that runs.
    pub(crate) fn end(&mut self, done: bool) {
        self.finish(done);
    }

    fn finish(&mut self, done: bool) {
        let Some(running) = self.running.take() else { return };
        // The thread ends when the sender does; it cannot fail.
        drop(running.stop);
        let _ended = running.thread.join();
        let mark = if done { '✓' } else { '✗' };
        say(&format!("\r\x1b[2K{mark} {} {:.1} s\n", running.step, running.since.elapsed().as_secs_f64()));
    }
}

impl Running {
    fn start(step: &str) -> Self {
        let (stop, stopped) = channel::<()>();
        let (step, since) = (step.to_owned(), Instant::now());
        let shown = step.clone();
        let thread = std::thread::spawn(move || {
            for mark in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".chars().cycle() {
                say(&format!("\r\x1b[2K{mark} {shown} {:.1} s", since.elapsed().as_secs_f64()));
                match stopped.recv_timeout(Duration::from_millis(100)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
            }
        });
        Self { step, since, stop, thread }
    }
}

fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _unheard = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
