//! A file of the user's as it is attached to what they say.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdfast_contract::message::Attachment;
use holdfast_contract::problem::{Code, Problem};

/// The largest file that is read. What may be attached in all is the owner's to say.
const LARGEST: u64 = 64 << 20;

/// How files begin that are told by that rather than by their names.
const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
];

/// Reads a file. What is UTF-8 is a text.
pub(crate) fn read(path: &Path) -> Result<Attachment, Problem> {
    let refused = |what: String| Problem::new(Code::AttachmentInvalid, format!("{}: {what}", path.display()));
    let about = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if !about.is_file() || about.len() > LARGEST {
        return Err(refused(format!("this is no file of at most {LARGEST} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (media_type, text, bytes) = match media_type(&bytes) {
        Some(known) => (known, None, Some(bytes)),
        None => match String::from_utf8(bytes) {
            Ok(text) => ("text/plain", Some(text), None),
            Err(error) => ("application/octet-stream", None, Some(error.into_bytes())),
        },
    };
    let base64 = bytes.map(|bytes| STANDARD.encode(bytes));
    Ok(Attachment { name, media_type: media_type.to_owned(), text, base64 })
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice());
    let known = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning));
    known.map(|(_, media_type)| *media_type).or(webp.then_some("image/webp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_how_they_begin() {
        let folder = tempfile::tempdir().unwrap();
        let attached = |bytes: &[u8]| {
            let path = folder.path().join("file.dat");
            std::fs::write(&path, bytes).unwrap();
            read(&path).unwrap()
        };
        let picture = attached(b"\x89PNG\r\n\x1a\n....");
        assert_eq!((picture.name.as_str(), picture.media_type.as_str()), ("file.dat", "image/png"));
        assert_eq!(picture.base64.as_deref(), Some("iVBORw0KGgouLi4u"));
        assert_eq!(attached(b"%PDF-1.7 and so on").media_type, "application/pdf");
        assert_eq!(attached(b"RIFF\x01\x00\x00\x00WEBPVP8 ").media_type, "image/webp");
        let text = attached("grüß dich".as_bytes());
        assert_eq!((text.text.as_deref(), text.media_type.as_str()), (Some("grüß dich"), "text/plain"));
        assert_eq!(attached(b"\xff\xfe\x00").media_type, "application/octet-stream");
        assert!(read(folder.path()).is_err() && read(Path::new("/nowhere")).is_err());
    }
}
