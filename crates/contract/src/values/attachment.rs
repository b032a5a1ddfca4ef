//! Files that go with what is said and with what tools come to: as they come from outside, as they are recorded, and which of them are taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::content::Content;
use crate::hook::Artifact;
use crate::problem::{Code, Fault, Problem};

/// The most files of a message or of a result.
const MAX_ATTACHMENTS: usize = 16;
/// The most bytes that all of them have together.
const MAX_ATTACHMENT_BYTES: u64 = 20 << 20;
/// The field of a tool's result that its files are in.
const FIELD: &str = "attachments";

/// A file that goes with what is said, as it comes from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// A name a person reads.
    pub name: String,
    /// The media type: `image/png`.
    pub media_type: String,
    /// The text of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes of anything else, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl From<Attachment> for Artifact {
    fn from(file: Attachment) -> Self {
        let Attachment { name, media_type, text, base64 } = file;
        let content = match (text, base64) {
            (_, Some(bytes)) => Content::new(json!({ "base64": bytes })),
            (text, None) => Content::of(&text),
        };
        Self { name, media_type, content }
    }
}

impl From<&Artifact> for Attachment {
    fn from(file: &Artifact) -> Self {
        let base64 = file.base64().map(str::to_owned);
        let text = base64.is_none().then(|| file.content.to_text());
        Self { name: file.name.clone(), media_type: file.media_type.clone(), text, base64 }
    }
}

/// Refuses files that are too many, too large or in no known form.
pub fn check(files: &[Artifact]) -> Result<(), Problem> {
    let refused = |what: String| Err(Problem::new(Code::AttachmentInvalid, what));
    if files.len() > MAX_ATTACHMENTS {
        return refused(format!("{} files are attached, and {MAX_ATTACHMENTS} can be", files.len()));
    }
    let size: u64 = files.iter().map(Artifact::size).sum();
    if size > MAX_ATTACHMENT_BYTES {
        return refused(format!(
            "the attached files have {size} bytes together, and may have {MAX_ATTACHMENT_BYTES}"
        ));
    }
    for file in files {
        let name = &file.name;
        if name.is_empty() || !file.media_type.contains('/') {
            return refused(format!("`{name}` needs a name and a media type, such as `image/png`"));
        }
        let coded = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'=');
        let whole = |data: &str| data.len().is_multiple_of(4) && data.bytes().all(coded);
        match (file.text(), file.base64()) {
            (Some(_), _) => {}
            (None, Some(data)) if whole(data) => {}
            (None, Some(_)) => return refused(format!("the content of `{name}` is not valid base64")),
            (None, None) => {
                let what = format!("the content of `{name}` is neither a text nor an object with `base64`");
                return refused(what);
            }
        }
    }
    Ok(())
}

/// The file that a channel is to send, from the arguments of the call, and the recipient if one is named.
pub fn sent(arguments: &Content) -> Result<(Option<String>, Attachment), Fault> {
    let field = |name: &str| arguments.value().get(name).unwrap_or(&Value::Null);
    let odd = |error| Fault::new(Code::ToolArguments, format!("the file is invalid: {error}"));
    let file = Attachment::deserialize(field("file")).map_err(odd)?;
    Ok((field("user").as_str().map(str::to_owned), file))
}

/// The files that a tool's result carries, and what is left of it: in the place of the files it says what they are, or why they were
/// not taken. None where the result carries no files.
pub fn taken_out(result: &Content) -> Option<(Vec<Artifact>, Content)> {
    let fields = result.value().as_object()?;
    let attached = fields.get(FIELD)?.as_array().filter(|attached| !attached.is_empty())?;
    let files: Vec<Artifact> = attached.iter().map(file).collect::<Option<_>>()?;
    let checked = check(&files);
    let said: Vec<Value> = match &checked {
        Ok(()) => files.iter().map(|file| file.to_string().into()).collect(),
        Err(problem) => vec![format!("not taken: {}", problem.what).into()],
    };
    let mut left = fields.clone();
    left.insert(FIELD.to_owned(), said.into());
    Some((checked.map_or_else(|_| Vec::new(), |()| files), Content::new(left.into())))
}

/// One that is a file and nothing else: a list of what a mail has attached is for the model to read.
fn file(value: &Value) -> Option<Artifact> {
    let file = Attachment::deserialize(value).ok()?;
    (file.text.is_some() != file.base64.is_some()).then(|| file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, media_type: &str, content: Value) -> Artifact {
        Artifact { name: name.to_owned(), media_type: media_type.to_owned(), content: Content::new(content) }
    }

    #[test]
    fn what_cannot_be_attached_is_said_to_be_so() {
        let fine = file("a.png", "image/png", json!({ "base64": "aGVsbG8=" }));
        assert_eq!(fine.size(), 5);
        check(&[fine.clone(), file("a.txt", "text/plain", json!("hello"))]).unwrap();
        let large = file("a.bin", "application/zip", json!({ "base64": "AAAA".repeat(6 << 20) }));
        let cases = [
            (vec![fine.clone(); 17], "17 files are attached"),
            (vec![large.clone(), large], "bytes together"),
            (vec![file("", "image/png", json!({ "base64": "AAAA" }))], "needs a name"),
            (vec![file("a", "png", json!({ "base64": "AAAA" }))], "a media type"),
            (vec![file("a", "image/png", json!({ "base64": "not base64!" }))], "is not valid base64"),
            (vec![file("a", "image/png", json!({ "base64": "AAA" }))], "is not valid base64"),
            (vec![file("a", "image/png", json!({ "url": "http://x" }))], "neither a text nor"),
        ];
        for (files, expected) in cases {
            let problem = check(&files).unwrap_err();
            assert!(problem.code == Code::AttachmentInvalid && problem.what.contains(expected), "{problem}");
        }
    }

    #[test]
    fn files_are_taken_out_of_a_result_and_named_in_their_place() {
        let picture = json!({ "name": "a.png", "media_type": "image/png", "base64": "aGVsbG8=" });
        let result = Content::new(json!({ "points": 3, "attachments": [picture] }));
        let (files, left) = taken_out(&result).unwrap();
        assert_eq!(files, [file("a.png", "image/png", json!({ "base64": "aGVsbG8=" }))]);
        assert_eq!(left.value(), &json!({ "points": 3, "attachments": ["a.png (image/png, 5 bytes)"] }));
        assert_eq!(Artifact::from(Attachment::from(&files[0])), files[0]);
    }

    #[test]
    fn files_that_cannot_be_taken_are_left_out_and_the_reason_stands_there() {
        let broken = json!({ "name": "a.png", "media_type": "image/png", "base64": "not base64!" });
        let (files, left) = taken_out(&Content::new(json!({ "attachments": [broken] }))).unwrap();
        assert_eq!(files, []);
        assert_eq!(
            left.value(),
            &json!({ "attachments": ["not taken: the content of `a.png` is not valid base64"] })
        );
    }

    #[test]
    fn what_only_tells_of_files_stays_as_it_is() {
        for result in [
            json!("text"),
            json!({ "attachments": [] }),
            json!({ "attachments": "none" }),
            json!({ "attachments": [{ "name": "a.pdf", "media_type": "application/pdf", "size": 5 }] }),
            json!({ "attachments": [{ "name": "a.pdf", "media_type": "application/pdf" }] }),
        ] {
            assert_eq!(taken_out(&Content::new(result)), None);
        }
    }
}
