//! Colours, where there are any.

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    /// Terminal colours.
    Color,
    /// None at all.
    Plain,
}

impl TextStyle {
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn notable(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    /// The text in the colours of these codes, which are reset behind it.
    pub(crate) fn paint(self, codes: &str, text: &str) -> String {
        match self {
            Self::Color if !codes.is_empty() && !text.is_empty() => format!("\x1b[{codes}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}
