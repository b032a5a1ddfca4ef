//! `holdfast ext test`: the cases in an extension's `tests.yaml`.

use std::fs;
use std::path::Path;

use holdfast_app::ApplicationConfig;
use holdfast_authoring::harness::Cases;
use holdfast_contract::problem::{Code, Problem};

use crate::chat::sanitize_for_terminal;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn test(output: &Output, plan: &ApplicationConfig, named: &Path) -> Result<Exit, Problem> {
    let folder = super::folder(&plan.home, Some(named))?;
    let file = folder.join("tests.yaml");
    let bytes = fs::read(&file).map_err(|error| {
        let problem = Problem::new(Code::UsageInvalid, format!("{} cannot be read: {error}", file.display()));
        problem.help("`docs/extensions/README.md` shows what stands in it.")
    })?;
    let cases = Cases::read(&file, &bytes)?;
    let bench = super::workbench(plan, &folder).await?;
    let outcomes = bench.test(&cases).await;
    let failed = outcomes.iter().filter(|outcome| !outcome.ok).count();
    if output.json {
        output.documents(&outcomes)?;
    } else {
        for outcome in &outcomes {
            let mark = if outcome.ok { "ok    " } else { "FAILED" };
            output.line(format!("{mark} {}", sanitize_for_terminal(&outcome.name)))?;
            if !outcome.ok {
                output.line(format!(
                    "       expected {}",
                    sanitize_for_terminal(&outcome.expected.to_string())
                ))?;
                output.line(format!(
                    "       actual   {}",
                    sanitize_for_terminal(&outcome.actual.to_string())
                ))?;
            }
        }
        output.line(format!("{} passed, {failed} failed", outcomes.len() - failed))?;
    }
    Ok((failed == 0).into())
}
