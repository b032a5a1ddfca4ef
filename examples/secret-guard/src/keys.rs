//! Detects keys: a known prefix followed by enough characters of the right kind.

use std::ops::Range;

/// A detected key.
pub struct Key {
    /// The kind of key.
    pub what: &'static str,
    /// Its range in the text.
    pub place: Range<usize>,
}

struct Shape {
    what: &'static str,
    prefix: &'static str,
    /// How many characters must follow.
    least: usize,
}

const SHAPES: &[Shape] = &[
    Shape { what: "an access key of a cloud account", prefix: "AKIA", least: 16 },
    Shape { what: "a token of a code host", prefix: "ghp_", least: 36 },
    Shape { what: "a token of a code host", prefix: "github_pat_", least: 22 },
    Shape { what: "a token of a chat service", prefix: "xoxb-", least: 20 },
    Shape { what: "a model provider's key", prefix: "sk-", least: 20 },
    Shape { what: "a private key", prefix: "-----BEGIN", least: 0 },
];

/// Everything in the text that looks like a key, from left to right.
pub fn find(text: &str) -> impl Iterator<Item = Key> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let key = SHAPES.iter().filter_map(|shape| first(text, from, shape)).min_by_key(|key| key.place.start)?;
        from = key.place.end;
        Some(key)
    })
}

/// The text without its keys; `None` if there are none.
pub fn blank(text: &str) -> Option<String> {
    let mut blanked = String::new();
    let mut from = 0;
    for key in find(text) {
        blanked.push_str(&text[from..key.place.start]);
        blanked.push_str("[key removed]");
        from = key.place.end;
    }
    (from > 0).then(|| blanked + &text[from..])
}

fn first(text: &str, from: usize, shape: &Shape) -> Option<Key> {
    let mut from = from;
    loop {
        let start = from + text[from..].find(shape.prefix)?;
        let after = start + shape.prefix.len();
        let end = if shape.least == 0 { end_of_block(text, after) } else { end_of_word(text, after) };
        let begins_word = !text[..start].ends_with(|letter: char| letter.is_ascii_alphanumeric());
        if begins_word && end - after >= shape.least {
            return Some(Key { what: shape.what, place: start..end });
        }
        from = after;
    }
}

fn end_of_word(text: &str, from: usize) -> usize {
    let ends = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
    text[from..].find(ends).map_or(text.len(), |length| from + length)
}

/// The end of an armoured block, or of the text if the block is not closed.
fn end_of_block(text: &str, from: usize) -> usize {
    let Some(end) = text[from..].find("-----END").map(|length| from + length + "-----END".len()) else {
        return text.len();
    };
    text[end..].find("-----").map_or(text.len(), |length| end + length + "-----".len())
}
