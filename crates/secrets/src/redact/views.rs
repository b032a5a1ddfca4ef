//! Other ways to read a text: with escapes resolved, with the line breaks taken out of base64, with the separators taken out of
//! hexadecimal digits. A value that is found in such a view is redacted where it stands in the text.
//!
//! Views are made of those parts of a text only that could hold one, so that ordinary text costs one look at each byte.

use std::ops::Range;

use super::SHORTEST;

/// A part of a text, read in another way.
pub(super) struct View {
    /// What is read.
    pub(super) text: String,
    /// For each byte of it, the part of the text that stands for it.
    places: Vec<Range<usize>>,
    /// The shortest form that is looked for in it: short ones would be found in words that are not one.
    pub(super) shortest: usize,
    /// Whether it reaches to the end of the text, so that what follows may continue it.
    pub(super) is_last: bool,
    /// Where a part begins that may become something else with what follows, at the end of the text.
    pub(super) open: Option<usize>,
}

impl View {
    fn new(shortest: usize) -> Self {
        Self { text: String::new(), places: Vec::new(), shortest, is_last: false, open: None }
    }

    fn push(&mut self, character: char, place: Range<usize>) {
        self.text.push(character);
        self.places.extend(std::iter::repeat_n(place, character.len_utf8()));
    }

    /// Where a part of the view stands in the text.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        let start = self.places.get(range.start).map_or(0, |place| place.start);
        let end =
            range.end.checked_sub(1).and_then(|last| self.places.get(last)).map_or(start, |place| place.end);
        start..end
    }

    /// Where in the text a place of the view is.
    pub(super) fn start(&self, place: usize) -> usize {
        self.places.get(place).map_or(usize::MAX, |place| place.start)
    }
}

/// Every view of a text that may hold what the text itself does not show.
pub(super) fn of(text: &str) -> Vec<View> {
    let mut views = Vec::new();
    if text.contains(['%', '\\']) {
        views.extend(unescaped(text));
    }
    joined(text, &mut views);
    separated(text, &mut views);
    views
}

/// The text with `\u0073` and `%73` resolved; none where it has no such escape.
fn unescaped(text: &str) -> Option<View> {
    let bytes = text.as_bytes();
    let mut view = View { is_last: true, ..View::new(SHORTEST) };
    let (mut at, mut any) = (0, false);
    while let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = &bytes[at..];
        let escape = match rest {
            [b'\\', b'u', digits @ ..] => Some((2, 4, digits)),
            [b'%', digits @ ..] => Some((1, 2, digits)),
            _ => None,
        };
        let whole = escape.filter(|(_, count, digits)| {
            digits.len() >= *count && digits.iter().take(*count).all(u8::is_ascii_hexdigit)
        });
        if let Some((before, count, _)) = whole {
            let code = text.get(at + before..at + before + count);
            let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            // Values are mostly ASCII; the forms have the others.
            if let Some(character) = code.and_then(char::from_u32).filter(char::is_ascii) {
                view.push(character, at..at + before + count);
                at += before + count;
                any = true;
                continue;
            }
        }
        if is_cut(rest) {
            view.open = Some(at);
            break;
        }
        view.push(character, at..at + character.len_utf8());
        at += character.len_utf8();
    }
    (any || view.open.is_some()).then_some(view)
}

/// Whether the text ends in the middle of an escape.
fn is_cut(rest: &[u8]) -> bool {
    let digits =
        |digits: &[u8], count: usize| digits.len() < count && digits.iter().all(u8::is_ascii_hexdigit);
    match rest {
        [b'\\'] => true,
        [b'\\', b'u', more @ ..] => digits(more, 4),
        [b'%', more @ ..] => digits(more, 2),
        _ => false,
    }
}

/// The shortest form that is looked for where breaks and separators were taken out.
const SHORTEST_JOINED: usize = 8;

/// What stands between the lines of base64: a line break, also as it is written in JSON, with the indentation of the next line.
fn line_break(rest: &[u8]) -> Option<usize> {
    let (length, next) = match rest {
        [b'\r' | b'\n', next @ ..] => (1, next),
        [b'\\', b'r' | b'n', next @ ..] => (2, next),
        _ => return None,
    };
    Some(length + next.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
}

/// Runs of base64 over several lines, without the breaks.
fn joined(text: &str, views: &mut Vec<View>) {
    runs(text, views, line_break, |rest| match rest {
        [byte, ..] if byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte) => Some(*byte),
        _ => None,
    });
}

/// What stands between hexadecimal digits: `73:6b`, `73 6b`, `0x73, 0x6b`, `\x73\x6b`.
fn separator(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'0' | b'\\', b'x' | b'X', ..] => Some(2),
        [b' ' | b':' | b'-' | b',' | b'.' | b'_' | b';' | b'\t' | b'\r' | b'\n', ..] => Some(1),
        [b'\\', b'r' | b'n', ..] => Some(2),
        _ => None,
    }
}

/// Runs of hexadecimal digits, without what separates them.
fn separated(text: &str, views: &mut Vec<View>) {
    runs(text, views, separator, |rest| match rest {
        [byte, ..] if byte.is_ascii_hexdigit() => Some(byte.to_ascii_lowercase()),
        _ => None,
    });
}

/// The runs of such bytes that have something between them, without that.
fn runs(
    text: &str,
    views: &mut Vec<View>,
    between: impl Fn(&[u8]) -> Option<usize>,
    digit: impl Fn(&[u8]) -> Option<u8>,
) {
    let bytes = text.as_bytes();
    let mut view = View::new(SHORTEST_JOINED);
    let (mut at, mut gaps) = (0, 0_usize);
    while at < bytes.len() {
        let rest = &bytes[at..];
        // A `0` or `\` at the end may be the first half of a separator.
        let cut = matches!(rest, [b'0' | b'\\']) && between(&[rest[0], b'x']).is_some();
        if cut || matches!(rest, [b'\\']) {
            view.open = Some(at);
            break;
        }
        if let Some(length) = between(rest) {
            gaps += usize::from(!view.text.is_empty());
            at += length;
        } else if let Some(byte) = digit(rest) {
            view.push(char::from(byte), at..at + 1);
            at += 1;
        } else {
            if gaps > 0 && view.text.len() >= SHORTEST_JOINED {
                views.push(std::mem::replace(&mut view, View::new(SHORTEST_JOINED)));
            } else {
                view.text.clear();
                view.places.clear();
            }
            (gaps, at) = (0, at + 1);
        }
    }
    if !view.text.is_empty() && (gaps > 0 || view.open.is_some()) {
        views.push(View { is_last: true, ..view });
    }
}
