//! The words of a request for tool search: without stop words, and with the words of tools for what people say, which are in a table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use holdfast_words::{split, stem};

/// Words that tell nothing about what is wanted.
const STOP_WORDS: &str = "a an and any are as at be been but by can could did do does for from get give had has have he her here him his how \
    i if in into is it its just keep let make me my new no not of on one or our out please put she should so some take tell than \
    that the their them then there these they thing this those to up us use was we were what when where which who whose why will \
    with would you your";

/// What people say, and the words of tools that it leads to.
const EVERYDAY: &str = include_str!("everyday.txt");

/// The longest phrase in the table.
const LONGEST_PHRASE: usize = 3;

static IGNORED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

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
