//! Text of models, tools and extensions made harmless: what they write can be read, and can do nothing else to the terminal.
//!
//! Whatever was not written by this program or typed here goes through [`sanitize_for_terminal`], [`one_line`] or [`safe_json`] before
//! it is shown; `output.rs` does so for everything that commands print. [`stand_in`] is the one table of characters.

use holdfast_contract::text::is_invisible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with every character that could move the cursor, change the terminal, reorder what is read or not be seen replaced by one
/// that only stands for it. Line breaks stay, tabs become spaces.
pub(crate) fn sanitize_for_terminal(text: &str) -> String {
    let mut sanitizer = Sanitizer::default();
    let mut safe = sanitizer.push(text);
    safe.extend(sanitizer.finish());
    safe
}

/// The same for text that comes in pieces. Three invisible characters are part of what people write: one [`EMOJI_STYLE`] directly
/// after an emoji, and one [`JOINER`] or [`NON_JOINER`] between two emoji or two letters of a script that needs it. Whether a joiner is
/// one of these depends on the character after it, so it is held until that one comes.
#[derive(Default)]
pub(crate) struct Sanitizer {
    /// The last visible character, unless something that joins nothing came after it.
    previous: Option<char>,
    /// Whether an [`EMOJI_STYLE`] came after it.
    styled: bool,
    /// A joiner after it that has not been given out.
    held: Option<char>,
}

impl Sanitizer {
    /// The next piece.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut safe = String::with_capacity(text.len());
        for character in text.chars() {
            if let Some(joiner) = self.held.take() {
                let joined = self.previous.is_some_and(|before| joins(before, joiner, character));
                safe.push(if joined { joiner } else { stand_in(joiner) });
                self.forget();
            }
            match (character, self.previous) {
                (EMOJI_STYLE, Some(before)) if is_pictograph(before) && !self.styled => {
                    self.styled = true;
                    safe.push(EMOJI_STYLE);
                    continue;
                }
                (JOINER | NON_JOINER, Some(_)) => {
                    self.held = Some(character);
                    continue;
                }
                ('\n', _) => safe.push('\n'),
                ('\t', _) => safe.push_str("    "),
                ('\r', _) => {}
                _ => safe.push(stand_in(character)),
            }
            self.forget();
            self.previous = Some(character).filter(|character| !is_hidden(*character));
        }
        safe
    }

    /// Ends the text: what stands for a joiner that nothing came after.
    pub(crate) fn finish(&mut self) -> Option<char> {
        let joiner = self.held.take();
        self.forget();
        joiner.map(stand_in)
    }

    /// What comes next joins nothing that came before.
    fn forget(&mut self) {
        *self = Self::default();
    }
}

const NON_JOINER: char = '\u{200c}';
const JOINER: char = '\u{200d}';
const EMOJI_STYLE: char = '\u{fe0f}';

/// Whether a joiner belongs between two characters: the parts of an emoji, or letters of a script that needs joiners.
fn joins(before: char, joiner: char, after: char) -> bool {
    let emoji = joiner == JOINER && is_pictograph(before) && is_pictograph(after);
    emoji || (joins_letters(before) && joins_letters(after))
}

fn is_pictograph(character: char) -> bool {
    matches!(character, '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}')
}

/// Characters of the Arabic and Indic scripts.
fn joins_letters(character: char) -> bool {
    matches!(character, '\u{620}'..='\u{6d3}' | '\u{900}'..='\u{dff}')
}

/// The same on one line: a line break becomes a visible sign, and no joiner stays.
pub(crate) fn one_line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => safe.push('⏎'),
            '\t' => safe.push_str("    "),
            '\r' => {}
            other => safe.push(stand_in(other)),
        }
    }
    safe
}

/// JSON with every such character escaped, so that it can be shown, edited and read back as the same value.
pub(crate) fn safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    let mut units = [0; 2];
    for character in json.chars() {
        if character == '\n' || (stand_in(character) == character && !is_odd_space(character)) {
            safe.push(character);
        } else {
            // Outside of strings JSON has no such characters.
            for unit in character.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    safe
}

/// The text cut to so many columns, with a sign that it was cut.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > columns {
            break;
        }
        short.push(character);
    }
    short.push('…');
    short
}

/// What stands for a character that does something to the terminal or is not seen; any other is itself.
fn stand_in(character: char) -> char {
    match character {
        // Control characters have pictures: ESC is ␛.
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('�'),
        '\u{7f}' => '␡',
        // The upper control characters, one of which starts sequences as ESC [ does.
        '\u{80}'..='\u{9f}' => '�',
        invisible if is_invisible(invisible) => '�',
        other => other,
    }
}

/// Spaces other than the usual one, which make two names look the same. Prose may have them, arguments show them as escapes.
fn is_odd_space(character: char) -> bool {
    character.is_whitespace() && character != ' ' && character != '\n'
}

/// Whether a character would not be shown as itself.
pub(crate) fn is_hidden(character: char) -> bool {
    stand_in(character) != character
}

#[cfg(test)]
#[path = "safe_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "attack_tests.rs"]
mod attack_tests;
