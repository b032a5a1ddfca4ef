//! `holdfast schema …`

use holdfast_contract::problem::{Code, Problem};

use crate::arguments::Schema;
use crate::output::Output;

pub(crate) fn schema(output: &Output, command: &Schema) -> Result<bool, Problem> {
    let schema = match command.name.as_str() {
        // `protocol` is the earlier name.
        "rpc" | "protocol" => holdfast_rpc::schema(),
        name => holdfast_app::schema(name)?,
    };
    let text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    output.json(&text)?;
    Ok(true)
}
