//! `holdfast import`: a project of another program, once and again.

use std::fs;

use serde_json::{Value, json};

use super::{call, scene};
use crate::shared::Scene;

/// A project of another program, in its shape: extensions, data, settings, variables, schedules.
fn foreign_project(scene: &Scene) -> std::path::PathBuf {
    let root = scene.root().join("project");
    let put = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        "pyproject.toml",
        "[project]\nname = \"x\"\ndependencies = [\n    \"httpx>=0.27\",\n    \"pyyaml>=6\",\n    \"finder-python>=1; python_version < '3'\",\n    \"jinja2>=3; python_version < '3'\",\n    \"sqlite-vec; python_version < '3'\",\n]\n",
    );
    let manifest = |id: &str| format!("id: {id}\nname: {id}\nentrypoint: main:It\n");
    put("sandbox/extensions/notes/manifest.yaml", &manifest("notes"));
    put("sandbox/extensions/notes/main.py", "import json\n\nclass It:\n    def get_tools(self): return []\n");
    put("sandbox/extensions/fetches/manifest.yaml", &manifest("fetches"));
    put("sandbox/extensions/fetches/main.py", "import httpx\n\nclass It: ...\n");
    put("sandbox/extensions/recalls/manifest.yaml", &format!("{}enabled: false\n", manifest("recalls")));
    put(
        "sandbox/extensions/recalls/main.py",
        "class It:\n    def get_tools(self):\n        import sqlite_vec\n",
    );
    put("sandbox/prompts/default.jinja2", "You are a guide.\n");
    put("sandbox/extensions/fetches/inside/more.py", "from finder import Finder\n");
    put("sandbox/extensions/fetches/prompt.jinja2", "Fetch {{ what }}.\n");
    put("sandbox/extensions/kv/manifest.yaml", &manifest("kv"));
    put("sandbox/extensions/tracing/__init__.py", "");
    put("sandbox/data/notes/kept.txt", "a note");
    put("sandbox/data/kv/values.json", r#"{"u.name": "Ada"}"#);
    put(
        "config/settings.yaml",
        "extensions: { notes: { colour: red }, fetches: { enabled: false } }
agents:
  default: { provider: openai, model: m, instructions: sandbox/prompts/default.jinja2 }
  scribe: { provider: here, model: 'small:1', instructions: Write well. }
providers: { openai: {}, here: { base_url: 'http://127.0.0.1:1234/v1' } }
logging: { level: INFO }
",
    );
    put("config/policy.yaml", "profile: full-auto\n");
    put(".env", "# keys\nOTHER_KEY=\"canary-3391-import\"\n");
    let outside = scene.outside().join("secret.txt");
    fs::write(&outside, "canary-outside").unwrap();
    std::os::unix::fs::symlink(&outside, root.join("sandbox/data/notes/link.txt")).unwrap();
    std::os::unix::fs::symlink(scene.outside(), root.join("sandbox/extensions/linked")).unwrap();
    let database = rusqlite::Connection::open(root.join("sandbox/data/schedules.db")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE one_shot_schedules (id INTEGER PRIMARY KEY, topic TEXT, payload TEXT, fire_at REAL, status TEXT);
             CREATE TABLE recurring_schedules (id INTEGER PRIMARY KEY, topic TEXT, payload TEXT, cron_expr TEXT, every_sec REAL, until_at REAL, next_fire_at REAL, status TEXT);
             INSERT INTO one_shot_schedules VALUES (1, 'system.user.notify', '{\"text\": \"tea\"}', 4000000000, 'scheduled');
             INSERT INTO one_shot_schedules VALUES (2, 'system.user.notify', '{\"text\": \"gone\"}', 1, 'fired');
             INSERT INTO one_shot_schedules VALUES (3, 'system.user.notify', '{\"text\": \"bread\", \"channel_id\": \"telegram_channel\"}', 4000000000, 'scheduled');
             INSERT INTO recurring_schedules VALUES (1, 'system.agent.task', '{\"prompt\": \"news\"}', '0 9 * * *', NULL, NULL, 4000000000, 'active');
             INSERT INTO recurring_schedules VALUES (2, 'system.agent.task', '{\"prompt\": \"course\"}', NULL, 90, 4100000000, 4000000000, 'active');",
        )
        .unwrap();
    drop(database);
    fs::create_dir_all(root.join("sandbox/data/scheduler")).unwrap();
    fs::rename(root.join("sandbox/data/schedules.db"), root.join("sandbox/data/scheduler/scheduler.db"))
        .unwrap();
    fs::create_dir_all(root.join("sandbox/data/memory")).unwrap();
    let database = rusqlite::Connection::open(root.join("sandbox/data/memory/thread.db")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE projects (id TEXT PRIMARY KEY, name TEXT, instructions TEXT, agent_config TEXT, created_at INTEGER, updated_at INTEGER);
             CREATE TABLE project_links (project_id TEXT, url TEXT, added_at INTEGER);
             CREATE TABLE threads (thread_id TEXT PRIMARY KEY, project_id TEXT, title TEXT, channel_id TEXT, last_active_at INTEGER, is_archived INTEGER);
             INSERT INTO projects VALUES ('p1', 'Garden', 'Know the plants.', '{}', 5, 6);
             INSERT INTO project_links VALUES ('p1', 'https://example.com/plants', 5);
             INSERT INTO threads VALUES ('t1', 'p1', 'Roses', 'web_channel', 7, 0);
             INSERT INTO threads VALUES ('t2', 'gone', 'Weeds', 'web_channel', 8, 1);",
        )
        .unwrap();
    root
}

#[test]
fn a_project_of_another_program_is_imported_once() {
    let scene = scene();
    let policy = scene.policy_text();
    let project = foreign_project(&scene);
    let before = crate::shared::tree(&project);
    let path = project.to_str().unwrap();
    let home = crate::shared::tree(&scene.home());
    let would = scene.run(&["import", "yodoca", path, "--dry-run"]).ok();
    assert!(
        would.out.contains("would be imported") && !scene.home().join("extensions/notes").exists(),
        "{would:#?}"
    );
    assert_eq!(crate::shared::tree(&scene.home()), home, "nothing is written");
    let done = scene.run(&["import", "yodoca", path]).ok();
    for line in ["OTHER_KEY", "extensions.notes.colour", "it has no manifest", "replace: true", "httpx>=0.27"]
    {
        assert!(done.out.contains(line), "{line}: {}", done.out);
    }
    for line in [
        "models: { default: main, main: { provider: openai, model: m } }",
        "models: { scribe: { provider: openai_compatible, model: \"small:1\", base_url: \"http://127.0.0.1:1234/v1\" } }",
        "agents: { main: { instructions: … } }",
        "agents.scribe.instructions",
        "providers.here",
        "sandbox/prompts/default.jinja2",
        "logging",
        "it ends at a set time",
        "what was said has no place in the log",
    ] {
        assert!(done.out.contains(line), "{line}: {}", done.out);
    }
    assert!(!done.out.contains("canary"), "{}", done.out);
    let home = scene.home();
    assert_eq!(fs::read_to_string(home.join("data/notes/kept.txt")).unwrap(), "a note");
    assert_eq!(
        fs::read_to_string(home.join("extensions/fetches/requirements.txt")).unwrap(),
        "httpx>=0.27\nfinder-python>=1; python_version < '3'\njinja2>=3; python_version < '3'\n"
    );
    assert!(!home.join("data/notes/link.txt").exists() && !home.join("extensions/linked").exists());
    assert!(!home.join("extensions/kv").exists());
    assert_eq!(scene.policy_text(), policy, "no policy is imported");
    assert!(call(&scene, "kv_get", &json!({ "key": "u.*" })).contains("Ada"));
    let schedules = call(&scene, "list_schedules", &json!({}));
    assert!(
        schedules.contains("tea") && schedules.contains("news") && !schedules.contains("gone"),
        "{schedules}"
    );
    assert!(schedules.contains("telegram_channel") && !schedules.contains("course"), "{schedules}");
    let sqlite = fs::read_to_string(home.join("extensions/recalls/requirements.txt")).unwrap();
    assert!(sqlite.contains("pysqlite3-binary; sys_platform == 'linux'"), "{sqlite}");
    let kept: Value = serde_json::from_slice(&fs::read(home.join("conversations.json")).unwrap()).unwrap();
    assert_eq!(kept["projects"]["p1"]["links"], json!(["https://example.com/plants"]));
    assert_eq!(
        kept["threads"]["t1"],
        json!({
            "title": "Roses", "project_id": "p1", "is_archived": false, "channel": "web_channel",
            "created_at": 7,
        })
    );
    assert_eq!(kept["threads"]["t2"]["project_id"], Value::Null, "there is no such project");
    assert!(scene.run(&["secret", "list"]).ok().out.contains("OTHER_KEY"));

    let kept = crate::shared::tree(&home.join("extensions"));
    let again = scene.run(&["import", "yodoca", path, "--json"]).ok();
    let imported = again.lines().into_iter().filter(|line| line["outcome"] == "imported").collect::<Vec<_>>();
    assert_eq!(imported, Vec::<Value>::new(), "a second import changes nothing");
    assert_eq!(crate::shared::tree(&home.join("extensions")), kept);
    assert_eq!(crate::shared::tree(&project), before, "the project is as it was");
    scene.run(&["import", "pith", path]).fails(2, "HF-9001");
}
