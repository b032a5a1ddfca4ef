//! The figures of a tool in Python: calls through the whole pipeline, and beside each of them a bare echo over JSON-RPC to the same
//! Python, so that both meet the machine in the same state. One call at a time, and as many at once as a model may ask for.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::manifest::Grants;
use holdfast_contract::message::{AskedCall, Message, TurnContext, Usage};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::protocol::{ToExtension, ToolRequest};
use parking_lot::Mutex;

use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::{Bundle, Lane, Later};
use holdfast_lane_native::{FnHook, NativeExtension, NativeLane};
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_loader::HomeVault;
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_store::{Store, StoreOptions};
use holdfast_untrusted_files::ProgramSearch;
use serde_json::{Value, json};

use crate::sandbox::{arguments, opened, started};
use crate::timing::{Moment, Timing};

/// The tool: a file as a user would write it.
const ECHO: &str = "__effects__ = \"pure\"\n\n\ndef run(content: str, number: int, path: str) -> str:\n    \
                    \"\"\"Gives back what it got.\"\"\"\n    return content\n";
/// The least that answers JSON-RPC.
const BARE: &str = "import json, sys\nfor line in sys.stdin:\n    message = json.loads(line)\n    \
                    answer = {'jsonrpc': '2.0', 'id': message['id'], 'result': message['params']['arguments']['content']}\n    \
                    sys.stdout.write(json.dumps(answer) + '\\n')\n    sys.stdout.flush()\n";
/// How often both are started again: which core the system gives to which of them decides much, and stays as it is for as long as they live.
const PASSES: usize = 10;
/// Turns of a pass, and how often the model answers with calls in each.
const TURNS: usize = 5;
const ROUNDS: usize = 50;

/// What a tool in Python costs here, for each call.
pub struct PythonTimes {
    /// A bare echo.
    pub bare: Timing,
    /// From the model's answer to the result in the kernel.
    pub pipeline: Timing,
}

type Times = Arc<Mutex<Vec<Duration>>>;

fn push(times: &Times, time: Duration) {
    times.lock().push(time);
}

fn failed(what: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, format!("a figure could not be taken: {what}"))
}

/// A tool that echoes, and what its calls are compared with.
pub(crate) struct EchoSubject {
    pub found: FoundExtension,
    pub lane: Arc<dyn Lane>,
    pub tool: &'static str,
    pub bare: Bare,
}

/// Takes the figures of so many calls at once, in this empty folder.
pub async fn python(folder: &Path, at_once: usize) -> Result<PythonTimes, Problem> {
    compare(folder, at_once, subject).await
}

/// Takes the figures of so many calls of a subject at once, in this empty folder.
pub(crate) async fn compare(
    folder: &Path,
    at_once: usize,
    subject: fn(&Path, Arc<HomeVault>) -> Result<EchoSubject, Problem>,
) -> Result<PythonTimes, Problem> {
    let (mut bare, mut pipeline) = (Vec::new(), Vec::new());
    for number in 0..PASSES {
        let (echoed, called) = pass(&folder.join(number.to_string()), at_once, subject).await?;
        bare.extend(echoed);
        pipeline.extend(called);
    }
    let [bare, pipeline] = [bare, pipeline].map(|times| Timing::new("", times));
    Ok(PythonTimes { bare, pipeline })
}

/// The tool in Python.
fn subject(folder: &Path, vault: Arc<HomeVault>) -> Result<EchoSubject, Problem> {
    let (file, code) = ("tools/echo.py", Digest::of(ECHO.as_bytes()));
    let bundle = Bundle {
        lane: "python".to_owned(),
        manifest: format!("id: echo\nname: echo\nentrypoint: {file}\n"),
        entrypoint: file.to_owned(),
        files: BTreeMap::from([(file.to_owned(), code)]),
        config: Content::new(json!({})),
        grants: Grants::default(),
        budgets: Default::default(),
        pinned: None,
    };
    let digest = vault.keep(&bundle, BTreeMap::from([(code, ECHO.as_bytes().to_vec())]))?;
    let found = FoundExtension {
        id: "echo".into(),
        version: "1.0.0".into(),
        digest,
        lane: bundle.lane,
        ..FoundExtension::default()
    };
    let lane = Arc::new(ProcessLane::python(vault, Places::within(folder)));
    let message = ToExtension::Tool(ToolRequest {
        call: Default::default(),
        tool: "echo".into(),
        arguments: arguments(0),
        turn: (&Arc::new(TurnContext::default())).into(),
    });
    let mut request = serde_json::to_value(message).map_err(failed)?;
    request["jsonrpc"] = json!("2.0");
    request["id"] = json!(1);
    let bare = Bare::start(BARE, &[], &request).map_err(failed)?;
    Ok(EchoSubject { found, lane, tool: "echo", bare })
}

/// One life of both: what echoes took, and calls.
async fn pass(
    folder: &Path,
    at_once: usize,
    subject: fn(&Path, Arc<HomeVault>) -> Result<EchoSubject, Problem>,
) -> Result<(Vec<Duration>, Vec<Duration>), Problem> {
    std::fs::create_dir_all(folder).map_err(failed)?;
    let store = Store::open(&folder.join("holdfast.db"), StoreOptions::default())?;
    let vault = Arc::new(HomeVault::new(store.clone(), folder.join("generations")));
    let EchoSubject { found, lane, tool, bare: echo } = subject(folder, vault)?;
    let (bare, through, answered) = (Times::default(), Times::default(), Moment::default());
    let (native, taken, since) = (NativeLane::default(), through.clone(), answered.clone());
    let returned = AtomicUsize::new(0);
    let after = FnHook(HookSpec::at(HookPoint::ToolAfter), move |_: &HookInput| {
        // The last of those that were asked for together.
        if (returned.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(at_once) {
            push(&taken, since.get().elapsed() / at_once as u32);
        }
        Ok(Decision::Continue)
    });
    let kit = native.add(NativeExtension::new("kit", "1.0.0").hook(after));
    let echo = Mutex::new(echo);
    let model = Caller(Arc::new(Peer { echo, times: bare.clone(), answered, at_once, tool }));
    let (lanes, extensions) = (vec![Arc::new(native) as _, lane], vec![kit, found]);
    let runtime = started(store, Arc::new(model), lanes, extensions).await?;
    let session = opened(&runtime, "bench", None)?;
    for turn in 0..TURNS {
        session.say("bench", "go").await?;
        // The first turn brings both in.
        if turn == 0 {
            for times in [&bare, &through] {
                times.lock().clear();
            }
        }
    }
    runtime.stop("measured").await?;
    let taken = |times: Times| std::mem::take(&mut *times.lock());
    let (bare, pipeline) = (taken(bare), taken(through));
    if pipeline.len() != (TURNS - 1) * ROUNDS {
        return Err(failed(format!("{} of {} rounds were answered", pipeline.len(), (TURNS - 1) * ROUNDS)));
    }
    Ok((bare, pipeline))
}

/// A Python that does nothing but echo.
pub(crate) struct Bare {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    request: String,
}

impl Bare {
    /// Starts a script, sends it these lines and reads an answer to each, and echoes with this request afterwards.
    pub(crate) fn start(script: &str, first: &[Value], request: &Value) -> std::io::Result<Self> {
        let missing = || std::io::Error::other("there is no `python3` on the `PATH`");
        let found = ProgramSearch::of_this_process().find("python3").programs.into_iter().next();
        let mut process = Command::new(found.ok_or_else(missing)?)
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || std::io::Error::other("no pipes");
        let mut input = process.stdin.take().ok_or_else(missing)?;
        let mut output = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        for message in first {
            writeln!(input, "{message}")?;
            output.read_line(&mut String::new())?;
        }
        Ok(Self { process, input, output, request: format!("{request}\n") })
    }

    /// So many requests and their answers, for each.
    fn echo(&mut self, at_once: usize) -> std::io::Result<Duration> {
        let begun = Instant::now();
        for _ in 0..at_once {
            self.input.write_all(self.request.as_bytes())?;
        }
        let mut line = String::new();
        for _ in 0..at_once {
            line.clear();
            self.output.read_line(&mut line)?;
            let _answer: serde_json::Value = serde_json::from_str(&line)?;
        }
        Ok(begun.elapsed() / at_once as u32)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What each call through the pipeline is compared with.
struct Peer {
    echo: Mutex<Bare>,
    times: Times,
    answered: Moment,
    at_once: usize,
    tool: &'static str,
}

impl Peer {
    fn compare(&self) {
        let echoed = self.echo.lock().echo(self.at_once);
        push(&self.times, echoed.unwrap_or_default());
        self.answered.set();
    }
}

/// A model that calls the tool again and again, so many calls at a time, each time after its peer.
struct Caller(Arc<Peer>);

impl Model for Caller {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let after = ask.messages.iter().rev().take_while(|message| !matches!(message, Message::User { .. }));
        let number = after.filter(|message| matches!(message, Message::Assistant { .. })).count();
        let asked = |place: usize| {
            let model_id = format!("{number}-{place}").into();
            AskedCall { model_id, tool: self.0.tool.into(), arguments: arguments(number) }
        };
        let wanted = if number < ROUNDS { self.0.at_once } else { 0 };
        let calls: Vec<_> = (0..wanted).map(asked).collect();
        let text = if calls.is_empty() { "done" } else { "" }.into();
        let peer = self.0.clone();
        Box::pin(async move {
            if !calls.is_empty() {
                peer.compare();
            }
            Ok(ModelReturned { text, reasoning: None, calls, usage: Usage::default() })
        })
    }
}
