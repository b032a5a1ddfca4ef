//! The courier in Rust. The other folders have the same in other languages.

use holdfast_extension::{Decision, Failure, ToolCall, files, http, secrets, subscriptions, tool, tool_gate};

/// Fetches, reads, writes and subscribes.
#[tool(effects = "network")]
fn deliver(
    /// What is fetched.
    url: String,
    /// The folder that is read.
    folder: String,
) -> Result<String, Failure> {
    let token = secrets::reference("TOKEN")?;
    let response = http::get(&url, &[("authorization", &format!("Bearer {token}"))])?;
    let note = files::read_text(&format!("{folder}/note.txt"))?;
    files::write("copy.txt", note.as_bytes())?;
    let names: Vec<String> = files::list(&folder)?.into_iter().map(|entry| entry.name).collect();
    subscriptions::subscribe("news.weather")?;
    let body = String::from_utf8_lossy(&response.body);
    Ok(format!("{} {body} | {note} | {}", response.status, names.join(" ")))
}

#[tool_gate]
fn gate(call: ToolCall) -> Decision {
    let arguments = call.arguments();
    let is_web = arguments["url"].as_str().is_some_and(|url| url.starts_with("http"));
    if call.tool == "deliver" && !is_web {
        return Decision::Deny("it delivers from the web only".into());
    }
    Decision::Allow
}
