//! "Did you mean …?": the nearest of a few names, by edit distance.

/// How much of a name must be there to tell that it is that name's beginning.
const SHORTEST_BEGINNING: usize = 4;

/// The candidate that a person most likely meant, if one is near enough: it differs by a letter or a few, or
/// goes on where the word ends. Case, dashes and `camelCase` do not count.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = plain(word);
    let allowed = (word.len() / 3).clamp(1, 3);
    let scored = candidates.into_iter().filter_map(|candidate| {
        let letters = plain(candidate);
        let near = (word.len().abs_diff(letters.len()) <= allowed).then(|| distance(&word, &letters));
        let begun =
            || (word.len() >= SHORTEST_BEGINNING && letters.starts_with(&word)).then_some(allowed + 1);
        near.filter(|near| *near <= allowed).or_else(begun).map(|score| (score, candidate))
    });
    scored.min_by_key(|(score, _)| *score).map(|(_, candidate)| candidate)
}

/// The letters that matter: `dependsOn`, `Depends-On` and `depends_on` are the same.
fn plain(word: &str) -> Vec<char> {
    word.chars().filter(|letter| !matches!(letter, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// How many letters must be inserted, removed, changed, or swapped with their neighbour (Damerau and
/// Levenshtein, with non-overlapping swaps).
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, with) in other.iter().enumerate() {
            let changed = last[column] + usize::from(letter != with);
            let mut least = changed.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *with;
            if swapped {
                least = least.min(before_last[column - 1] + 1);
            }
            current.push(least);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("depends_no", "depends_on", 1),
            ("ca", "abc", 3),
            ("größe", "grösse", 2),
        ] {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(distance(&letters(one), &letters(other)), expected, "{one} {other}");
            assert_eq!(distance(&letters(other), &letters(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn suggests_what_is_near_and_nothing_else() {
        let names = ["depends_on", "description", "id", "enabled"];
        for (word, expected) in [
            ("depend_on", Some("depends_on")),
            ("dependsOn", Some("depends_on")),
            ("DEPENDS-ON", Some("depends_on")),
            ("desciption", Some("description")),
            ("di", Some("id")),
            ("enable", Some("enabled")),
            ("descr", Some("description")),
            ("dep", None),
            ("color", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), expected, "{word}");
        }
    }
}
