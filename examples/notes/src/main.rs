//! Notes, as a program in Rust: reads one request per line, writes one response per line. The notes are files in its data folder.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

/// The parameters of `hello`.
struct Notes {
    folder: PathBuf,
    /// The largest number of notes in an answer.
    most: usize,
}

/// Why a request failed.
struct Refusal(i32, String);

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self(1, error.to_string())
    }
}

fn main() -> io::Result<()> {
    let mut notes = None;
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        // A message without an id is a notification: no call here takes long enough to be cancelled.
        let Some(id) = message.get("id") else { continue };
        let answer = match answer(&mut notes, message["method"].as_str(), &message["params"]) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(Refusal(code, why)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } })
            }
        };
        let mut output = io::stdout().lock();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn answer(notes: &mut Option<Notes>, method: Option<&str>, params: &Value) -> Result<Value, Refusal> {
    match (method, notes) {
        (Some("hello"), notes) => {
            let folder = PathBuf::from(params["data_dir"].as_str().unwrap_or("."));
            let most = params["config"]["most"].as_u64().unwrap_or(5) as usize;
            *notes = Some(Notes { folder, most });
            Ok(welcome())
        }
        (Some("tool"), Some(notes)) => {
            let arguments = &params["arguments"];
            match params["tool"].as_str() {
                Some("note_add") => notes.add(arguments["text"].as_str().unwrap_or_default()),
                _ => notes.find(arguments["words"].as_str().unwrap_or_default()),
            }
        }
        _ => Ok(Value::Null),
    }
}

/// The answer to `hello`.
fn welcome() -> Value {
    let takes = |name: &str, about: &str| {
        json!({
            "type": "object",
            "properties": { name: { "type": "string", "minLength": 1, "description": about } },
            "required": [name],
            "additionalProperties": false,
        })
    };
    json!({ "protocol": "0.1", "tools": [
        {
            "name": "note_add",
            "description": "Keeps a note.",
            "effects": "write",
            "input_schema": takes("text", "What to keep."),
        },
        {
            "name": "note_find",
            "description": "Finds notes that have all of these words, the newest first.",
            "effects": "read",
            "input_schema": takes("words", "Words, with spaces between."),
        },
    ] })
}

impl Notes {
    /// The files of the notes, the oldest first.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.folder)?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "note"));
        files.sort();
        Ok(files)
    }

    fn add(&self, text: &str) -> Result<Value, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal(-32602, "a note has some text".to_owned()));
        }
        let number = self.files()?.len() + 1;
        // Written to a temporary file and renamed, so that a note is never read half-written.
        let beside = self.folder.join("new");
        fs::write(&beside, text)?;
        fs::rename(beside, self.folder.join(format!("{number:08}.note")))?;
        Ok(json!({ "number": number }))
    }

    fn find(&self, words: &str) -> Result<Value, Refusal> {
        let words: Vec<String> = words.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let mut found = Vec::new();
        for file in self.files()?.into_iter().rev() {
            let text = fs::read_to_string(file)?;
            let lower = text.to_lowercase();
            if words.iter().all(|word| lower.contains(word)) {
                found.push(text);
            }
            if found.len() == self.most {
                break;
            }
        }
        Ok(json!(found))
    }
}
