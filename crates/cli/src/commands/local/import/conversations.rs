//! The projects of another program, and the titles of its conversations. What was said in them is not taken over: messages have no place in
//! the log, which is verified.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use rusqlite::{Connection, Row};
use serde_json::{Map, Value, json};

use super::database::{has_column, open, rows};
use super::{Importer, Outcome};

/// What is taken over: objects by id, as `conversations.json` has them.
struct Kept {
    threads: Map<String, Value>,
    projects: Map<String, Value>,
}

impl Importer<'_> {
    /// Takes over the projects and the titles of this database, if the home has none.
    pub(super) fn conversations(&mut self, name: &str) -> Result<(), Problem> {
        let Some(database) = self.inside(name) else { return Ok(()) };
        let file = self.plan.home.root().join("conversations.json");
        if file.exists() {
            self.line("history", name, Outcome::Present, "the home has titles and projects already");
            return Ok(());
        }
        let Kept { threads, projects } = match read(&database) {
            Ok(kept) => kept,
            Err(error) => {
                self.line("history", name, Outcome::Left, format!("it cannot be read: {error}"));
                return Ok(());
            }
        };
        for (kind, kept) in [("projects", &projects), ("titles of threads", &threads)] {
            if !kept.is_empty() {
                self.line("history", kind, Outcome::Imported, format!("{}", kept.len()));
            }
        }
        let note = "what was said has no place in the log, which is verified; it stays where it is";
        self.line("history", "messages", Outcome::Left, note);
        if self.dry || (threads.is_empty() && projects.is_empty()) {
            return Ok(());
        }
        let text = json!({ "threads": threads, "projects": projects }).to_string();
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
            let what = format!("{} cannot be written: {error}", file.display());
            Problem::in_file(Code::HomeUnavailable, &file, what)
        })
    }
}

fn read(database: &Path) -> Result<Kept, Box<dyn Error>> {
    let connection = open(database)?;
    let mut kept = Kept { threads: Map::new(), projects: Map::new() };
    if has_column(&connection, "projects", "id")? {
        kept.projects.extend(rows(&connection, "SELECT * FROM projects ORDER BY id", project)?);
        for (field, table, column) in
            [("files", "project_files", "file_path"), ("links", "project_links", "url")]
        {
            listed(&connection, &mut kept.projects, field, table, column)?;
        }
    }
    if has_column(&connection, "threads", "thread_id")? {
        let named = rows(&connection, "SELECT * FROM threads ORDER BY thread_id", thread)?;
        let is_possible = |(id, _): &(String, Value)| StreamId::from(id.as_str()).check_session().is_ok();
        kept.threads.extend(named.into_iter().filter(is_possible));
        for thread in kept.threads.values_mut() {
            let known = thread["project_id"].as_str().is_some_and(|id| kept.projects.contains_key(id));
            if !known {
                thread["project_id"] = Value::Null;
            }
        }
    }
    Ok(kept)
}

/// A column's text; none if the table has no such column, as in an earlier version.
fn text(row: &Row<'_>, column: &str) -> Option<String> {
    row.get::<_, Option<String>>(column).ok().flatten()
}

fn number(row: &Row<'_>, column: &str) -> u64 {
    row.get::<_, Option<f64>>(column).ok().flatten().unwrap_or_default() as u64
}

fn project(row: &Row<'_>) -> rusqlite::Result<(String, Value)> {
    let id: String = row.get("id")?;
    let agent_config: Option<Value> =
        text(row, "agent_config").and_then(|text| serde_json::from_str(&text).ok());
    let mut project = json!({
        "id": id, "name": text(row, "name").unwrap_or_default(), "files": [], "links": [],
        "agent_config": agent_config.filter(Value::is_object).unwrap_or_else(|| json!({})),
        "created_at": number(row, "created_at"), "updated_at": number(row, "updated_at"),
    });
    for field in ["description", "icon", "instructions"] {
        project[field] = text(row, field).map_or(Value::Null, Value::String);
    }
    Ok((id, project))
}

/// Adds what a table lists for each project.
fn listed(
    connection: &Connection,
    projects: &mut Map<String, Value>,
    field: &str,
    table: &str,
    column: &str,
) -> rusqlite::Result<()> {
    if !has_column(connection, table, column)? {
        return Ok(());
    }
    let query = format!("SELECT project_id, {column} FROM {table} ORDER BY added_at, {column}");
    let found = rows(connection, &query, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    for (id, named) in found {
        if let Some(list) = projects.get_mut(&id).and_then(|project| project[field].as_array_mut()) {
            list.push(named.into());
        }
    }
    Ok(())
}

fn thread(row: &Row<'_>) -> rusqlite::Result<(String, Value)> {
    let archived: Option<i64> = row.get("is_archived").ok();
    let kept = json!({
        "title": text(row, "title"), "project_id": text(row, "project_id"), "is_archived": archived == Some(1),
        "channel": text(row, "channel_id").unwrap_or_else(|| "unknown".to_owned()),
        "created_at": number(row, "last_active_at"),
    });
    Ok((row.get("thread_id")?, kept))
}
