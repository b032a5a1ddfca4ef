//! `holdfast ext test`: the cases in an extension's `tests.yaml`.

use std::path::{Path, PathBuf};

use holdfast_app::ApplicationConfig;
use holdfast_authoring::harness::Cases;
use holdfast_contract::problem::{Code, Problem};

use crate::exit::Exit;
use crate::output::Output;

/// The largest file of test cases.
const MAX_CASES_BYTES: u64 = 16 << 20;

pub(crate) async fn test(output: &Output, plan: &ApplicationConfig, named: &Path) -> Result<Exit, Problem> {
    let folder = super::place(&plan.home, named)?;
    let file = cases_of(&folder);
    let bytes = holdfast_untrusted_files::read(&file, MAX_CASES_BYTES).map_err(|error| {
        let problem = Problem::new(Code::UsageInvalid, format!("{} cannot be read: {error}", file.display()));
        problem.help("Write the cases there: `- call: TOOL`, `with: {…}`, `gives: …`. `holdfast ext new` writes an example.")
    })?;
    let cases = Cases::read(&file, &bytes)?;
    let bench = super::load_extension(plan, &folder).await?;
    let outcomes = bench.test(&cases).await;
    let failed = outcomes.iter().filter(|outcome| !outcome.ok).count();
    if output.json {
        output.documents(&outcomes)?;
    } else {
        for outcome in &outcomes {
            let mark = if outcome.ok { "ok    " } else { "FAILED" };
            output.line(format!("{mark} {}", outcome.name))?;
            if !outcome.ok {
                output.line(format!("       expected {}", outcome.expected))?;
                output.line(format!("       actual   {}", outcome.actual))?;
            }
        }
        output.line(format!("{} passed, {failed} failed", outcomes.len() - failed))?;
    }
    Ok((failed == 0).into())
}

/// The cases of an extension: `tests.yaml` in its folder, or `NAME.tests.yaml` beside a single file.
pub(crate) fn cases_of(place: &Path) -> PathBuf {
    if place.is_file() { place.with_extension("tests.yaml") } else { place.join("tests.yaml") }
}
