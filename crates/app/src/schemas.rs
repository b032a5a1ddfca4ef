//! JSON Schemas by name, as `holdfast schema` prints them.

use holdfast_contract::problem::{Code, Problem};
use serde_json::Value;

/// The schema of this name.
pub fn schema(name: &str) -> Result<Value, Problem> {
    match name {
        "frames" => Ok(holdfast_contract::schema::frames()),
        "manifest" => Ok(holdfast_contract::schema::manifest()),
        "process" => Ok(holdfast_contract::schema::process()),
        "policy" => Ok(holdfast_policy::schema()),
        "settings" => Ok(holdfast_home::schema()),
        other => Err(Problem::new(Code::UsageInvalid, format!("there is no schema `{other}`"))
            .help("The schemas are `frames`, `manifest`, `settings`, `policy`, `process` and `rpc`.")),
    }
}
