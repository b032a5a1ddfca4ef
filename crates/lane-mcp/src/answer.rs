//! How what a server answers becomes a tool's result: text as text, a structured result as it is, everything else as attachments.

use holdfast_contract::content::Content;
use holdfast_contract::problem::{Code, Fault};
use rmcp::model::{CallToolResult, ContentBlock, ReadResourceResult, ResourceContents};
use serde_json::{Map, Value, json};

/// The most files of one result. The host takes no more.
const MAX_FILES: usize = 16;
const UNKNOWN_CONTENT: &str = "[content of a kind that this version does not know]";

/// What a result has besides its structured part.
#[derive(Default)]
struct ResultParts {
    texts: Vec<String>,
    files: Vec<Value>,
}

impl ResultParts {
    fn file(&mut self, name: String, media_type: &str, field: &str, data: String) {
        if self.files.len() < MAX_FILES {
            let media_type = if media_type.contains('/') { media_type } else { "application/octet-stream" };
            self.files.push(json!({ "name": name, "media_type": media_type, field: data }));
        } else {
            self.texts.push(format!("[{name} was left out: a result has at most {MAX_FILES} files]"));
        }
    }

    fn binary(&mut self, kind: &str, media_type: &str, data: String) {
        let ending =
            media_type.rsplit('/').next().filter(|it| it.chars().all(|it| it.is_ascii_alphanumeric()));
        let name = format!("{kind}-{}.{}", self.files.len() + 1, ending.unwrap_or("bin"));
        self.file(name, media_type, "base64", data);
    }

    fn resource(&mut self, resource: ResourceContents) {
        let name = |uri: &str| {
            let last = uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if last.is_empty() { "resource".to_owned() } else { last.to_owned() }
        };
        match resource {
            ResourceContents::TextResourceContents { text, .. } => self.texts.push(text),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.file(name(&uri), mime_type.as_deref().unwrap_or_default(), "base64", blob);
            }
            _ => self.texts.push(UNKNOWN_CONTENT.to_owned()),
        }
    }

    fn block(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => self.binary("image", &image.mime_type, image.data),
            ContentBlock::Audio(audio) => self.binary("audio", &audio.mime_type, audio.data),
            ContentBlock::Resource(embedded) => self.resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                self.texts.push(format!("resource {} ({})", link.uri, link.name))
            }
            _ => self.texts.push(UNKNOWN_CONTENT.to_owned()),
        }
    }

    fn content(self) -> Content {
        let text = self.texts.join("\n");
        if self.files.is_empty() {
            return Content::text(text);
        }
        let mut fields = Map::new();
        if !text.is_empty() {
            fields.insert("text".to_owned(), text.into());
        }
        fields.insert("attachments".to_owned(), self.files.into());
        Content::new(fields.into())
    }
}

/// The result of a tool call. With an output schema it is the structured part, which the host checks against the schema.
pub(crate) fn tool_result(result: CallToolResult, structured: bool) -> Result<Content, Fault> {
    let mut parts = ResultParts::default();
    let failed = result.is_error == Some(true);
    let plain = result.structured_content.filter(|_| !failed && (structured || result.content.is_empty()));
    if let Some(value) = plain {
        return Ok(Content::new(value));
    }
    result.content.into_iter().for_each(|block| parts.block(block));
    if failed {
        let text = parts.texts.join("\n");
        let text =
            if text.is_empty() { "the server reports an error without a reason".to_owned() } else { text };
        return Err(Fault::new(Code::ToolFailed, text));
    }
    Ok(parts.content())
}

/// The contents of a resource.
pub(crate) fn resource(result: ReadResourceResult) -> Content {
    let mut parts = ResultParts::default();
    result.contents.into_iter().for_each(|contents| parts.resource(contents));
    parts.content()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(value: Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn text_stays_text_and_files_become_attachments() {
        let text =
            result(json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }));
        assert_eq!(tool_result(text, false).unwrap().value(), &json!("a\nb"));
        let image = json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" });
        let both = result(json!({ "content": [{ "type": "text", "text": "see" }, image] }));
        let file = json!({ "name": "image-1.png", "media_type": "image/png", "base64": "aGVsbG8=" });
        assert_eq!(
            tool_result(both, false).unwrap().value(),
            &json!({ "text": "see", "attachments": [file] })
        );
    }

    #[test]
    fn a_structured_result_is_used_where_a_schema_promises_it() {
        let value = || {
            result(json!({ "content": [{ "type": "text", "text": "{}" }], "structuredContent": { "n": 1 } }))
        };
        assert_eq!(tool_result(value(), true).unwrap().value(), &json!({ "n": 1 }));
        assert_eq!(tool_result(value(), false).unwrap().value(), &json!("{}"));
    }

    #[test]
    fn an_error_is_a_failure_with_its_text() {
        let failed =
            result(json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true }));
        let fault = tool_result(failed, false).unwrap_err();
        assert_eq!((fault.code, fault.message.as_str()), (Code::ToolFailed, "no such file"));
    }
}
