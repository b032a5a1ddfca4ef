//! The follower in Rust. The other folders have the same in other languages.

use holdfast_extension::{Content, Failure, agents, clock, tool};

/// Follows an agent while it answers.
#[tool(effects = "write")]
fn follow(
    /// The agent.
    agent: String,
    /// What it is asked.
    task: String,
    /// Whether the first update is enough.
    first: Option<bool>,
) -> Result<String, Failure> {
    let mut told = Vec::new();
    let mut tell = |update| {
        told.push(match update {
            agents::Update::Text(text) => text,
            agents::Update::ToolCall(called) => format!("{}{}", called.tool, called.arguments),
        })
    };
    if first == Some(true) {
        let invocation = agents::invoke_streamed(Some(&agent), &task)?;
        invocation.next().into_iter().for_each(tell);
        return Ok(told.join(" "));
    }
    let answer = agents::invoke_followed(Some(&agent), &task, &mut tell)?;
    clock::now();
    match answer {
        Content::Text(text) => Ok(format!("{} = {text}", told.join(" "))),
        Content::Json(json) => Ok(json),
    }
}
