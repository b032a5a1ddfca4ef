//! The courier in Rust. The other folders have the same in other languages.

use holdfast_extension::{Failure, files, http, secrets, subscriptions, tool};

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
