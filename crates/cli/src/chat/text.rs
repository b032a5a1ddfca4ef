//! Text as it is shown on a terminal: made harmless, with its margin, as Markdown, in colour or without.

mod inline;
pub(crate) mod margin;
pub(crate) mod markdown;
pub(crate) mod sanitize;
pub(crate) mod style;
