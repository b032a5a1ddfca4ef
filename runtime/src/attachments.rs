//! Which files can go with a message.

use holdfast_contract::hook::Artifact;
use holdfast_contract::message::Attachment;
use holdfast_contract::problem::{Code, Problem};

/// The most files of a message.
const MOST: usize = 16;

/// The most bytes that all of them have together.
const LARGEST: u64 = 20 << 20;

/// Files as they come from outside, as they are recorded.
pub(crate) fn taken(files: Vec<Attachment>) -> Vec<Artifact> {
    files.into_iter().map(Artifact::from).collect()
}

/// Refuses files that are too many, too large or in no known form.
pub(crate) fn check(attachments: &[Artifact]) -> Result<(), Problem> {
    let refused = |what: String| Err(Problem::new(Code::AttachmentInvalid, what));
    if attachments.len() > MOST {
        return refused(format!("{} files are attached, and {MOST} can be", attachments.len()));
    }
    let size: u64 = attachments.iter().map(Artifact::size).sum();
    if size > LARGEST {
        return refused(format!("the attached files have {size} bytes together, and may have {LARGEST}"));
    }
    for file in attachments {
        let name = &file.name;
        if name.is_empty() || !file.media_type.contains('/') {
            return refused(format!("`{name}` needs a name and a media type, such as `image/png`"));
        }
        let coded = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'=');
        let whole = |data: &str| data.len().is_multiple_of(4) && data.bytes().all(coded);
        match (file.text(), file.base64()) {
            (Some(_), _) => {}
            (None, Some(data)) if whole(data) => {}
            (None, Some(_)) => return refused(format!("the content of `{name}` is no base64")),
            (None, None) => {
                let what = format!("the content of `{name}` is neither a text nor an object with `base64`");
                return refused(what);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use holdfast_contract::content::Content;
    use serde_json::{Value, json};

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
            (vec![file("a", "image/png", json!({ "base64": "not base64!" }))], "is no base64"),
            (vec![file("a", "image/png", json!({ "base64": "AAA" }))], "is no base64"),
            (vec![file("a", "image/png", json!({ "url": "http://x" }))], "neither a text nor"),
        ];
        for (files, expected) in cases {
            let problem = check(&files).unwrap_err();
            assert!(problem.code == Code::AttachmentInvalid && problem.what.contains(expected), "{problem}");
        }
    }
}
