//! A guardrail against texts without end: what a user writes and what the agent answers has bounds, and what is longer is cut with a notice,
//! or stopped, as it is set.

use holdfast_extension::{Content, Failure, Sanitized, Value, config, sanitize_input, sanitize_output};

/// Asked about what the user writes, before anything else is made of it.
#[sanitize_input]
fn bound_input(text: String) -> Result<Sanitized, Failure> {
    bounded(text, "input_characters", "the message")
}

/// Asked about the answer, before anybody sees it.
#[sanitize_output]
fn bound_output(answer: String) -> Result<Sanitized, Failure> {
    bounded(answer, "output_characters", "the answer")
}

fn bounded(text: String, setting: &str, what: &str) -> Result<Sanitized, Failure> {
    let set = config::get(setting);
    let Some(most) = set.as_ref().and_then(Value::as_u64).filter(|most| *most > 0) else {
        return Err(wrong(setting, "a number of characters, 1 or more"));
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    // A text has no more characters than bytes, and nearly all are short.
    if text.len() <= most {
        return Ok(Sanitized::Unchanged);
    }
    let Some((end, _)) = text.char_indices().nth(most) else { return Ok(Sanitized::Unchanged) };
    let length = text.chars().count();
    match config::get("action").as_ref().and_then(Value::as_str) {
        Some("cut") => {
            let notice = format!("\n[{what} was cut here: it has {length} characters, of which {most} may be used]");
            Ok(Sanitized::Replaced(Content::Text(format!("{}{notice}", &text[..end]))))
        }
        Some("block") => {
            Ok(Sanitized::Blocked(format!("{what} has {length} characters; at most {most} are allowed")))
        }
        _ => Err(wrong("action", "`cut` or `block`")),
    }
}

fn wrong(setting: &str, wanted: &str) -> Failure {
    Failure::InvalidArguments(format!("`extensions.length-guard.{setting}` in the settings should be {wanted}"))
}
