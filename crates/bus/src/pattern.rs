//! Topics and patterns: words separated by dots, `*` for one word, `>` for all remaining words.

use std::fmt;
use std::sync::Arc;

use holdfast_contract::ids::Topic;
use holdfast_contract::problem::{Code, Problem};

/// Bytes that a topic may have.
const MAX_TOPIC_BYTES: usize = 256;

/// Which topics a subscriber wants: `reminder.due`, `reminder.*`, `system.>`, `>`.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let words = words(text, "pattern")?;
        let last = words.len() - 1;
        for (place, word) in words.iter().enumerate() {
            let wild = *word == "*" || (*word == ">" && place == last);
            if !wild && word.contains(['*', '>']) {
                let what =
                    format!("the pattern `{text}` has a `{word}`: `*` stands alone, `>` alone and last");
                return Err(Problem::new(Code::TopicInvalid, what));
            }
        }
        Ok(Self(text.into()))
    }

    /// Whether it matches the topic.
    pub fn matches(&self, topic: &Topic) -> bool {
        let mut words = topic.as_str().split('.');
        for wanted in self.0.split('.') {
            match (wanted, words.next()) {
                (">", Some(_)) => return true,
                (wanted, Some(word)) if wanted == "*" || wanted == word => {}
                _ => return false,
            }
        }
        words.next().is_none()
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Whether something can be published on this topic.
pub(crate) fn check_topic(topic: &Topic) -> Result<(), Problem> {
    let text = topic.as_str();
    words(text, "topic")?;
    if text.contains(['*', '>']) {
        let what = format!("`{text}` is a pattern: nothing can be published on it");
        return Err(Problem::new(Code::TopicInvalid, what));
    }
    Ok(())
}

fn words<'a>(text: &'a str, what: &str) -> Result<Vec<&'a str>, Problem> {
    let words: Vec<_> = text.split('.').collect();
    let odd = |word: &&str| word.is_empty() || word.contains(|c: char| c.is_whitespace() || c.is_control());
    if text.len() > MAX_TOPIC_BYTES {
        let what = format!("the {what} has {} bytes; {MAX_TOPIC_BYTES} are the limit", text.len());
        return Err(Problem::new(Code::TopicInvalid, what));
    }
    if words.iter().any(odd) {
        let what = format!("the {what} `{}` has an empty word or a blank", text.escape_debug());
        return Err(Problem::new(Code::TopicInvalid, what));
    }
    Ok(words)
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
