//! The figures of tool discovery: how often a tool that would do is among the first five that a search over 500 tools gives.

use holdfast_bench::tools;
use holdfast_contract::problem::Problem;

use super::show;
use crate::output::Output;

pub(super) fn bench(output: &Output) -> Result<(), Problem> {
    for hits in tools::search_hits() {
        let name = format!("tools found among the first 5 of 500: {}", hits.name);
        show(output, &name, &format!("{} of {}", hits.hits, hits.requests))?;
    }
    Ok(())
}
