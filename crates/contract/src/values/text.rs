//! Texts as a reader sees them: which characters are invisible, and texts shortened to a line. What is shown is decided by the callers.

/// The first line of a text that has something in it.
pub fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// A text of at most so many characters, with `…` where it was cut.
pub fn truncated(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A text on one line, with one space for each run of white space, of at most so many characters.
pub fn one_line(text: &str, most: usize) -> String {
    truncated(text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Whether a character reorders text, breaks a line, or is not seen at all: the Unicode property Default_Ignorable_Code_Point, variation
/// selectors among them, the category Cf, the separators of lines and paragraphs, and three signs that are blank: a braille pattern, a
/// Khitan filler and a note without a head.
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}'
        | '\u{34f}'
        | '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{890}'..='\u{891}'
        | '\u{8e2}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{16fe4}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_truncated_by_characters_and_put_on_one_line() {
        assert_eq!(truncated("äöü".to_owned(), 3), "äöü");
        assert_eq!(truncated("äöüx".to_owned(), 3), "äöü…");
        assert_eq!(one_line(" a\n\tb  c ", 5), "a b c");
        assert_eq!(one_line("a b c", 3), "a b…");
        assert_eq!(first_line("\n  one\ntwo"), "one");
        assert_eq!(first_line(" \n"), "");
    }
}
