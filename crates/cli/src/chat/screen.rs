//! What is shown: whole lines, an answer while it is being written, and one status line that goes again.

use rustyline::ExternalPrinter;

use super::terminal::{show, width};
use super::text::margin::{margined, wrapped};
use super::text::markdown::Markdown;
use super::text::sanitize::{cut, one_line, sanitize_for_terminal};
use super::text::style::TextStyle;

/// Where everything but the prompt and questions is shown.
pub(crate) struct Screen {
    pub text_style: TextStyle,
    terminal: bool,
    printer: Option<Box<dyn ExternalPrinter + Send>>,
    /// Whether the user has the prompt before them.
    pub prompting: bool,
    text: Option<(Speaker, Markdown)>,
    status: bool,
}

/// Whose text is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Answer,
    Reasoning,
}

impl Screen {
    pub(crate) fn new(
        text_style: TextStyle,
        terminal: bool,
        printer: Option<Box<dyn ExternalPrinter + Send>>,
    ) -> Self {
        Self { text_style, terminal, printer, prompting: false, text: None, status: false }
    }

    /// The columns of a line.
    pub(crate) fn width(&self) -> usize {
        width()
    }

    /// Shows a line of our own.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.settle();
        self.write(&format!("{}\n", text.as_ref()));
    }

    /// Shows a line with foreign words in it: only its beginning is in the first column.
    pub(crate) fn row(&mut self, text: impl AsRef<str>) {
        let text = if self.terminal { wrapped(text.as_ref(), width()) } else { one_line(text.as_ref()) };
        self.line(text);
    }

    /// Shows foreign text, below a line that names its author.
    pub(crate) fn foreign(&mut self, whose: Option<&str>, text: &str) {
        let rows =
            if self.terminal { margined(text, width()) } else { sanitize_for_terminal(text.trim_end()) };
        match whose {
            Some(whose) => self.line(format!("{}:\n{rows}", one_line(whose))),
            None if rows.is_empty() => {}
            None => self.line(rows),
        }
    }

    /// Shows whole lines that are harmless and have their margin.
    pub(crate) fn block(&mut self, lines: &str) {
        self.settle();
        self.write(lines);
    }

    /// Shows more of a text that is being written.
    pub(crate) fn text(&mut self, voice: Speaker, text: &str) {
        if self.text.as_ref().is_some_and(|(speaking, _)| *speaking != voice) {
            self.settle();
        }
        let (text_style, columns, margin) = (self.text_style, width(), if self.terminal { 2 } else { 0 });
        let (_, markdown) = self.text.get_or_insert_with(|| {
            let markdown = Markdown::new(text_style, columns, margin);
            (voice, if voice == Speaker::Reasoning { markdown.dim() } else { markdown })
        });
        let out = markdown.push(text);
        self.write(&out);
    }

    /// Shows a whole text.
    pub(crate) fn whole(&mut self, text: &str) {
        self.settle();
        let mut markdown = Markdown::new(self.text_style, width(), if self.terminal { 2 } else { 0 });
        let out = markdown.push(text) + &markdown.finish();
        self.write(&out);
    }

    /// Ends a text that is being written.
    pub(crate) fn settle(&mut self) {
        if let Some((_, mut markdown)) = self.text.take() {
            let out = markdown.finish();
            self.write(&out);
        }
    }

    /// Shows a line that goes as soon as anything else is shown.
    pub(crate) fn status(&mut self, text: Option<&str>) {
        if !self.terminal || self.prompting || self.text.is_some() {
            return;
        }
        let line = text.map(|text| self.text_style.dim(&cut(&one_line(text), width().saturating_sub(1))));
        if line.is_some() || self.status {
            show(&format!("\r\x1b[K{}", line.as_deref().unwrap_or_default()));
        }
        self.status = line.is_some();
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.prompting
            && let Some(printer) = &mut self.printer
        {
            // A prompt that has just ended shows it all the same.
            let _late = printer.print(text.to_owned());
            return;
        }
        let before = if std::mem::take(&mut self.status) { "\r\x1b[K" } else { "" };
        show(&format!("{before}{text}"));
    }
}
