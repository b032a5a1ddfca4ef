//! The words of a request to the built-in model, without stop words.

use holdfast_words::{split, stem};

/// Stop words.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "for",
    "from", "give", "go", "have", "hello", "hey", "hi", "how", "i", "in", "into", "is", "it", "its", "just",
    "let", "me", "my", "need", "now", "of", "on", "or", "our", "please", "so", "some", "that", "the",
    "their", "them", "there", "this", "to", "up", "use", "using", "want", "was", "we", "what", "when",
    "which", "who", "will", "with", "would", "you", "your",
];

/// Whether a word is a stop word.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word.to_lowercase().as_str()).is_ok()
}

/// The stems of a text's words, without stop words.
pub(super) fn stems(text: &str) -> Vec<String> {
    split(text).filter(|word| !is_stop_word(word)).map(|word| stem(&word)).collect()
}
