//! A text as the words that a search compares: names are split where their writer joined words, endings are cut off, and what people say
//! is led to what tools are called. All of it is a table and a few rules for English: the same on every machine, and nothing is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Words that tell nothing about what is wanted.
const EMPTY: &str = "a an and any are as at be been but by can could did do does for from get give had has have he her here him his how \
    i if in into is it its just keep let make me my new no not of on one or our out please put she should so some take tell than \
    that the their them then there these they thing this those to up us use was we were what when where which who whose why will \
    with would you your";

/// What people say, and the words of tools that it leads to.
const EVERYDAY: &str = include_str!("everyday.txt");

/// The longest phrase in the table.
const LONGEST_PHRASE: usize = 3;

static IGNORED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| EMPTY.split_whitespace().collect());

static MEANINGS: LazyLock<BTreeMap<Vec<String>, BTreeSet<String>>> = LazyLock::new(|| {
    let mut table: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    let lines = EVERYDAY.lines().filter(|line| !line.starts_with('#'));
    for (said, meant) in lines.filter_map(|line| line.split_once('>')) {
        for phrase in said.split_whitespace() {
            let phrase = split(phrase).map(|word| stem(&word)).collect();
            table.entry(phrase).or_default().extend(split(meant).map(|word| stem(&word)));
        }
    }
    table
});

/// The words of a text that tell something, by their stems.
pub(super) fn telling(text: &str) -> impl Iterator<Item = String> {
    split(text).filter(|word| !IGNORED.contains(word.as_str())).map(|word| stem(&word))
}

/// What a text may mean besides what it says: the words of tools for what people say.
pub(super) fn meant(text: &str) -> BTreeSet<String> {
    let stems: Vec<String> = split(text).map(|word| stem(&word)).collect();
    let phrases = (0..stems.len()).flat_map(|start| {
        let stems = &stems;
        (1..=LONGEST_PHRASE).filter_map(move |length| stems.get(start..start + length))
    });
    phrases.filter_map(|phrase| MEANINGS.get(phrase)).flatten().cloned().collect()
}

/// The words of a text in small letters. `readFile` and `read_file` are two words, `Ana's` is one.
fn split(text: &str) -> impl Iterator<Item = String> {
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
fn stem(word: &str) -> String {
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
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        telling(text).collect()
    }

    #[test]
    fn names_and_sentences_come_to_the_same_words() {
        assert_eq!(words("read_files"), words("ReadFile"));
        assert_eq!(words("The scheduled meetings"), words("schedule meeting"));
        assert_eq!(words("Ana's replies"), words("ana reply"));
        assert_eq!(words("planned, filled"), ["plan", "fill"]);
        assert_eq!(words("bus, class, Äpfel"), ["bus", "class", "äpfel"]);
    }

    #[test]
    fn what_people_say_is_led_to_what_tools_are_called() {
        assert!(meant("jot it").contains("note"));
        assert!(meant("please turn on the lamp").is_superset(&["enabl", "light"].map(str::to_owned).into()));
        assert!(meant("").is_empty());
    }

    #[test]
    fn every_line_of_the_table_can_be_read() {
        let lines = EVERYDAY.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for line in lines {
            let (said, meant) = line.split_once('>').unwrap();
            assert!(
                said.split_whitespace().all(|phrase| (1..=LONGEST_PHRASE).contains(&split(phrase).count())),
                "{line}"
            );
            assert!(!meant.trim().is_empty(), "{line}");
        }
    }
}
