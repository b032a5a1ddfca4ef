//! The schedules of another program's scheduler, for the built-in one. They are taken over once, when it has none.

use std::path::Path;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::check_regular;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

use super::{Importer, Outcome};

impl Importer<'_> {
    /// Takes over the schedules of this database that are still to come.
    pub(super) fn schedules(&mut self, name: &str) -> Result<(), Problem> {
        let Some(database) = self.inside(name) else { return Ok(()) };
        let folder = self.plan.home.data(&ExtensionId::from("scheduler"));
        let file = folder.join("schedules.json");
        if file.exists() {
            self.line("schedule", "all", Outcome::Present, "the scheduler has schedules already");
            return Ok(());
        }
        let entries = match read(&database) {
            Ok(entries) => entries,
            Err(error) => {
                self.line("schedule", "all", Outcome::Left, format!("{name} cannot be read: {error}"));
                return Ok(());
            }
        };
        let mut kept = Map::new();
        for (place, entry) in entries.into_iter().enumerate() {
            let label = format!("s{}", place + 1);
            self.line("schedule", &label, Outcome::Imported, entry["action"].to_string());
            kept.insert(label, entry);
        }
        if self.dry || kept.is_empty() {
            return Ok(());
        }
        let failed = |error: &dyn std::fmt::Display| {
            Problem::in_file(
                Code::HomeUnavailable,
                &file,
                format!("{} cannot be written: {error}", file.display()),
            )
        };
        let text = json!({ "last": kept.len(), "entries": kept }).to_string();
        std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
        std::fs::write(&file, text).map_err(|error| failed(&error))
    }
}

/// The schedules of a database that are still to come, as the built-in scheduler keeps them.
fn read(database: &Path) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    // SQLite opens the files beside it by their path, too.
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut beside = database.as_os_str().to_owned();
        beside.push(suffix);
        check_regular(Path::new(&beside))?;
    }
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut entries = Vec::new();
    let once = "SELECT topic, payload, fire_at, NULL, NULL FROM one_shot_schedules WHERE status = 'scheduled' ORDER BY id";
    let again = "SELECT topic, payload, next_fire_at, cron_expr, every_sec FROM recurring_schedules WHERE status = 'active' ORDER BY id";
    for query in [once, again] {
        let mut query = connection.prepare(query)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (topic, payload, at): (String, String, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (cron, every): (Option<String>, Option<f64>) = (row.get(3)?, row.get(4)?);
            let when = cron.or_else(|| every.map(|seconds| format!("every {}s", seconds.max(1.0) as u64)));
            let mut entry = json!({ "action": action(topic, &payload), "next": (at * 1000.0) as u64 });
            if let Some(when) = when {
                entry["when"] = when.into();
            }
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// What a schedule does: tell the user, give the agent a task, or publish an event.
fn action(topic: String, payload: &str) -> Value {
    let payload: Value = serde_json::from_str(payload).unwrap_or_default();
    let word = |name: &str| payload[name].as_str().map(str::to_owned);
    match (topic.as_str(), word("text").or_else(|| word("prompt"))) {
        ("system.user.notify", Some(text)) => json!({ "text": text }),
        ("system.agent.task", Some(task)) => json!({ "task": task }),
        _ => json!({ "event": { "topic": topic, "payload": payload } }),
    }
}
