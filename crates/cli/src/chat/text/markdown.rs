//! Markdown for a terminal, while it is being written.
//!
//! Text goes in as it comes and comes out word by word, wrapped and styled. Nothing is ever taken back or painted over: what
//! could still become bold, code or a link is held until that is known. Lines are broken here and not by the terminal, so that
//! every line keeps its margin and nothing that a model writes begins in the first column, where prompts do.

use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::inline::{InlineStyle, StyledText, pieces};
use super::sanitize::Sanitizer;
use super::style::TextStyle;

/// Text on its way to the terminal.
pub(crate) struct Markdown {
    text_style: TextStyle,
    width: usize,
    margin: usize,
    sanitizer: Sanitizer,
    /// A style of the whole text.
    base: InlineStyle,
    /// The line that is being written: what of it has not been shown.
    line: String,
    block: Option<Block>,
    fence: Option<String>,
    /// The last character of the line that was consumed.
    before: Option<char>,
    /// The word that is being written, and the spaces before it.
    word: Vec<StyledText>,
    spaces: usize,
    /// The columns that are filled, without the margin.
    column: usize,
    indent: usize,
    out: String,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Paragraph,
    Heading,
    Quote,
    /// Shown as it is, and broken only where the terminal ends.
    Code,
    /// The same, without a colour.
    Table,
    /// Shown already.
    Shown,
    /// Not shown at all: the line of a fence.
    Hidden,
}

impl Markdown {
    /// Text for a terminal of this width, in from its left edge by a margin.
    pub(crate) fn new(text_style: TextStyle, width: usize, margin: usize) -> Self {
        Self {
            text_style,
            width: width.saturating_sub(margin).max(8),
            margin,
            sanitizer: Sanitizer::default(),
            base: InlineStyle::default(),
            line: String::new(),
            block: None,
            fence: None,
            before: None,
            word: Vec::new(),
            spaces: 0,
            column: 0,
            indent: 0,
            out: String::new(),
        }
    }

    /// The same, all of it dim.
    pub(crate) fn dim(mut self) -> Self {
        self.base.dim = true;
        self
    }

    /// Takes more text and gives what of it can be shown.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let text = self.sanitizer.push(text);
        let mut lines = text.split('\n');
        if let Some(first) = lines.next() {
            self.line.push_str(first);
        }
        for next in lines {
            self.advance(true);
            self.end_line();
            self.line.push_str(next);
        }
        self.advance(false);
        std::mem::take(&mut self.out)
    }

    /// Gives what is left, up to the end of its line.
    pub(crate) fn finish(&mut self) -> String {
        self.line.extend(self.sanitizer.finish());
        if self.block.is_some() || !self.line.is_empty() {
            self.advance(true);
            self.end_line();
        }
        self.fence = None;
        std::mem::take(&mut self.out)
    }

    /// Shows as much of the line as is certain; all of it when the line is complete.
    fn advance(&mut self, complete: bool) {
        if self.block.is_none() {
            if !complete && !self.decided() || complete && self.line.is_empty() {
                return;
            }
            self.begin(complete);
        }
        match self.block {
            Some(Block::Code | Block::Table) => {
                let text = std::mem::take(&mut self.line);
                let style = InlineStyle { code: self.block == Some(Block::Code), ..self.base };
                self.hard(&text, style);
            }
            Some(block @ (Block::Paragraph | Block::Heading | Block::Quote)) => {
                let style = InlineStyle {
                    bold: block == Block::Heading,
                    dim: self.base.dim || block == Block::Quote,
                    ..self.base
                };
                let line = std::mem::take(&mut self.line);
                let (found, used) = pieces(&line, self.before, style, complete);
                self.before = line[..used].chars().next_back().or(self.before);
                self.line = line[used..].to_owned();
                for piece in found {
                    self.words(piece);
                }
                if complete {
                    self.flush_word();
                }
            }
            Some(Block::Shown | Block::Hidden) | None => self.line.clear(),
        }
    }

    /// Whether the line's beginning says what the line is.
    fn decided(&self) -> bool {
        if self.fence.is_some() {
            return !self.line.trim_start().starts_with(['`', '~']) && !self.line.trim().is_empty();
        }
        let text = self.line.trim_start();
        let sign = |character: char| "#-*+>`~|_=.) ".contains(character) || character.is_ascii_digit();
        let fence = text.starts_with("```") || text.starts_with("~~~");
        text.starts_with('|') || !fence && text.chars().any(|character| !sign(character))
    }

    /// Says what the line is and shows what stands at its beginning.
    fn begin(&mut self, complete: bool) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_start();
        let depth = (line.width() - text.width()).min(self.width / 3);
        (self.indent, self.column, self.spaces) = (0, 0, 0);
        let opening = ["```", "~~~"].into_iter().find(|fence| text.starts_with(fence));
        if let Some(fence) = &self.fence {
            if complete
                && text.starts_with(fence.as_str())
                && text.trim_end().chars().all(|c| fence.contains(c))
            {
                (self.fence, self.block) = (None, Some(Block::Hidden));
            } else {
                self.block = Some(Block::Code);
                self.line = line;
            }
            return;
        }
        if let Some(fence) = opening {
            self.fence = Some(fence.to_owned());
            let name = text.trim_start_matches(['`', '~']).trim();
            self.block = Some(if name.is_empty() { Block::Hidden } else { Block::Shown });
            self.hard(name, InlineStyle { dim: true, ..self.base });
            return;
        }
        if text.starts_with('|') {
            (self.block, self.line) = (Some(Block::Table), line);
            return;
        }
        let bare: String = text.split_whitespace().collect();
        if complete && bare.len() >= 3 && ['-', '*', '_'].iter().any(|sign| bare.chars().all(|c| c == *sign))
        {
            self.block = Some(Block::Shown);
            self.hard(&"─".repeat(self.width.min(40)), InlineStyle { dim: true, ..self.base });
            return;
        }
        let level = text.chars().take_while(|c| *c == '#').count();
        if (1..=6).contains(&level) && text[level..].starts_with(' ') {
            self.block = Some(Block::Heading);
            let sign = if self.text_style == TextStyle::Color { "" } else { &text[..=level] };
            self.hard(sign, InlineStyle { bold: true, ..self.base });
            self.line = text[level..].trim_start().to_owned();
            return;
        }
        if let Some(rest) = text.strip_prefix('>') {
            self.block = Some(Block::Quote);
            self.lead("│ ", depth);
            self.line = rest.trim_start().to_owned();
            return;
        }
        self.block = Some(Block::Paragraph);
        let number = text.chars().take_while(char::is_ascii_digit).count();
        let rest = &text[number..];
        if let Some(item) = ["- ", "* ", "+ "].iter().find_map(|sign| text.strip_prefix(sign)) {
            self.lead("• ", depth);
            self.line = item.to_owned();
        } else if number > 0 && number < 4 && (rest.starts_with(". ") || rest.starts_with(") ")) {
            self.lead(&text[..number + 2], depth);
            self.line = rest[2..].to_owned();
        } else {
            self.line = text.to_owned();
        }
    }

    /// The sign before an item; further lines hang below its text.
    fn lead(&mut self, sign: &str, depth: usize) {
        self.hard(&format!("{}{sign}", " ".repeat(depth)), self.base);
        self.indent = self.column.min(self.width / 2);
    }

    fn end_line(&mut self) {
        if self.block != Some(Block::Hidden) {
            self.out.push('\n');
        }
        (self.block, self.before, self.column, self.indent, self.spaces) = (None, None, 0, 0, 0);
        self.line.clear();
    }

    /// Adds a piece to the words of the line.
    fn words(&mut self, piece: StyledText) {
        let mut rest = piece.text.as_str();
        while let Some(space) = rest.find(' ') {
            self.extend_word(&rest[..space], piece.style);
            self.flush_word();
            self.spaces += 1;
            rest = &rest[space + 1..];
        }
        self.extend_word(rest, piece.style);
    }

    fn extend_word(&mut self, text: &str, style: InlineStyle) {
        match self.word.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.word.push(StyledText { text: text.to_owned(), style }),
        }
    }

    /// Shows the word, on the next line if it does not fit on this one.
    fn flush_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() {
            return;
        }
        let width: usize = word.iter().map(|piece| piece.text.width()).sum();
        let spaces = std::mem::take(&mut self.spaces);
        if self.column + spaces + width > self.width && self.column > self.indent {
            self.break_line();
        } else {
            self.hard(&" ".repeat(spaces), self.base);
        }
        for piece in word {
            self.hard(&piece.text, piece.style);
        }
    }

    /// Shows text as it is, broken where the terminal ends.
    fn hard(&mut self, text: &str, style: InlineStyle) {
        let codes = style.codes();
        let mut run = String::new();
        for character in text.chars() {
            let width = character.width().unwrap_or(0);
            if self.column + width > self.width {
                self.out.push_str(&self.text_style.paint(&codes, &run));
                run.clear();
                self.break_line();
            }
            if self.column == 0 && run.is_empty() {
                let margin = self.margin;
                // Writing to a string cannot fail.
                let _whole = write!(self.out, "{:margin$}", "");
            }
            run.push(character);
            self.column += width;
        }
        self.out.push_str(&self.text_style.paint(&codes, &run));
    }

    fn break_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
        let indent = " ".repeat(self.indent);
        self.hard(&indent, InlineStyle::default());
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
