//! "Did you mean …?": the nearest of a few names, by edit distance.

/// The fewest letters of a word that is taken for the beginning of a name.
const MIN_PREFIX_CHARS: usize = 4;

/// The candidate that the user most likely meant, if one is near enough: it differs by at most three letters,
/// fewer for a short word, or begins with the word. Case, dashes and `camelCase` do not count.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = normalized(word);
    let length = word.chars().count();
    let max_distance = (length / 3).clamp(1, 3);
    let scored = candidates.into_iter().filter_map(|candidate| {
        let name = normalized(candidate);
        let distance = strsim::osa_distance(&word, &name);
        if distance <= max_distance {
            return Some((distance, candidate));
        }
        let is_prefix = length >= MIN_PREFIX_CHARS && name.starts_with(&word);
        is_prefix.then_some((max_distance + 1, candidate))
    });
    scored.min_by_key(|(score, _)| *score).map(|(_, candidate)| candidate)
}

/// The letters that are compared: `dependsOn`, `Depends-On` and `depends_on` are the same.
fn normalized(word: &str) -> String {
    word.chars().filter(|letter| !matches!(letter, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}
