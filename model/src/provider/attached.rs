//! Files that come with a message, as each provider takes them. What one does not take, its model is told of in words.

use genai::adapter::AdapterKind;
use genai::chat::{Binary, ContentPart, MessageContent};
use holdfast_contract::content::Content;
use holdfast_contract::hook::Artifact;

/// Images that all providers take which take any.
const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The most letters of a text file that a model is shown.
const LONGEST: usize = 100_000;

/// A user's message with files.
pub(super) fn message(kind: AdapterKind, text: &Content, attachments: &[Artifact]) -> MessageContent {
    let mut parts = vec![ContentPart::Text(text.to_text())];
    parts.extend(attachments.iter().map(|file| part(kind, file)));
    MessageContent::from_parts(parts)
}

fn part(kind: AdapterKind, file: &Artifact) -> ContentPart {
    let media_type = file.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match (file.text(), file.base64()) {
        (Some(text), _) => ContentPart::Text(written(file, text)),
        (None, Some(data)) if takes(kind, &media_type) => {
            ContentPart::Binary(Binary::from_base64(media_type, data, Some(file.name.clone())))
        }
        (None, Some(_)) => {
            ContentPart::Text(named(file, "this model's provider does not take files of this type"))
        }
        (None, None) => ContentPart::Text(named(file, "its content is not at hand any more")),
    }
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

/// A text file in words.
fn written(file: &Artifact, text: &str) -> String {
    let name = plain(&file.name);
    let (text, rest) = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => (&text[..end], "\n[The file goes on; this is its beginning.]"),
        None => (text, ""),
    };
    format!("<file name=\"{name}\">\n{text}\n</file>{rest}")
}

/// What is said of a file that cannot be shown.
fn named(file: &Artifact, why: &str) -> String {
    let (name, media_type) = (plain(&file.name), plain(&file.media_type));
    format!("[The user attached `{name}` ({media_type}, {} bytes). You do not see it: {why}.]", file.size())
}

/// A name from outside, on one line.
fn plain(name: &str) -> String {
    let odd = |letter: char| letter.is_control() || matches!(letter, '`' | '"' | '<' | '>');
    name.chars().take(200).map(|letter| if odd(letter) { ' ' } else { letter }).collect()
}
