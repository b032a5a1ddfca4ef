//! A program in a pseudo-terminal, as a person has it before them.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use expectrl::process::unix::WaitStatus;
use expectrl::session::OsSession;
use expectrl::{Expect, Session};

/// After this a test gives up. It only has to be longer than the slowest machine needs.
pub const TIMEOUT: Duration = Duration::from_secs(180);

/// A program in a terminal.
pub struct TestTerminal(pub OsSession);

impl TestTerminal {
    /// Starts a program in a terminal of this width. A shell waits until the terminal has its size and then becomes the program,
    /// which never sees another size.
    pub fn start(command: Command, columns: u16) -> Self {
        Self::start_from(Command::new("sh"), command, columns)
    }

    /// Starts a program that inherits no variables. A command does not tell that it was cleared.
    pub fn start_cleared(command: Command, columns: u16) -> Self {
        let mut shell = Command::new("sh");
        shell.env_clear();
        Self::start_from(shell, command, columns)
    }

    fn start_from(mut shell: Command, command: Command, columns: u16) -> Self {
        shell
            .arg("-c")
            .arg("read -r _ && exec \"$0\" \"$@\"")
            .arg(command.get_program())
            .args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            shell.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let mut session = Session::spawn(shell).unwrap();
        session.get_process_mut().set_window_size(columns, 30).unwrap();
        session.write_all(b"\n").unwrap();
        session.set_expect_timeout(Some(TIMEOUT));
        Self(session)
    }

    /// The program's process.
    pub fn process(&self) -> i32 {
        self.0.get_process().pid().as_raw()
    }

    /// Waits for a text, and gives what came before it.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> String {
        match self.0.expect(text) {
            Ok(found) => String::from_utf8_lossy(found.before()).into_owned(),
            Err(error) => {
                let mut rest = vec![0; 4096];
                let read = self.0.try_read(&mut rest).unwrap_or(0);
                let there = String::from_utf8_lossy(&rest[..read]).into_owned();
                panic!("{text:?} never came ({error}); there was {there:?}");
            }
        }
    }

    /// Types a text.
    pub fn types(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
        self.0.flush().unwrap();
    }

    /// Types a line at the prompt.
    #[track_caller]
    pub fn says(&mut self, text: &str) {
        self.until("› ");
        self.types(text);
        self.types("\r");
    }

    /// Waits for the program to end, with this code.
    #[track_caller]
    pub fn ends_with(&mut self, code: i32) {
        let until = Instant::now() + TIMEOUT;
        let mut rest = vec![0; 4096];
        while Instant::now() < until {
            // What is still written must be read, or it is never done writing.
            let _none = self.0.try_read(&mut rest);
            match self.0.get_process().status().unwrap() {
                WaitStatus::Exited(_, found) => return assert_eq!(found, code),
                WaitStatus::Signaled(_, signal, _) => panic!("ended by {signal}"),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        panic!("it does not end");
    }
}
