//! When a hook or a policy rule applies: by tool, by argument, by origin. Plain globs, so that a match is the same everywhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call as matchers see it.
#[derive(Clone, Copy, Debug)]
pub struct MatchedCall<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments, where they are known.
    pub arguments: Option<&'a Value>,
}

/// A conjunction of patterns; an empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Matcher {
    /// Globs of which one must match the tool's name; empty matches any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// JSON pointers into the arguments (`/path`, `/options/mode`), each with a glob that the value there must match. Text is
    /// matched as it is, anything else as its JSON. A pointer that leads nowhere does not match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Globs of which one must match the session's origin (`cli`, `telegram`, `schedule/…`); empty matches any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
}

impl Matcher {
    /// Whether it matches everything.
    pub fn is_any(&self) -> bool {
        self.tools.is_empty() && self.arguments.is_empty() && self.origins.is_empty()
    }

    /// Whether it applies. Without a tool (outside the tool points) the tool and argument patterns do not count.
    pub fn applies(&self, call: Option<MatchedCall<'_>>, origin: &str) -> bool {
        any_glob(&self.origins, origin)
            && call.is_none_or(|MatchedCall { tool, arguments }| {
                any_glob(&self.tools, tool)
                    && self
                        .arguments
                        .iter()
                        .all(|(pointer, pattern)| argument_matches(arguments, pointer, pattern))
            })
    }
}

fn any_glob(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| glob(pattern, text))
}

fn argument_matches(arguments: Option<&Value>, pointer: &str, pattern: &str) -> bool {
    match arguments.and_then(|arguments| arguments.pointer(pointer)) {
        Some(Value::String(text)) => glob(pattern, text),
        Some(other) => glob(pattern, &other.to_string()),
        None => false,
    }
}

/// Whether a glob matches the whole text: `*` stands for any run of characters, `?` for one. Linear in the text for each `*`.
pub fn glob(pattern: &str, text: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                t += 1;
                while t < text.len() && (text[t] & 0xc0) == 0x80 {
                    t += 1;
                }
            }
            Some(byte) if *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((star, at)) => {
                    p = star + 1;
                    t = at + 1;
                    retry = Some((star, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn globs_match_whole_texts() {
        for (pattern, text, expected) in [
            ("file_*", "file_read", true),
            ("file_*", "profile_read", false),
            ("*", "", true),
            ("a?c", "aéc", true),
            ("a?c", "abbc", false),
            ("*.rs", "src/main.rs", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} against {text}");
        }
    }

    #[test]
    fn every_part_of_a_matcher_must_match() {
        let matcher = Matcher {
            tools: vec!["file_*".into(), "shell".into()],
            arguments: [("/path".to_owned(), "/etc/*".to_owned())].into(),
            origins: vec!["telegram".into()],
        };
        let (arguments, elsewhere) = (json!({ "path": "/etc/passwd" }), json!({ "path": "/tmp" }));
        let call = |tool, arguments| Some(MatchedCall { tool, arguments });
        assert!(matcher.applies(call("file_read", Some(&arguments)), "telegram"));
        assert!(!matcher.applies(call("kv_get", Some(&arguments)), "telegram"));
        assert!(!matcher.applies(call("file_read", Some(&elsewhere)), "telegram"));
        assert!(!matcher.applies(call("file_read", None), "telegram"));
        assert!(!matcher.applies(call("file_read", Some(&arguments)), "cli"));
        assert!(matcher.applies(None, "telegram"));
    }
}
