//! The words of a text as a search compares them: names are split where their writer joined words, and endings are cut off. A few
//! rules for English: the same on every machine.
//!
//! Use this crate to match what a person wrote with names and descriptions. Which words do not count depends on what is searched, so
//! each caller has its own stop words.

/// The words of a text in lower case. `readFile` and `read_file` are two words, `Ana's` is one.
pub fn split(text: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in text.replace('’', "'").replace("'s", "").chars().filter(|letter| *letter != '\'') {
        let joined = letter.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if !letter.is_alphanumeric() || joined {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// A word without its endings, so that `files` finds `file`, and `scheduled` finds `schedule`.
pub fn stem(word: &str) -> String {
    const PLURALS: &[(&str, &str)] = &[("ies", "y"), ("sses", "ss"), ("es", ""), ("s", "")];
    const ENDINGS: &[(&str, &str)] = &[("ing", ""), ("edly", ""), ("ed", ""), ("ly", "")];
    if word.len() <= 3 || !word.is_ascii() {
        return word.to_owned();
    }
    let (word, _) = without(word, PLURALS);
    let (mut stem, ending) = without(&word, ENDINGS);
    let last: Vec<char> = stem.chars().rev().take(2).collect();
    // `planned` is `plan`, but `filled` is `fill`.
    let doubled = last.first() == last.last() && last.first().is_some_and(|letter| !"lsz".contains(*letter));
    if matches!(ending, Some("ing" | "ed")) && stem.len() > 3 && doubled {
        stem.pop();
    }
    if stem.len() > 4 && stem.ends_with('e') {
        stem.pop();
    }
    if stem.len() > 3 && stem.ends_with('i') {
        stem.pop();
        stem.push('y');
    }
    stem
}

/// A word with the first of these endings that it has replaced, and which one that was.
fn without(word: &str, endings: &[(&'static str, &str)]) -> (String, Option<&'static str>) {
    // `boxes` is `box`, but `files` is `file`.
    const HISSING: &[&str] = &["ses", "xes", "zes", "ches", "shes"];
    let has = |ending: &str| {
        let kept = match ending {
            "es" => word.ends_with("sses") || !HISSING.iter().any(|hissing| word.ends_with(hissing)),
            "s" => word.ends_with("ss") || word.ends_with("us"),
            _ => false,
        };
        word.ends_with(ending) && !kept && word.len() - ending.len() >= 3
    };
    match endings.iter().find(|(ending, _)| has(ending)) {
        Some((ending, other)) => (format!("{}{other}", &word[..word.len() - ending.len()]), Some(ending)),
        None => (word.to_owned(), None),
    }
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
