//! Tokens for the built-in model: lower case, stemmed, without stop words.

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

/// The stem of a word, so that `files` matches `file` and `searching` matches `search`.
pub(super) fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    let plain = |ending: &str, least: usize| {
        word.strip_suffix(ending).filter(|rest| rest.chars().count() >= least).map(str::to_owned)
    };
    let stem = plain("ies", 2)
        .map(|rest| rest + "y")
        .or_else(|| plain("ing", 3))
        .or_else(|| plain("sses", 1).map(|rest| rest + "ss"))
        .or_else(|| plain("ed", 3))
        .or_else(|| if word.ends_with("ss") { None } else { plain("s", 2) })
        .unwrap_or_else(|| word.clone());
    // `write`, `writes` and `writing` match without the last letter.
    stem.strip_suffix('e').filter(|rest| rest.chars().count() >= 3).map_or(stem.clone(), str::to_owned)
}

/// The stems of a text's words; `read_file` and `readFile` are two words.
pub(super) fn stems(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in text.chars() {
        let hump = before.is_lowercase() && letter.is_uppercase();
        if !letter.is_alphanumeric() || hump {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(letter);
        }
        before = letter;
    }
    words.iter().filter(|word| !word.is_empty() && !is_stop_word(word)).map(|word| stem(word)).collect()
}
