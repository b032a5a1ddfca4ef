//! Base64 in a text, read: instructions are wrapped in it so that nobody who looks sees them.

/// The shortest run that is worth reading.
const LEAST: usize = 24;

/// What the runs of base64 in a text say, as far as that is readable.
pub fn readable(text: &str) -> Vec<String> {
    let is_digit = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '-' | '_' | '=');
    let runs = text.split(|letter| !is_digit(letter)).filter(|run| run.len() >= LEAST);
    runs.filter_map(decoded).take(64).collect()
}

fn decoded(run: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(run.len());
    let (mut held, mut bits) = (0_u32, 0);
    for digit in run.trim_end_matches('=').bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let readable = text.chars().all(|letter| !letter.is_control() || letter.is_whitespace());
    (readable && text.contains(' ')).then_some(text)
}
