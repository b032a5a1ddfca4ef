//! The home that is put under load, the messages that it gets, and the results that its extensions wrote down.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::extensions::{CHANNELS, EDITED, FILES};
use crate::model_server::ModelServer;
use crate::shared::Scene;

/// What a message asks for, by its number.
const KINDS: [&str; 4] = ["book", "note", "look", "book-forbidden"];

/// How many users write on each channel.
const USERS: usize = 3;

/// A home under load.
pub struct Traffic {
    pub scene: Scene,
    /// How many messages were put into the folders of the channels.
    pub messages: usize,
    /// How often an extension was edited.
    pub edits: usize,
}

/// An answer that a channel sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The channel and its user.
    pub to: String,
    pub text: String,
    pub repeat: bool,
}

impl Traffic {
    pub fn new() -> Self {
        let (scene, model) = (Scene::new(), ModelServer::start());
        let url = format!("http://127.0.0.1:{}/v1", model.port);
        scene.settings(&format!(
            "models:\n  default: main\n  main: {{ provider: openai_compatible, model: m, base_url: '{url}' }}\n"
        ));
        scene.policy("profile: full-auto\n");
        for (path, text) in FILES {
            let path = scene.home().join("extensions").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for channel in CHANNELS {
            fs::create_dir_all(scene.home().join(format!("data/{channel}/inbox"))).unwrap();
        }
        Self { scene, messages: 0, edits: 0 }
    }

    fn data(&self, path: &str) -> PathBuf {
        self.scene.home().join("data").join(path)
    }

    /// The lines of a ledger. One that does not exist yet has none.
    fn lines(&self, path: &str) -> Vec<String> {
        let text = fs::read_to_string(self.data(path)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Puts the next message into the folder of its channel.
    pub fn post(&mut self) {
        let number = self.messages;
        self.messages += 1;
        let ((id, tool), to) = (message(number), sender(number));
        let (channel, user) = to.split_once('/').unwrap();
        let inbox = self.data(channel).join("inbox");
        let (draft, path) = (inbox.join(format!("{number:06}.tmp")), inbox.join(format!("{number:06}.msg")));
        fs::write(&draft, format!("{user} {id} {tool}")).unwrap();
        fs::rename(draft, path).unwrap();
    }

    /// Changes the code of the next one of the extensions that are edited.
    pub fn edit(&mut self) {
        let path = self.scene.home().join("extensions").join(EDITED[self.edits % EDITED.len()]);
        self.edits += 1;
        let code = fs::read_to_string(&path).unwrap();
        let code = code.split("# version").next().unwrap();
        fs::write(&path, format!("{code}# version {}\n", self.edits)).unwrap();
    }

    /// How many messages no channel has taken yet.
    pub fn waiting(&self) -> usize {
        let is_message = |path: &Path| path.extension().is_some_and(|end| end == "msg");
        let inboxes = CHANNELS.iter().map(|channel| fs::read_dir(self.data(channel).join("inbox")).unwrap());
        inboxes.flatten().flatten().filter(|file| is_message(&file.path())).count()
    }

    /// How many answers were sent.
    pub fn answers(&self) -> usize {
        let sent =
            CHANNELS.iter().map(|channel| fs::read(self.data(channel).join("sent")).unwrap_or_default());
        sent.map(|text| text.iter().filter(|byte| **byte == b'\n').count()).sum()
    }

    /// Every answer that was sent, in order for each channel.
    pub fn sent(&self) -> Vec<Sent> {
        let read = |channel: &str, line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            Some(Sent {
                to: format!("{channel}/{}", line["to"].as_str()?),
                text: line["text"].as_str()?.to_owned(),
                repeat: line["delivery"]["repeat"] == true,
            })
        };
        let of = |channel: &&str| {
            let lines = self.lines(&format!("{channel}/sent"));
            // The last line may be half written.
            lines.iter().filter_map(|line| read(channel, line)).collect::<Vec<_>>()
        };
        CHANNELS.iter().flat_map(of).collect()
    }

    /// How often the task of a schedule ran, as it counted itself.
    pub fn runs(&self, extension: &str, name: &str) -> usize {
        self.lines(&format!("{extension}/runs.{name}")).len()
    }

    /// The events that were published, and whose publication was acknowledged.
    pub fn published(&self) -> Vec<u64> {
        self.lines("notes/published").iter().filter_map(|number| number.parse().ok()).collect()
    }

    /// The events that the subscriber got, in order, and whether it may have had them before.
    pub fn delivered(&self) -> Vec<(u64, bool)> {
        let read = |line: &String| {
            let line: Value = serde_json::from_str(line).ok()?;
            Some((line["number"].as_u64()?, line["repeat"] == true))
        };
        self.lines("audit/events").iter().filter_map(read).collect()
    }

    /// How often each id had its effect.
    pub fn effects(&self) -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        for id in ["book/ledger", "notes/ledger"].iter().flat_map(|ledger| self.lines(ledger)) {
            *counted.entry(id).or_default() += 1;
        }
        counted
    }
}

/// A home in which something is wrong is kept where `HOLDFAST_KEEP` says, to be looked at: the scene is removed with the test.
impl Drop for Traffic {
    fn drop(&mut self) {
        if let (true, Ok(folder)) = (std::thread::panicking(), std::env::var("HOLDFAST_KEEP")) {
            let copied = Command::new("cp").arg("-a").arg(self.scene.root()).arg(&folder).status();
            println!("kept in {folder}: {copied:?}");
        }
    }
}

/// Who sends a message, as channel and user.
pub fn sender(number: usize) -> String {
    format!("{}/user{}", CHANNELS[number % CHANNELS.len()], number / CHANNELS.len() % USERS)
}

/// The id of a message and the tool that it asks for.
pub fn message(number: usize) -> (String, &'static str) {
    match KINDS[number % KINDS.len()] {
        "book-forbidden" => (format!("m{number:06}-forbidden"), "book"),
        tool => (format!("m{number:06}"), tool),
    }
}
