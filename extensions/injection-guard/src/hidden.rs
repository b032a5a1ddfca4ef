//! Characters that nobody sees: letters of the tags block, marks that turn the direction of text, marks without width inside of words.
//! Where they belong to a script or to an emoji they stay.

/// The word that begins what was brought to light, which `signs.rs` looks for.
pub const MARK: &str = "[hidden text:";

/// How many characters without width in words are no accident.
const FEW: usize = 3;

/// The text with what was hidden in it in sight; none if nothing was.
pub fn shown(text: &str) -> Option<String> {
    // Everything that hides lies beyond ASCII.
    if text.is_ascii() {
        return None;
    }
    let letters: Vec<char> = text.chars().collect();
    let (mut out, mut secret) = (String::with_capacity(text.len()), String::new());
    let mut removed = 0;
    let mut changed = false;
    for (at, letter) in letters.iter().copied().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at)).copied();
        let after = letters.get(at + 1).copied();
        if let Some(tag) = tag(letter, before) {
            secret.extend(tag);
            changed = true;
            continue;
        }
        if !secret.is_empty() {
            end(&mut out, &mut secret);
        }
        let in_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_graphic());
        match letter {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' if !has_right_to_left(&letters) => removed += FEW,
            '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}'
                if in_word(before) && in_word(after) =>
            {
                removed += 1
            }
            letter => {
                out.push(letter);
                continue;
            }
        }
        changed = true;
    }
    if !secret.is_empty() {
        end(&mut out, &mut secret);
    }
    if removed >= FEW {
        out.push_str("\n[hidden text: characters without width were removed]");
    }
    changed.then_some(out)
}

fn end(out: &mut String, secret: &mut String) {
    out.push_str(MARK);
    out.push(' ');
    out.push_str(secret);
    out.push(']');
    secret.clear();
}

/// What a letter of the tags block, or a byte that a variation selector carries, says; none for any other, and for a flag's tags.
fn tag(letter: char, before: Option<char>) -> Option<Option<char>> {
    match letter {
        '\u{e0020}'..='\u{e007e}' => Some(char::from_u32(u32::from(letter) - 0xe0000)),
        '\u{e0000}'..='\u{e007f}' => Some(None),
        // One selector belongs to the letter before it; a row of them carries bytes.
        '\u{e0100}'..='\u{e01ef}' if before.is_some_and(is_selector) => Some(char::from_u32(u32::from(letter) - 0xe0100 + 16)),
        '\u{fe00}'..='\u{fe0f}' if before.is_some_and(is_selector) => Some(None),
        _ => None,
    }
}

fn is_selector(letter: char) -> bool {
    matches!(letter, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a text is written from right to left somewhere: marks of direction then have a use.
fn has_right_to_left(letters: &[char]) -> bool {
    letters.iter().any(|letter| matches!(letter, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'))
}
