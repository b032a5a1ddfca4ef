//! Text of models, tools and extensions made harmless: what they write can be read, and can do nothing else to the terminal.
//!
//! Whatever was not written by this program or typed here goes through [`harmless`] or [`one_line`] before it is shown.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with every character that could move the cursor, change the terminal or reorder what is read replaced by one
/// that only stands for it. Line breaks stay, tabs become spaces.
pub(crate) fn sanitize_for_terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => safe.push('\n'),
            '\t' => safe.push_str("    "),
            '\r' => {}
            other => safe.push(stand_in(other)),
        }
    }
    safe
}

/// The same on one line: a line break becomes a visible sign.
pub(crate) fn one_line(text: &str) -> String {
    sanitize_for_terminal(text).replace('\n', "⏎")
}

/// JSON with every such character escaped, so that it can be shown, edited and read back as the same value.
pub(crate) fn safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    let mut units = [0; 2];
    for character in json.chars() {
        if character == '\n' || stand_in(character) == character {
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

fn stand_in(character: char) -> char {
    match character {
        // Control characters have pictures: ESC is ␛.
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('�'),
        '\u{7f}' => '␡',
        // The upper control characters, one of which starts sequences as ESC [ does.
        '\u{80}'..='\u{9f}' => '�',
        // Marks that reorder text, break lines, or are not seen at all.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '�',
        other => other,
    }
}

#[cfg(test)]
#[path = "safe_tests.rs"]
mod tests;
