//! Reading Rust source as text: comments and literals blanked out, line breaks kept, so that a rule sees code and nothing else.

/// What to do with the insides of string literals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Literals {
    /// Leave them, for rules about what a program says.
    Keep,
    /// Blank them, for rules about what a program does.
    Blank,
}

/// The source without its comments; every line stays where it was.
pub fn code_only(source: &str, literals: Literals) -> String {
    Scanner { chars: source.chars().collect(), at: 0, out: String::with_capacity(source.len()), literals }
        .run()
}

/// Code without inline test modules: what `#[cfg(test)] mod … { … }` holds is blanked. Takes the result of [`code_only`].
pub fn without_inline_tests(code: &str) -> String {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(ATTRIBUTE) {
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        let body = &after[ATTRIBUTE.len()..];
        let end = match (body.trim_start().starts_with("mod "), body.find(['{', ';'])) {
            (true, Some(open)) if body[open..].starts_with('{') => {
                ATTRIBUTE.len() + open + block_length(&body[open..])
            }
            _ => ATTRIBUTE.len(),
        };
        out.extend(after[..end].chars().filter(|&c| c == '\n'));
        rest = &after[end..];
    }
    out + rest
}

fn block_length(text: &str) -> usize {
    let mut depth = 0;
    for (place, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    text.len()
}

/// A word or a punctuation mark, and the line it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The text.
    pub text: String,
    /// The line, from 1.
    pub line: usize,
}

/// Words and punctuation marks of code from [`code_only`].
pub fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut word = String::new();
        for c in line.chars().chain([' ']) {
            if is_word(c) {
                word.push(c);
                continue;
            }
            if !word.is_empty() {
                tokens.push(Token { text: std::mem::take(&mut word), line: index + 1 });
            }
            if !c.is_whitespace() {
                tokens.push(Token { text: c.to_string(), line: index + 1 });
            }
        }
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    out: String,
    literals: Literals,
}

impl Scanner {
    fn run(mut self) -> String {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.quoted(),
                ('\'', _) => self.quote_or_lifetime(),
                _ if is_word(c) => self.word(),
                _ => self.keep(1),
            }
        }
        self.out
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self, count: usize) {
        for _ in 0..count {
            self.out.extend(self.peek(0));
            self.at += 1;
        }
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            self.out.extend(self.peek(0).map(|c| if c == '\n' { '\n' } else { ' ' }));
            self.at += 1;
        }
    }

    fn literal(&mut self, count: usize) {
        match self.literals {
            Literals::Keep => self.keep(count),
            Literals::Blank => self.blank(count),
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.blank(1);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.blank(1);
                    continue;
                }
            }
            self.blank(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn quoted(&mut self) {
        self.keep(1);
        while let Some(c) = self.peek(0) {
            match c {
                '"' => return self.keep(1),
                '\\' => self.literal(2),
                _ => self.literal(1),
            }
        }
    }

    fn quote_or_lifetime(&mut self) {
        match (self.peek(1), self.peek(2)) {
            (Some('\\'), _) => {
                self.keep(1);
                self.literal(2);
                while self.peek(0).is_some_and(|c| c != '\'') {
                    self.literal(1);
                }
                self.keep(1);
            }
            (Some(_), Some('\'')) => {
                self.keep(1);
                self.literal(1);
                self.keep(1);
            }
            _ => self.keep(1),
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.keep(1);
        }
        let prefix: String = self.chars[start..self.at].iter().collect();
        let hashes = self.chars[self.at..].iter().take_while(|&&c| c == '#').count();
        if matches!(prefix.as_str(), "r" | "br" | "cr") && self.peek(hashes) == Some('"') {
            self.keep(hashes + 1);
            self.raw(hashes);
        }
    }

    fn raw(&mut self, hashes: usize) {
        while let Some(c) = self.peek(0) {
            if c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                return self.keep(hashes + 1);
            }
            self.literal(1);
        }
    }
}
