//! `holdfast up`, `down`: a home that is up without anybody talking to it.
//!
//! `up` is a supervisor. It runs the owner of the home as a child, which it starts again when that asks for it or dies, and gives up when
//! it keeps dying. The child comes up, answers on the control socket, and goes when it is told to.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use holdfast_app::{ApplicationConfig, Purpose};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::{Home, LogLevelSetting};
use holdfast_rpc::{NoParams, SystemMethod, connect};
use holdfast_runtime::ShutdownRequest;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::client::link::{ClientOrigin, EmbeddedOwner, Link, OwnerConnection};
use crate::exit::Exit;
use crate::output::Output;

/// What a child leaves with that is to be started again at once.
const RESTART_EXIT_CODE: u8 = 75;
/// So many deaths within the window, and the supervisor gives up. An extension that takes the process with it is kept down from the
/// third start on, so a process that dies more often has another reason.
const MAX_CRASHES: usize = 5;
const CRASH_WINDOW: Duration = Duration::from_secs(120);
/// The longest pause before the owner is started again.
const MAX_PAUSE: Millis = Millis(4_000);
/// So many restarts within the window that are asked for happen at once. The next one waits until the process has been up for a delay
/// that doubles with each, so that no extension keeps the home from working.
const FREE_RESTARTS: u32 = 3;
const RESTART_WINDOW: Duration = Duration::from_secs(3_600);
const FIRST_RESTART_DELAY: Millis = Millis(30_000);
const MAX_RESTART_DELAY: Millis = Millis(900_000);
/// Tells the child how often it was restarted within the window because it was asked for.
const RESTARTS_VARIABLE: &str = "HOLDFAST_RESTARTS";
/// How long a child may take to stop in order.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a process that owned the home may take to end after it was killed.
const PREDECESSOR_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an owner that has just begun may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the flag in the home's folder is looked for.
const FLAG_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How a child process ended.
enum ChildExit {
    /// It was told to go, or had nothing more to do.
    Done,
    /// It wants to be started again.
    Restart,
    /// What it found is invalid, and would be the next time.
    Refused,
    /// It died.
    Died(String),
}

impl From<ExitStatus> for ChildExit {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(0) => Self::Done,
            Some(code) if code == i32::from(RESTART_EXIT_CODE) => Self::Restart,
            Some(2) => Self::Refused,
            _ => Self::Died(status.to_string()),
        }
    }
}

/// Keeps a home up until it is told to stop.
pub(crate) async fn supervise(output: &Output, plan: &ApplicationConfig) -> Result<Exit, Problem> {
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (mut deaths, mut restarts): (Vec<Instant>, Vec<Instant>) = (Vec::new(), Vec::new());
    loop {
        drop(std::fs::remove_file(plan.home.restart_flag()));
        restarts.retain(|at| at.elapsed() < RESTART_WINDOW);
        let mut child = begin(plan, restarts.len())?;
        let left = tokio::select! {
            status = child.wait() => ChildExit::from(status.map_err(lost)?),
            _ = terminate.recv() => stop(&mut child).await?,
            _ = interrupt.recv() => stop(&mut child).await?,
        };
        match left {
            ChildExit::Done => return Ok(Exit::Done),
            ChildExit::Refused => return Ok(Exit::Failed),
            ChildExit::Restart => {
                restarts.push(Instant::now());
                say(output, "starting again");
            }
            ChildExit::Died(how) => {
                deaths.push(Instant::now());
                deaths.retain(|at| at.elapsed() < CRASH_WINDOW);
                if deaths.len() >= MAX_CRASHES {
                    let what = format!(
                        "the process died {MAX_CRASHES} times within {} s: {how}",
                        CRASH_WINDOW.as_secs()
                    );
                    let help = "`holdfast ext doctor` shows what happened to each extension; `holdfast log show system` shows everything.";
                    return Err(Problem::new(Code::CrashLoop, what).help(help));
                }
                let earlier = u32::try_from(deaths.len()).unwrap_or(u32::MAX);
                let pause = Duration::from_millis(Millis(250).backoff(earlier, MAX_PAUSE).0);
                say(
                    output,
                    &format!("the process died ({how}); starting it again in {} ms", pause.as_millis()),
                );
                tokio::select! {
                    () = sleep(pause) => {}
                    _ = terminate.recv() => return Ok(Exit::Done),
                    _ = interrupt.recv() => return Ok(Exit::Interrupted),
                }
            }
        }
    }
}

pub(crate) fn listen(kind: SignalKind) -> Result<Signal, Problem> {
    signal(kind)
        .map_err(|error| Problem::new(Code::Internal, format!("could not install a signal handler: {error}")))
}

fn lost(error: std::io::Error) -> Problem {
    Problem::new(Code::Internal, format!("the child process is lost: {error}"))
}

fn say(output: &Output, text: &str) {
    if !output.quiet {
        eprintln!("{text}");
    }
}

/// Starts the owner of the home as a child, which was restarted so often.
fn begin(plan: &ApplicationConfig, restarts: usize) -> Result<Child, Problem> {
    let failed = |error| Problem::new(Code::Internal, format!("the owner cannot be started: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg("--home").arg(plan.home.root());
    if let Some(profile) = &plan.profile {
        command.arg("--profile").arg(profile);
    }
    match plan.log_level {
        Some(LogLevelSetting::Error) => drop(command.arg("--quiet")),
        Some(_) => drop(command.arg("--verbose")),
        None => {}
    }
    command.args(["up", "--unsupervised"]).env("HOLDFAST_SUPERVISOR", std::process::id().to_string());
    command.env(RESTARTS_VARIABLE, restarts.to_string());
    command.stdin(Stdio::null()).kill_on_drop(true).process_group(0).spawn().map_err(failed)
}

/// Has a child stop in order; one that does not is killed.
async fn stop(child: &mut Child) -> Result<ChildExit, Problem> {
    let pid = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        // One that is gone already needs no signal.
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    match timeout(STOP_TIMEOUT, child.wait()).await {
        Ok(status) => drop(status.map_err(lost)?),
        Err(_) => {
            eprintln!("the process did not stop within {} s and is killed", STOP_TIMEOUT.as_secs());
            child.kill().await.map_err(lost)?;
        }
    }
    Ok(ChildExit::Done)
}

/// Owns the home until it is asked to stop.
pub(crate) async fn own(output: &Output, plan: &ApplicationConfig) -> Result<Exit, Problem> {
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let supervisor = std::env::var("HOLDFAST_SUPERVISOR").ok().and_then(|pid| pid.parse::<i32>().ok());
    let restarts = std::env::var(RESTARTS_VARIABLE).ok().and_then(|restarts| restarts.parse().ok());
    let may_restart = Instant::now() + restart_delay(restarts.unwrap_or_default());
    let own = owner(plan).await?;
    let every = Millis(u64::from(own.application.settings.health.every_seconds) * 1_000);
    own.application.runtime.watch_health(every);
    say(output, &format!("up: {} (process {})", plan.home.root().display(), std::process::id()));
    tokio::spawn(own.ready());
    let mut wanted = own.application.runtime.shutdown_requests();
    let flag = plan.home.restart_flag();
    let (reason, again) = tokio::select! {
        _ = terminate.recv() => ("asked to stop by a signal".to_owned(), false),
        _ = interrupt.recv() => ("interrupted".to_owned(), false),
        () = orphaned(supervisor) => ("the supervisor is gone".to_owned(), false),
        () = appears(&flag) => ("the restart flag was set".to_owned(), true),
        requested = requested(output, &mut wanted, may_restart) => requested,
    };
    say(output, &format!("stopping: {reason}"));
    own.end_now(&reason).await?;
    if again && supervisor.is_none() {
        say(output, "it is not restarted: `holdfast up` without --unsupervised restarts it");
    }
    Ok(if again { Exit::Restart } else { Exit::Done })
}

/// How long a process must have been up before it is restarted, after so many restarts within the window.
fn restart_delay(restarts: u32) -> Duration {
    match restarts.checked_sub(FREE_RESTARTS) {
        None => Duration::ZERO,
        Some(earlier) => Duration::from_millis(FIRST_RESTART_DELAY.backoff(earlier, MAX_RESTART_DELAY).0),
    }
}

/// Waits until the process is to stop: why, and whether it is to be started again. A restart waits until it may happen, a stop never does.
async fn requested(
    output: &Output,
    wanted: &mut watch::Receiver<ShutdownRequest>,
    may_restart: Instant,
) -> (String, bool) {
    let closed = || ("the control channel is closed".to_owned(), false);
    let first = wanted.wait_for(|wanted| *wanted != ShutdownRequest::GoOn).await;
    let reason = match first.as_deref() {
        Ok(ShutdownRequest::Restart(reason)) => reason.clone(),
        Ok(ShutdownRequest::Stop(reason)) => return (reason.clone(), false),
        Ok(ShutdownRequest::GoOn) | Err(_) => return closed(),
    };
    drop(first);
    let left = may_restart.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        let seconds = left.as_secs() + 1;
        say(output, &format!("the restart is delayed by {seconds} s, because there were many: {reason}"));
    }
    tokio::select! {
        () = sleep(left) => (reason, true),
        stop = wanted.wait_for(|wanted| matches!(wanted, ShutdownRequest::Stop(_))) => match stop.as_deref() {
            Ok(ShutdownRequest::Stop(reason)) => (reason.clone(), false),
            _ => closed(),
        },
    }
}

/// Owns the home. A process that has just been killed, and still has it for a moment, is waited for.
async fn owner(plan: &ApplicationConfig) -> Result<Box<EmbeddedOwner>, Problem> {
    let deadline = Instant::now() + PREDECESSOR_TIMEOUT;
    loop {
        let connection = match OwnerConnection::find(plan, Purpose::Run).await? {
            OwnerConnection::Own(own) => return Ok(own),
            OwnerConnection::Attached(connection) => connection,
        };
        match Link::over(connection, "up", &ClientOrigin::default()).await {
            Ok(Link { welcome, .. }) => {
                let what = format!("process {} owns this home", welcome.process);
                return Err(Problem::new(Code::HomeOwned, what).help("`holdfast down` stops it."));
            }
            Err(problem) if problem.code != Code::ConnectionLost || Instant::now() > deadline => {
                return Err(problem);
            }
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Waits until the supervisor is no longer this process's parent.
async fn orphaned(supervisor: Option<i32>) {
    let Some(supervisor) = supervisor else { return std::future::pending().await };
    while rustix::process::getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == supervisor) {
        sleep(FLAG_POLL_INTERVAL).await;
    }
}

/// Waits until a file is there.
async fn appears(flag: &Path) {
    while !flag.exists() {
        sleep(FLAG_POLL_INTERVAL).await;
    }
}

/// A link to the owner of the home, if there is one. An owner that cannot be reached is a problem that names it.
pub(crate) async fn attached(home: &Home) -> Result<Option<Link>, Problem> {
    let deadline = Instant::now() + LISTEN_TIMEOUT;
    loop {
        let unreachable = match connect(&home.control_socket()).await {
            Ok(connection) => {
                return Link::over(connection, "down", &ClientOrigin::default()).await.map(Some);
            }
            Err(problem) => problem,
        };
        // An owner that has just begun is about to listen, and one whose socket was deleted makes it again.
        let Some(owner) = home.owner() else { return Ok(None) };
        if Instant::now() > deadline {
            let who = owner.pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            let what = format!("{who} holds the lock of the home; {}", unreachable.what);
            return Err(Problem::new(Code::OwnerSilent, what));
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Stops what is up.
pub(crate) async fn down(output: &Output, plan: &ApplicationConfig) -> Result<Exit, Problem> {
    let Some(link) = attached(&plan.home).await? else {
        output.line("nothing is up")?;
        return Ok(Exit::Done);
    };
    let process = link.welcome.process;
    let acknowledged: Result<serde_json::Value, Problem> =
        link.client.ask(&SystemMethod::Stop(NoParams {})).await;
    match acknowledged {
        // The process may end before its answer has arrived: that is what was asked for.
        Err(problem) if problem.code == Code::ConnectionLost => {}
        acknowledged => drop(acknowledged?),
    }
    drop(link);
    let deadline = Instant::now() + STOP_TIMEOUT;
    // It is down when no process owns the home any more.
    while plan.home.own().is_err() {
        if Instant::now() > deadline {
            let what = format!("process {process} has not stopped within {} s", STOP_TIMEOUT.as_secs());
            return Err(Problem::new(Code::HomeOwned, what)
                .help("`kill` ends it; nothing that was acknowledged is lost."));
        }
        sleep(Duration::from_millis(20)).await;
    }
    output.line(format!("down: process {process} has stopped"))?;
    Ok(Exit::Done)
}
