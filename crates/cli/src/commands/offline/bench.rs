//! `holdfast bench`: the published figures that concern the program as a whole, measured here. The centre's own figures come from
//! `cargo bench -p holdfast-benches --bench timed`.

mod bus;
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(target_os = "linux")]
mod python;
mod sandbox;
mod stream;
mod tools;
mod turn;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_contract::problem::{Code, Problem};
use serde_json::{Value, json};

use crate::arguments::{Bench, BenchSuite};
use crate::exit::Exit;
use crate::output::Output;

const STARTS: usize = 15;
const CALLS: usize = 200;

pub(crate) fn bench(output: &Output, command: &Bench) -> Result<Exit, Problem> {
    let program = std::env::current_exe().map_err(failed)?;
    let wanted = |figures| command.figures.is_empty() || command.figures.contains(&figures);
    if wanted(BenchSuite::Program) {
        starts_and_calls(output, &program)?;
    }
    if wanted(BenchSuite::Bus) {
        bus::bench(output)?;
    }
    if wanted(BenchSuite::Tools) {
        tools::bench(output)?;
    }
    if wanted(BenchSuite::Sandbox) {
        sandbox::bench(output, &program)?;
    }
    if wanted(BenchSuite::Stream) {
        stream::bench(output)?;
    }
    if wanted(BenchSuite::Turn) {
        turn::bench(output, &program)?;
    }
    #[cfg(target_os = "linux")]
    if wanted(BenchSuite::Python) {
        python::bench(output, &program)?;
    }
    #[cfg(target_os = "linux")]
    if wanted(BenchSuite::Mcp) {
        mcp::bench(output, &program)?;
    }
    Ok(Exit::Done)
}

fn failed(error: std::io::Error) -> Problem {
    Problem::new(Code::Internal, format!("a figure could not be taken: {error}"))
}

fn starts_and_calls(output: &Output, program: &Path) -> Result<(), Problem> {
    let size = std::fs::metadata(program).map_err(failed)?.len();
    let home = tempfile::tempdir().map_err(failed)?;
    let folder = tempfile::tempdir().map_err(failed)?;
    let mut starts = Vec::new();
    let mut memory = None;
    let mut calls = Vec::new();
    for round in 0..=STARTS {
        let begun = Instant::now();
        let mut owner = Owner::start(program, home.path(), folder.path()).map_err(failed)?;
        owner.hello().map_err(failed)?;
        // The first start makes the home; the others are warm.
        if round > 0 {
            starts.push(begun.elapsed());
        }
        if round == STARTS {
            std::thread::sleep(Duration::from_millis(300));
            memory = owner.anonymous_memory();
            calls = owner.calls().map_err(failed)?;
        }
        owner.end().map_err(failed)?;
    }
    let figures = [
        ("binary size", megabytes(size)),
        ("idle memory (anonymous)", memory.map_or_else(|| "not told by this platform".to_owned(), megabytes)),
        ("start until ready, warm, p50", millis(&mut starts, 50)),
        ("start until ready, warm, p99", millis(&mut starts, 99)),
        ("a tool call, durable, over the protocol, p50", millis(&mut calls, 50)),
        ("a tool call, durable, over the protocol, p99", millis(&mut calls, 99)),
    ];
    for (name, value) in figures {
        show(output, name, &value)?;
    }
    Ok(())
}

fn show(output: &Output, name: &str, value: &str) -> Result<(), Problem> {
    if output.json {
        output.document(&json!({ "figure": name, "value": value }))
    } else {
        output.line(format!("{name:<62} {value:>14}"))
    }
}

/// A process that owns a home and speaks the protocol.
struct Owner {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Owner {
    fn start(program: &Path, home: &Path, folder: &Path) -> std::io::Result<Self> {
        let mut process = Command::new(program)
            .args(["--home".as_ref(), home.as_os_str(), "rpc".as_ref()])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || std::io::Error::other("the process has no pipes");
        let requests = process.stdin.take().ok_or_else(missing)?;
        let answers = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        Ok(Self { process, requests, answers })
    }

    fn hello(&mut self) -> std::io::Result<()> {
        self.ask("hello", json!({ "version": holdfast_rpc::VERSION, "client": "bench" })).map(drop)
    }

    fn ask(&mut self, method: &str, params: Value) -> std::io::Result<Value> {
        let mut answers = self.ask_all(method, &[params])?;
        answers.pop().ok_or_else(|| std::io::Error::other("there is no answer"))
    }

    /// Asks all of these at once. There must be few enough for the pipe to hold them.
    fn ask_all(&mut self, method: &str, all: &[Value]) -> std::io::Result<Vec<Value>> {
        for (id, params) in all.iter().enumerate() {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            writeln!(self.requests, "{request}")?;
        }
        let mut answers = Vec::with_capacity(all.len());
        let mut line = String::new();
        while answers.len() < all.len() {
            line.clear();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(std::io::Error::other("the process has exited"));
            }
            let message: Value = serde_json::from_str(&line)?;
            if message.get("error").is_some() {
                return Err(std::io::Error::other(message["error"]["message"].to_string()));
            }
            if message.get("id").is_some() {
                answers.push(message["result"].clone());
            }
        }
        Ok(answers)
    }

    /// Calls of a tool that reads a value, each a turn of its own: from the request to the durable end.
    fn calls(&mut self) -> std::io::Result<Vec<Duration>> {
        let opened = self.ask("session.open", json!({ "model": "direct", "channel": "bench" }))?;
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let begun = Instant::now();
            self.ask(
                "session.send",
                json!({ "session": opened["session"], "text": "/kv_get {\"key\":\"bench\"}" }),
            )?;
            times.push(begun.elapsed());
        }
        Ok(times)
    }

    /// Memory that is this process's own and no file's.
    fn anonymous_memory(&self) -> Option<u64> {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.process.id())).ok()?;
        let line = rollup.lines().find(|line| line.starts_with("Anonymous:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }

    fn end(mut self) -> std::io::Result<()> {
        drop(self.requests);
        self.process.wait().map(drop)
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn millis(times: &mut [Duration], percent: usize) -> String {
    times.sort();
    let at = times.len().saturating_sub(1) * percent / 100;
    times.get(at).map_or_else(|| "-".to_owned(), |time| millis_of(*time))
}

fn millis_of(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn micros(time: Duration) -> String {
    format!("{:.2} µs", time.as_secs_f64() * 1e6)
}

fn ratio(one: Duration, other: Duration) -> String {
    format!("{:.2}", one.as_secs_f64() / other.as_secs_f64())
}
