//! Credentials that can be told by their form: a known beginning, then enough characters of the right kind and no more than that.

/// A credential in a text.
pub struct Found {
    /// What it is.
    pub kind: &'static str,
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// Which characters a credential is made of.
#[derive(Clone, Copy)]
enum Of {
    /// Letters and digits.
    Word,
    /// Capital letters and digits.
    Capitals,
    /// Hexadecimal digits.
    Hex,
    /// Letters, digits, `-` and `_`.
    Url,
    /// Letters, digits, `-`, `_` and `.`.
    Dotted,
    /// The same, and `/`.
    Path,
}

impl Of {
    fn takes(self, byte: u8) -> bool {
        match self {
            Of::Word => byte.is_ascii_alphanumeric(),
            Of::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Of::Hex => byte.is_ascii_hexdigit(),
            Of::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Of::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            Of::Path => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'),
        }
    }
}

struct Shape {
    kind: &'static str,
    prefix: &'static str,
    of: Of,
    /// How many characters must follow, and how many may.
    count: (usize, usize),
}

const fn shape(kind: &'static str, prefix: &'static str, of: Of, least: usize, most: usize) -> Shape {
    Shape { kind, prefix, of, count: (least, most) }
}

const LONG: usize = 4096;

const SHAPES: &[Shape] = &[
    shape("AWS access key", "AKIA", Of::Capitals, 16, 16),
    shape("AWS access key", "ASIA", Of::Capitals, 16, 16),
    shape("AWS access key", "ABIA", Of::Capitals, 16, 16),
    shape("GitHub token", "ghp_", Of::Word, 36, 255),
    shape("GitHub token", "gho_", Of::Word, 36, 255),
    shape("GitHub token", "ghu_", Of::Word, 36, 255),
    shape("GitHub token", "ghs_", Of::Word, 36, 255),
    shape("GitHub token", "ghr_", Of::Word, 36, 255),
    shape("GitHub token", "github_pat_", Of::Url, 22, 255),
    shape("GitLab token", "glpat-", Of::Url, 20, 255),
    shape("GitLab token", "gldt-", Of::Url, 20, 255),
    shape("Slack token", "xoxb-", Of::Url, 20, 255),
    shape("Slack token", "xoxp-", Of::Url, 20, 255),
    shape("Slack token", "xoxa-", Of::Url, 20, 255),
    shape("Slack token", "xoxs-", Of::Url, 20, 255),
    shape("Slack token", "xapp-", Of::Url, 20, 255),
    shape("Slack webhook", "https://hooks.slack.com/services/", Of::Path, 30, 255),
    shape("Stripe key", "sk_live_", Of::Word, 16, 255),
    shape("Stripe key", "sk_test_", Of::Word, 16, 255),
    shape("Stripe key", "rk_live_", Of::Word, 16, 255),
    shape("webhook secret", "whsec_", Of::Word, 24, 255),
    shape("Anthropic key", "sk-ant-", Of::Url, 24, 255),
    shape("OpenAI key", "sk-proj-", Of::Url, 24, 255),
    shape("OpenAI key", "sk-svcacct-", Of::Url, 24, 255),
    shape("OpenRouter key", "sk-or-v1-", Of::Hex, 32, 255),
    shape("API key", "sk-", Of::Word, 32, 255),
    shape("Google API key", "AIza", Of::Url, 35, 35),
    shape("Google token", "ya29.", Of::Dotted, 30, LONG),
    shape("Google client secret", "GOCSPX-", Of::Url, 24, 255),
    shape("npm token", "npm_", Of::Word, 36, 36),
    shape("PyPI token", "pypi-AgE", Of::Url, 50, LONG),
    shape("Hugging Face token", "hf_", Of::Word, 30, 60),
    shape("DigitalOcean token", "dop_v1_", Of::Hex, 64, 64),
    shape("SendGrid key", "SG.", Of::Dotted, 60, 80),
    shape("Shopify token", "shpat_", Of::Hex, 32, 32),
    shape("Docker token", "dckr_pat_", Of::Url, 24, 255),
    shape("Grafana token", "glsa_", Of::Url, 32, 255),
    shape("Vault token", "hvs.", Of::Url, 24, 255),
    shape("age key", "AGE-SECRET-KEY-1", Of::Capitals, 50, 70),
    shape("Groq key", "gsk_", Of::Word, 40, 255),
    shape("xAI key", "xai-", Of::Word, 40, 255),
    shape("Databricks token", "dapi", Of::Hex, 32, 40),
    shape("Linear key", "lin_api_", Of::Word, 32, 255),
];

/// The credentials in a text that can be told by their form.
pub fn find(text: &str) -> Vec<Found> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let after_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let begins = bytes[at].is_ascii() && !after_word;
        let end = begins.then(|| shaped(text, at).or_else(|| block(text, at)).or_else(|| token(text, at))).flatten();
        match end {
            Some((kind, end)) => {
                found.push(Found { kind, start: at, end });
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

fn shaped(text: &str, at: usize) -> Option<(&'static str, usize)> {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    // None of them begins with anything else.
    if !matches!(rest[0], b'A' | b'G' | b'S' | b'd' | b'g' | b'h' | b'l' | b'n' | b'p' | b'r' | b's' | b'w' | b'x' | b'y') {
        return None;
    }
    SHAPES.iter().filter(|shape| rest.starts_with(shape.prefix.as_bytes())).find_map(|shape| {
        let after = at + shape.prefix.len();
        let run = bytes[after..].iter().take_while(|byte| shape.of.takes(**byte)).count();
        // The full stop of a sentence is not part of it.
        let run = text[after..after + run].trim_end_matches(['.', '-', '/']).len();
        let fits = run >= shape.count.0 && run <= shape.count.1 && mixed(&text[after..after + run]);
        fits.then_some((shape.kind, after + run))
    })
}

/// Whether characters are a credential's, and not a row of one letter that stands for one.
fn mixed(text: &str) -> bool {
    let mut seen = [false; 128];
    let kinds = text.bytes().filter(|byte| !std::mem::replace(&mut seen[usize::from(byte & 127)], true)).count();
    kinds >= 6
}

/// A private key in armour, up to its end, or to that of the text where it is not closed.
fn block(text: &str, at: usize) -> Option<(&'static str, usize)> {
    const BEGIN: &str = "-----BEGIN ";
    let rest = text[at..].strip_prefix(BEGIN)?;
    let label = rest.split("-----").next()?;
    if label.len() > 40 || !label.ends_with("PRIVATE KEY") && !label.ends_with("PRIVATE KEY BLOCK") {
        return None;
    }
    let body = at + BEGIN.len();
    let end = text[body..].find("-----END ").map(|length| body + length + 9);
    let closed = end.and_then(|end| Some(end + text[end..].find("-----")? + 5));
    Some(("private key", closed.unwrap_or(text.len())))
}

/// A signed token of three parts, or a bot's token.
fn token(text: &str, at: usize) -> Option<(&'static str, usize)> {
    let bytes = &text.as_bytes()[at..];
    let run = |from: usize| bytes[from..].iter().take_while(|byte| Of::Url.takes(**byte)).count();
    if bytes.starts_with(b"eyJ") {
        let first = run(0);
        let second = (bytes.get(first) == Some(&b'.')).then(|| run(first + 1))?;
        let third = (bytes.get(first + 1 + second) == Some(&b'.')).then(|| run(first + second + 2))?;
        let whole = first + second + third + 2;
        return (first >= 12 && second >= 12 && third >= 16).then_some(("signed token", at + whole));
    }
    if bytes[0].is_ascii_digit() {
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if (8..=10).contains(&digits) && bytes.get(digits) == Some(&b':') && run(digits + 1) == 35 {
            let secret = &text[at + digits + 1..at + digits + 36];
            return mixed(secret).then_some(("bot token", at + digits + 36));
        }
    }
    None
}
