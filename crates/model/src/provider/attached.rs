//! Attachments of messages and tool results, in the form that each provider accepts. Others are described to the model as text.

use genai::adapter::AdapterKind;
use genai::chat::{Binary, ContentPart, MessageContent};
use holdfast_contract::content::Content;
use holdfast_contract::hook::Artifact;

/// Image types that every provider with image support accepts.
const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The most letters of a text file that a model is shown.
const MAX_TEXT_CHARS: usize = 100_000;

/// A user's message with files.
pub(super) fn message(kind: AdapterKind, text: &Content, attachments: &[Artifact]) -> MessageContent {
    let mut parts = vec![ContentPart::Text(text.to_text())];
    parts.extend(attachments.iter().map(|file| match file.text() {
        Some(text) => ContentPart::Text(written(file, text)),
        None => part(kind, file, "The user attached"),
    }));
    MessageContent::from_parts(parts)
}

/// The files that tools have made, after their results. Providers take files from users only, so it is said whose they are. What a tool
/// wants its model to read is in its result: a text that it made is for the user.
pub(super) fn tool_files<'a>(kind: AdapterKind, files: impl Iterator<Item = &'a Artifact>) -> MessageContent {
    let mut parts =
        vec![ContentPart::Text("[Files that the tools have made; the user has them too.]".to_owned())];
    parts.extend(files.map(|file| match file.text() {
        Some(_) => ContentPart::Text(named(file, "A tool made", "it is a text for the user")),
        None => part(kind, file, "A tool made"),
    }));
    MessageContent::from_parts(parts)
}

fn part(kind: AdapterKind, file: &Artifact, whose: &str) -> ContentPart {
    let media_type = file.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let why = match file.base64() {
        Some(data) if takes(kind, &media_type) => {
            return ContentPart::Binary(Binary::from_base64(media_type, data, Some(file.name.clone())));
        }
        Some(_) => "this model's provider does not take files of this type",
        None => "its content is no longer stored",
    };
    ContentPart::Text(named(file, whose, why))
}

/// Whether a provider takes files of a type.
fn takes(kind: AdapterKind, media_type: &str) -> bool {
    use AdapterKind::{Anthropic, Gemini, Ollama, OllamaCloud, OpenAI, OpenAIResp};
    let image = IMAGES.contains(&media_type);
    match kind {
        OpenAI | OpenAIResp | Anthropic | Gemini => image || media_type == "application/pdf",
        Ollama | OllamaCloud => image,
        _ => false,
    }
}

/// A text file as a message.
fn written(file: &Artifact, text: &str) -> String {
    let name = plain(&file.name);
    let (text, rest) = match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => (&text[..end], "\n[The file goes on; this is its beginning.]"),
        None => (text, ""),
    };
    format!("<file name=\"{name}\">\n{text}\n</file>{rest}")
}

/// The text in place of a file that cannot be shown.
fn named(file: &Artifact, whose: &str, why: &str) -> String {
    let (name, media_type) = (plain(&file.name), plain(&file.media_type));
    format!("[{whose} `{name}` ({media_type}, {} bytes). You do not see it: {why}.]", file.size())
}

/// A name from outside, on one line.
fn plain(name: &str) -> String {
    let odd = |letter: char| letter.is_control() || matches!(letter, '`' | '"' | '<' | '>');
    name.chars().take(200).map(|letter| if odd(letter) { ' ' } else { letter }).collect()
}
