//! A tool. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.

use holdfast_extension::{Failure, tool};

/// Counts the words of a text.
// The doc comments are what a model reads; the types of the parameters become the schema of the arguments.
#[tool(effects = "pure")]
fn count_words(
    /// The text to count.
    text: String,
) -> Result<u64, Failure> {
    Ok(text.split_whitespace().count() as u64)
}
