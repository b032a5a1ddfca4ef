//! What context providers may say in all: how much of it is kept, how it is joined, and where a text that is too long is cut.
//!
//! Tokens are estimated from characters, four to a token, because nothing here knows a model's own words.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ExtensionId;

/// What stands between the parts of the system role, and between them and a prompt that is enriched.
pub const SEPARATOR: &str = "\n\n---\n\n";

/// How many characters make a token.
const CHARACTERS: usize = 4;

/// How much context providers may add to the system role, in estimated tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextBudget {
    /// What one provider may add that declares no `tokens` of its own.
    #[schemars(range(min = 1))]
    pub provider_tokens: u32,
    /// What all of them may add in a turn; those that are asked earlier come first.
    #[schemars(range(min = 1))]
    pub total_tokens: u32,
    /// What the providers of an extension may add each, by its id, regardless of what they declare.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<ExtensionId, u32>,
}

impl Default for ContextBudget {
    fn default() -> Self {
        Self { provider_tokens: 2_000, total_tokens: 8_000, providers: BTreeMap::new() }
    }
}

impl ContextBudget {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What a provider of this extension may add that declares this much for itself.
    pub fn of(&self, extension: &ExtensionId, declared: Option<u32>) -> u32 {
        let set = self.providers.get(extension).copied();
        set.or(declared).unwrap_or(self.provider_tokens).min(self.total_tokens)
    }
}

/// The tokens that a text is taken to have.
pub fn tokens(text: &str) -> u32 {
    u32::try_from(text.chars().count().div_ceil(CHARACTERS)).unwrap_or(u32::MAX)
}

/// The characters that so many tokens have room for.
pub fn room(tokens: u32) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(CHARACTERS)
}

/// The beginning of a text, with at most so many characters. It ends between two paragraphs, lines or words where one of those ends in
/// the second half of it, the largest of them first.
pub fn beginning(text: &str, characters: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(characters) else { return text };
    let whole = &text[..end];
    // A word that ends exactly here is whole.
    if text[end..].starts_with(char::is_whitespace) {
        return whole.trim_end();
    }
    let late = |at: &usize| *at >= end / 2;
    let places = [whole.rfind("\n\n"), whole.rfind('\n'), whole.rfind(char::is_whitespace)];
    let place = places.into_iter().flatten().find(late).unwrap_or(end);
    whole[..place].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_paragraphs_then_lines_then_words() {
        assert_eq!(beginning("short", 5), "short");
        assert_eq!(beginning("one two\n\nthree four five", 20), "one two\n\nthree four");
        assert_eq!(beginning("first part here\n\nsecond part here", 24), "first part here");
        assert_eq!(beginning("first line of it\nsecond line", 24), "first line of it");
        assert_eq!(beginning("one two three", 7), "one two");
        assert_eq!(beginning("ä word that is cut", 8), "ä word");
        assert_eq!(beginning("unbroken", 3), "unb", "where there is nothing between, it is cut all the same");
        assert_eq!(beginning("äöüß", 2), "äö");
        assert_eq!(beginning("anything", 0), "");
    }

    #[test]
    fn the_users_word_counts_more_than_the_providers_and_the_total_more_than_either() {
        let providers = BTreeMap::from([("memory".into(), 500), ("greedy".into(), 90_000)]);
        let budget = ContextBudget { providers, ..ContextBudget::default() };
        assert_eq!(budget.of(&"notes".into(), None), 2_000);
        assert_eq!(budget.of(&"notes".into(), Some(3_000)), 3_000);
        assert_eq!(budget.of(&"memory".into(), Some(3_000)), 500);
        assert_eq!(budget.of(&"greedy".into(), None), 8_000);
        assert_eq!((tokens(""), tokens("four"), tokens("fives")), (0, 1, 2));
    }
}
