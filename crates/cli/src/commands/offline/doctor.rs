//! `holdfast doctor`: is everything fine on this machine, and if not, what to do.

use holdfast_app::{keyring, room};
use holdfast_contract::problem::Problem;
use holdfast_home::{Check, Home, Settings};
use holdfast_replay::verify;
use holdfast_store::{Store, StoreOptions};

use crate::exit::Exit;
use crate::output::Output;

/// What a platform has; asked of whoever knows.
pub type Examine = fn(&Home) -> Vec<Check>;

pub(crate) fn doctor(output: &Output, home: &Home, platform: Examine) -> Result<Exit, Problem> {
    let mut checks = home.examine();
    checks.extend(platform(home));
    checks.push(secret_keyring(home));
    checks.push(sandbox(home));
    checks.push(log(home));
    let fine = checks.iter().all(|check| check.ok);
    for check in &checks {
        if output.json {
            output.document(check)?;
            continue;
        }
        let mark = if check.ok { "ok  " } else { "BAD " };
        output.line(format!("{mark} {:<24} {}", check.name, check.detail))?;
        if let (false, Some(help)) = (check.ok, &check.help) {
            output.line(format!("     {:<24} help: {help}", ""))?;
        }
    }
    Ok(fine.into())
}

/// Whether there is as much room for sandboxed components as the settings ask for.
fn sandbox(home: &Home) -> Check {
    let name = "sandbox";
    let options = Settings::load(home).map(|loaded| loaded.settings.wasm).unwrap_or_default();
    match room(options) {
        Ok(()) => {
            let detail = format!("room for {} live components", options.pools.instances);
            Check { name, ok: true, detail, help: None }
        }
        Err(problem) => Check { name, ok: false, detail: problem.what, help: Some(problem.help) },
    }
}

/// Whether the keyring answers, where the settings name it as the place for secrets.
fn secret_keyring(home: &Home) -> Check {
    let name = "keyring";
    let settings = Settings::load(home).map(|loaded| loaded.settings).unwrap_or_default();
    match keyring(home, &settings) {
        Ok(detail) => Check { name, ok: true, detail, help: None },
        Err(problem) => Check { name, ok: false, detail: problem.what, help: Some(problem.help) },
    }
}

fn log(home: &Home) -> Check {
    let name = "log";
    if !home.database().is_file() {
        return Check { name, ok: true, detail: "there is none yet".to_owned(), help: None };
    }
    let examined =
        Store::open(&home.database(), StoreOptions::default()).and_then(|store| verify(&store, None));
    match examined {
        Ok(report) if report.findings.is_empty() => {
            Check { name, ok: true, detail: "whole, and every gate decided".to_owned(), help: None }
        }
        Ok(report) => Check {
            name,
            ok: false,
            detail: format!("{} findings", report.findings.len()),
            help: Some("`holdfast log verify` lists them.".to_owned()),
        },
        Err(problem) => Check { name, ok: false, detail: problem.what, help: Some(problem.help) },
    }
}
