//! Files of the user's as they are attached to what they say, and files that tools have made as they are saved.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdfast_contract::attachment::Attachment;
use holdfast_contract::hook::Artifact;
use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::FileError;

use crate::chat::{is_hidden, one_line};

/// The largest file that is read. What may be attached in all is the owner's to say.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Files of one name that are saved beside each other.
const MAX_SAME_NAME: usize = 1000;

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
    let bytes = holdfast_untrusted_files::read(path, MAX_FILE_BYTES).map_err(|error| match error {
        FileError::Io(error) => refused(error.to_string()),
        _ => refused(format!("not a regular file of at most {MAX_FILE_BYTES} bytes")),
    })?;
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

/// What a tool has made, in a line.
pub(crate) fn made_by_tool(file: &Attachment) -> String {
    one_line(&format!("made {}", Artifact::from(file.clone())))
}

/// Saves a file under its own name, or under one like it where that is taken. Nothing is overwritten, and the name leads nowhere else.
pub(crate) fn save(folder: &Path, file: &Attachment) -> Result<PathBuf, Problem> {
    let failed = |what: String| Problem::new(Code::AttachmentInvalid, what);
    let bytes = match &file.base64 {
        Some(coded) => STANDARD.decode(coded).map_err(|error| failed(format!("`{}`: {error}", file.name)))?,
        None => file.text.clone().unwrap_or_default().into_bytes(),
    };
    let problem = |error: std::io::Error| failed(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(problem)?;
    let name = plain(&file.name);
    let (stem, end) =
        name.rsplit_once('.').map_or((name.as_str(), String::new()), |(a, b)| (a, format!(".{b}")));
    for count in 1..=MAX_SAME_NAME {
        let path = folder.join(if count == 1 { name.clone() } else { format!("{stem}-{count}{end}") });
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut made) => return made.write_all(&bytes).map(|()| path).map_err(problem),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(problem(error)),
        }
    }
    Err(failed(format!("{}: there are {MAX_SAME_NAME} files like `{name}` already", folder.display())))
}

/// A name that is one in a folder, and no hidden one.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default().trim_start_matches('.');
    let name: String = last.chars().filter(|letter| !is_hidden(*letter)).take(100).collect();
    if name.is_empty() { "file".to_owned() } else { name }
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

    #[test]
    fn what_is_saved_overwrites_nothing_and_stays_in_its_folder() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("in/here");
        let saved = |name: &str, text: &str| {
            let (name, media_type) = (name.to_owned(), "text/plain".to_owned());
            let file = Attachment { name, media_type, text: Some(text.to_owned()), base64: None };
            let path = save(&folder, &file).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(saved("a.txt", "one"), "a.txt");
        assert_eq!(saved("a.txt", "two"), "a-2.txt");
        assert_eq!(saved("../../a.txt", "three"), "a-3.txt");
        assert_eq!(saved("/etc/.profile", "four"), "profile");
        assert_eq!(saved("..", "five"), "file");
        assert_eq!(saved("", "six"), "file-2");
        assert_eq!(saved("inv\u{202e}gpj\u{200b}\u{e0100}.exe\u{1b}", "seven"), "invgpj.exe");
        assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "one");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}
