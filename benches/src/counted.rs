//! Counting instructions: each bench in a process of its own under callgrind, all threads included.
//!
//! [`main`] is both sides. Without arguments it starts itself under valgrind once per bench and reports; with `--run NAME` it is
//! the process that is counted. A marking function stands before and after the measured rounds, and callgrind writes what
//! was spent up to each mark; the second part is the measured one. No bench state is shared, so order does not matter.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use crate::budgets::{Budgets, table};

/// What a bench and its rounds may return.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A bench: its name in `budgets.json`, how many rounds are counted, and the code.
#[derive(Clone, Copy)]
pub struct Bench {
    name: &'static str,
    rounds: u64,
    run: fn(Counter) -> Outcome,
}

impl Bench {
    /// A bench of this many rounds. The reported count is that of one round.
    pub const fn new(name: &'static str, rounds: u64, run: fn(Counter) -> Outcome) -> Self {
        Self { name, rounds, run }
    }
}

/// Handed to a bench, which sets up what it needs and then measures once.
pub struct Counter {
    rounds: u64,
}

impl Counter {
    /// How many rounds will be measured: for benches that prepare one thing per round.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Counts the rounds, whatever thread they run on. Stops at the first error.
    pub fn measure<T>(self, mut round: impl FnMut() -> Outcome<T>) -> Outcome {
        measured_region_mark();
        for _ in 0..self.rounds {
            black_box(round()?);
        }
        measured_region_mark();
        Ok(())
    }
}

/// The name that callgrind looks for. One function for both marks, so that the linker cannot fold two into one.
#[inline(never)]
fn measured_region_mark() {
    black_box(());
}

const MARK: &str = "--dump-before=*measured_region_mark*";

/// Runs the benches named on the command line, or all, and judges them. `--accept` takes lower counts over into the budgets.
pub fn main(benches: &[Bench], budgets: &Path) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--run", name] => run_one(benches, name).map(|()| true),
        ["--accept", names @ ..] => judge(benches, budgets, names, true),
        names => judge(benches, budgets, names, false),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_one(benches: &[Bench], name: &str) -> Outcome {
    let bench = benches
        .iter()
        .find(|bench| bench.name == name)
        .ok_or_else(|| format!("no bench is called {name}"))?;
    (bench.run)(Counter { rounds: bench.rounds })
}

fn judge(benches: &[Bench], path: &Path, names: &[&str], accept: bool) -> Outcome<bool> {
    let asked = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let mut budgets = Budgets::read(&fs::read_to_string(path)?)
        .map_err(|error| format!("{} cannot be used: {error}", path.display()))?;
    let mut counts = BTreeMap::new();
    let mut broken = Vec::new();
    for bench in benches.iter().filter(|bench| asked(bench.name)) {
        eprintln!("counting {} ({} rounds)", bench.name, bench.rounds);
        match count(bench) {
            Ok(count) if counts.insert(bench.name.to_owned(), count).is_none() => continue,
            Ok(_) => eprintln!("error: two benches are called {}", bench.name),
            Err(error) => eprintln!("error: {}: {error}", bench.name),
        }
        broken.push(bench.name);
    }
    if accept {
        budgets.lower(&counts);
        fs::write(path, budgets.write()?)?;
    }
    let lines = budgets.judge(&counts, |name| asked(name) && !broken.contains(&name));
    print!("{}", table(&lines));
    broken.iter().for_each(|name| println!("{name}: could not be counted, see above"));
    let passed = lines.iter().filter(|line| line.verdict.passes()).count();
    let failed = lines.len() - passed + broken.len();
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

/// Instructions per round. The profile stays in the target folder, for `callgrind_annotate`.
fn count(bench: &Bench) -> Outcome<u64> {
    if bench.rounds == 0 {
        return Err("a bench needs at least one round".into());
    }
    let program = env::current_exe()?;
    let folder = profile_folder(&program, bench.name)?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--fair-sched=try", MARK])
        .arg(format!("--callgrind-out-file={}", folder.join("callgrind.out").display()))
        .arg(&program)
        .args(["--run", bench.name])
        // An empty environment makes the count the same in every shell.
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind could not be started ({error}); `./scripts/setup` installs it"))?;
    if !output.status.success() {
        return Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    let region = folder.join("callgrind.out.2");
    if !region.exists() || folder.join("callgrind.out.3").exists() {
        return Err("a bench calls `Counter::measure` exactly once".into());
    }
    let total = total(&fs::read_to_string(region)?).ok_or("callgrind wrote no total")?;
    Ok(total / bench.rounds)
}

fn profile_folder(program: &Path, name: &str) -> Outcome<PathBuf> {
    let build = program.ancestors().nth(2).ok_or("the bench runs outside a target folder")?;
    let folder = build.join("counted").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The instructions in a callgrind profile, over all threads.
pub(crate) fn total(profile: &str) -> Option<u64> {
    let only_instructions = profile.lines().any(|line| line == "events: Ir");
    let totals = profile.lines().find_map(|line| line.strip_prefix("totals: "))?;
    if only_instructions { totals.trim().parse().ok() } else { None }
}
