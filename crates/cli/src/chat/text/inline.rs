//! What stands inside a line of markdown: bold, italic, code and links.

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InlineStyle {
    pub bold: bool,
    pub italic: bool,
    pub code: bool,
    pub link: bool,
    pub dim: bool,
}

impl InlineStyle {
    /// The terminal's codes for it.
    pub(crate) fn codes(self) -> String {
        let all =
            [(self.bold, "1"), (self.dim, "2"), (self.italic, "3"), (self.link, "4"), (self.code, "36")];
        let on: Vec<&str> = all.iter().filter(|(on, _)| *on).map(|(_, code)| *code).collect();
        on.join(";")
    }
}

/// Text of one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StyledText {
    pub text: String,
    pub style: InlineStyle,
}

/// The longest text that is held because it may still turn out to be something else than it says.
const MAX_HELD_CHARS: usize = 400;

/// The pieces of a text, and how many bytes of it they took. What is not yet certain is left, unless the text is complete.
///
/// `before` is the character before the text.
pub(crate) fn pieces(
    text: &str,
    before: Option<char>,
    style: InlineStyle,
    complete: bool,
) -> (Vec<StyledText>, usize) {
    let mut found = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let before = text[..at].chars().next_back().or(before);
        match special(rest, before, style, complete || rest.len() > MAX_HELD_CHARS) {
            Found::Pieces(pieces, used) => {
                push(&mut found, &mut plain, style);
                found.extend(pieces);
                at += used;
            }
            Found::Text(used) => {
                plain.push_str(&rest[..used]);
                at += used;
            }
            Found::Literal(character) => {
                plain.push(character);
                at += 1 + character.len_utf8();
            }
            Found::Unknown => break,
        }
    }
    push(&mut found, &mut plain, style);
    (found, at)
}

fn push(found: &mut Vec<StyledText>, plain: &mut String, style: InlineStyle) {
    if !plain.is_empty() {
        found.push(StyledText { text: std::mem::take(plain), style });
    }
}

enum Found {
    /// Something else than text, of so many bytes.
    Pieces(Vec<StyledText>, usize),
    /// So many bytes of text.
    Text(usize),
    /// A character behind a backslash.
    Literal(char),
    /// More of the line is needed.
    Unknown,
}

/// What a text begins with.
fn special(rest: &str, before: Option<char>, style: InlineStyle, complete: bool) -> Found {
    let Some(first) = rest.chars().next() else { return Found::Unknown };
    let or_text = |found: Option<Found>, text: usize| match found {
        Some(found) => found,
        None if complete => Found::Text(text),
        None => Found::Unknown,
    };
    match first {
        '\\' => match rest[1..].chars().next() {
            Some(next) if next.is_ascii_punctuation() => Found::Literal(next),
            Some(_) => Found::Text(1),
            None => or_text(None, 1),
        },
        '`' => {
            let ticks = rest.chars().take_while(|c| *c == '`').count();
            or_text(code(rest, ticks, style), ticks)
        }
        '*' | '_' => {
            let count = rest.chars().take_while(|c| *c == first).count();
            if rest.len() == count && !complete {
                return Found::Unknown;
            }
            let next = rest[count..].chars().next();
            let inside_word = first == '_' && before.is_some_and(char::is_alphanumeric);
            if count > 3 || inside_word || next.is_none_or(char::is_whitespace) {
                return Found::Text(count);
            }
            or_text(emphasis(rest, first, count, style), count)
        }
        '[' => link(rest, style, complete),
        _ => {
            let end = rest.find(['\\', '`', '*', '_', '[']).unwrap_or(rest.len());
            Found::Text(end)
        }
    }
}

fn code(rest: &str, ticks: usize, style: InlineStyle) -> Option<Found> {
    let fence = &rest[..ticks];
    let mut from = ticks;
    loop {
        let start = from + rest[from..].find(fence)?;
        let run = rest[start..].chars().take_while(|c| *c == '`').count();
        if run == ticks {
            let text = &rest[ticks..start];
            let trimmed = text.strip_prefix(' ').and_then(|text| text.strip_suffix(' ')).unwrap_or(text);
            let piece = StyledText { text: trimmed.to_owned(), style: InlineStyle { code: true, ..style } };
            return Some(Found::Pieces(vec![piece], start + ticks));
        }
        from = start + run;
    }
}

fn emphasis(rest: &str, sign: char, count: usize, style: InlineStyle) -> Option<Found> {
    let marker = &rest[..count];
    let mut from = count;
    loop {
        let start = from + rest[from..].find(marker)?;
        let run = rest[start..].chars().take_while(|c| *c == sign).count();
        let before = rest[..start].chars().next_back();
        let after = rest[start + run..].chars().next();
        let inside_word = sign == '_' && after.is_some_and(char::is_alphanumeric);
        if run == count && start > count && !before.is_some_and(char::is_whitespace) && !inside_word {
            let style =
                InlineStyle { bold: style.bold || count > 1, italic: style.italic || count != 2, ..style };
            let (inner, _) = pieces(&rest[count..start], Some(sign), style, true);
            return Some(Found::Pieces(inner, start + count));
        }
        from = start + run;
    }
}

fn link(rest: &str, style: InlineStyle, complete: bool) -> Found {
    let unknown = if complete { Found::Text(1) } else { Found::Unknown };
    let Some(close) = rest.find(']') else { return unknown };
    match rest[close + 1..].chars().next() {
        Some('(') => {}
        Some(_) => return Found::Text(1),
        None => return unknown,
    }
    let Some(end) = rest[close..].find(')').map(|end| close + end) else { return unknown };
    let (text, target) = (&rest[1..close], &rest[close + 2..end]);
    let (mut found, _) = pieces(text, Some('['), InlineStyle { link: true, ..style }, true);
    // The target is always shown: a link that says one thing and leads elsewhere is seen for what it is.
    if target != text {
        found.push(StyledText { text: format!(" ({target})"), style: InlineStyle { dim: true, ..style } });
    }
    Found::Pieces(found, end + 1)
}
