//! One extension in six forms, which fetches over HTTP with a secret that it never sees, reads a granted folder, writes to its own and
//! subscribes, and whose gate judges that: each leaves the same frames, and its session replays without network, files and programs. The
//! sources are in
//! `tests/conformance/courier/`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use holdfast_app::Application;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::manifest::{Access, FileGrant, Grants};
use holdfast_loader::candidate;
use holdfast_policy::{Grant, Tie};
use holdfast_runtime::secrets::{SecretName, SecretString};
use holdfast_runtime::{SessionEvent, Surface};
use holdfast_tests::scene::{Scene, again, said, serves};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const SECRET: &str = "correct-horse-battery-staple";

/// The forms, each with the lines of its manifest.
const FORMS: [(&str, &str); 6] = [
    ("rust", "entrypoint: courier.wasm"),
    ("javascript", "entrypoint: courier.wasm"),
    ("c", "entrypoint: courier.wasm"),
    ("python", "entrypoint: courier.wasm"),
    ("class", "entrypoint: main:Courier"),
    ("process", "command: [python3, main.py]"),
];

/// A server on this machine that keeps what it was asked and says it back, the secret included.
struct Server {
    port: u16,
    received: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(redirects_to: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, received) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let kept: Arc<Mutex<Vec<String>>> = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut read) = (stream.unwrap(), Vec::new());
                let mut chunk = [0; 4096];
                while !read.windows(4).any(|four| four == b"\r\n\r\n") {
                    match stream.read(&mut chunk).unwrap_or(0) {
                        0 => break,
                        more => read.extend_from_slice(&chunk[..more]),
                    }
                }
                let text = String::from_utf8_lossy(&read).into_owned();
                let sent = text.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
                let body = format!("heard {}", sent.unwrap_or("nothing"));
                kept.lock().unwrap().push(text.clone());
                let head = match &redirects_to {
                    Some(place) => format!("HTTP/1.1 307 Moved\r\nLocation: {place}"),
                    None => "HTTP/1.1 200 OK".to_owned(),
                };
                let length = body.len();
                let _ =
                    write!(stream, "{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            }
        });
        Self { port, received }
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/today", self.port)
    }
}

/// Copies a folder, without what was built in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if !path.is_dir() {
            fs::copy(&path, to.join(name)).unwrap();
        } else if name != "target" {
            copy(&path, &to.join(name));
        }
    }
}

/// Puts a form of the extension into a home, built where it is built.
fn install(scene: &Scene, form: &str, how: &str, asks: &Grants) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/courier");
    let folder = scene.extension("courier");
    copy(&sources.join(form), &folder);
    if form == "process" {
        fs::copy(sources.join("class/deed.py"), folder.join("deed.py")).unwrap();
    }
    fs::write(folder.join("manifest.yaml"), written(how, asks)).unwrap();
    if form == "rust" {
        point_to_the_sdk(&folder);
    }
    if how.ends_with(".wasm") {
        holdfast_authoring::build(&folder, &mut |_| {}).unwrap_or_else(|problem| {
            panic!("{problem}\n  the toolchains of the tests are installed by ./scripts/setup guests")
        });
    }
    folder
}

/// Lets a crate that was copied find the SDK.
pub fn point_to_the_sdk(folder: &Path) {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk").canonicalize().unwrap();
    let cargo = folder.join("Cargo.toml");
    let text = fs::read_to_string(&cargo).unwrap();
    fs::write(cargo, text.replace("../../../../sdk", sdk.to_str().unwrap())).unwrap();
}

fn written(how: &str, asks: &Grants) -> String {
    format!("id: courier\nname: Courier\nversion: 1.0.0\n{how}\ngrants: {}\n", json!(asks))
}

/// Gives an extension in a folder all that is named.
fn grant(scene: &Scene, folder: &Path, give: Grants) {
    let plan = scene.plan();
    let found = candidate(folder, &plan.home.policy(None).unwrap(), None, Default::default()).unwrap();
    let tied_to = Tie::Digest(found.bundle.content());
    plan.home.remember_grant(&Grant { extension: "courier".into(), tied_to, give }).unwrap();
}

fn grants(server: &Server, folder: &Path) -> Grants {
    Grants {
        network: vec![format!("127.0.0.1:{}", server.port)],
        files: vec![FileGrant { path: folder.to_str().unwrap().to_owned(), access: Access::Read }],
        secrets: vec!["TOKEN".to_owned()],
        interfaces: vec!["subscriptions".to_owned()],
        ..Grants::default()
    }
}

/// A home with a folder that can be granted.
fn prepared() -> (Scene, PathBuf) {
    let scene = Scene::new();
    let folder = scene.folder.path().join("shared");
    fs::create_dir_all(folder.join("inner")).unwrap();
    fs::write(folder.join("note.txt"), "remember the milk").unwrap();
    fs::write(scene.folder.path().join("outside.txt"), "not yours").unwrap();
    std::os::unix::fs::symlink("../outside.txt", folder.join("way-out")).unwrap();
    (scene, folder)
}

async fn open(scene: &Scene) -> Application {
    let application = scene.open().await;
    application
        .runtime
        .set_secret(SecretName::global("TOKEN").unwrap(), SecretString::from(SECRET.to_owned()))
        .await
        .unwrap();
    serves(&application, "courier", 1).await;
    application
}

async fn deliver(application: &Application, session: &str, url: &str, folder: &Path) -> String {
    let new = application.session(session.into(), "test", Some("direct".into())).unwrap();
    let text = format!("/deliver {}", json!({ "url": url, "folder": folder }));
    said(&application.runtime.open(new).unwrap().say("test", text.as_str()).await.unwrap())
}

/// The kinds and bodies of a session's frames, without the digests and times that are a home's own.
fn story(application: &Application, session: &str, scene: &Scene, server: &Server) -> Vec<(String, Value)> {
    application.runtime.store().flush().unwrap();
    let frames = application.runtime.store().frames(&session.into(), Seq(0)..).unwrap();
    let kept = [
        "host.called",
        "tool.called",
        "tool.returned",
        "tool.decided",
        "hook.called",
        "hook.agreed",
        "hook.decided",
    ];
    let kept = frames.into_iter().filter(|frame| kept.contains(&frame.envelope.kind.as_str()));
    let place = scene.folder.path().display().to_string();
    let port = format!("127.0.0.1:{}", server.port);
    kept.map(|frame| {
        let body = frame.body.unwrap().to_string().replace(&place, "PLACE").replace(&port, "SERVER");
        (frame.envelope.kind.as_str().to_owned(), without_digests(serde_json::from_str(&body).unwrap()))
    })
    .collect()
}

/// Digests are over the paths and ports of this home.
fn without_digests(value: Value) -> Value {
    match value {
        Value::String(text) if Digest::parse(&text).is_some() => "#".into(),
        Value::Array(items) => items.into_iter().map(without_digests).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, without_digests(value))).collect()
        }
        other => other,
    }
}

type Story = Vec<(String, Value)>;

/// Whether the courier's gate was asked, and what became of the call.
fn check_gate(form: &str, story: &Story, verdict: &Value) {
    let of_gate = |body: &Value| {
        let said = body.to_string();
        said.contains("tool_gate") && said.contains("\"courier/")
    };
    let asked = story.iter().any(|(kind, body)| kind.starts_with("hook.") && of_gate(body));
    assert!(asked, "{form}: the gate was not asked: {story:#?}");
    let decided = story.iter().find(|(kind, _)| kind == "tool.decided").map(|(_, body)| &body["verdict"]);
    assert_eq!(decided, Some(verdict), "{form}");
}

/// The gate denies what is not from the web, and that is recorded alike.
async fn denied(
    form: &str,
    application: &Application,
    scene: &Scene,
    server: &Server,
    folder: &Path,
) -> Story {
    let received = server.received().len();
    deliver(application, "denied", "ftp://127.0.0.1/today", folder).await;
    assert_eq!(server.received().len(), received, "{form}");
    let story = story(application, "denied", scene, server);
    let by_gate = json!({ "denied": { "by": "courier/0", "reason": "it delivers from the web only" } });
    check_gate(form, &story, &by_gate);
    assert!(story.iter().all(|(kind, _)| kind != "host.called"), "{form}: {story:#?}");
    assert!(again(scene, application, "denied").identical, "{form}");
    story
}

/// Every form of it does the same and leaves the same frames.
pub async fn compare() {
    let mut first: Option<(&str, Story)> = None;
    for (form, how) in FORMS {
        let (scene, folder) = prepared();
        let server = Server::new(None);
        let asks = grants(&server, &folder);
        let place = install(&scene, form, how, &asks);
        grant(&scene, &place, asks);
        let application = open(&scene).await;
        let answer = deliver(&application, "one", &server.url(), &folder).await;
        let expected =
            "200 heard authorization: Bearer [secret TOKEN] | remember the milk | inner note.txt way-out";
        assert_eq!(answer, expected, "{form}");
        let received = server.received();
        assert!(
            received.len() == 1 && received[0].contains(&format!("Bearer {SECRET}")),
            "{form}: {received:?}"
        );
        let data = scene.folder.path().join("home/data/courier/copy.txt");
        assert_eq!(fs::read_to_string(&data).unwrap(), "remember the milk", "{form}");
        let mut story = story(&application, "one", &scene, &server);
        check_gate(form, &story, &json!("allowed"));
        let all: String = story.iter().map(|(_, body)| body.to_string()).collect();
        assert!(!all.contains(SECRET), "{form}: a frame has the secret");
        let asked: Vec<&str> = story.iter().filter_map(|(_, body)| body["ask"].as_str()).collect();
        let calls =
            ["secret.reference", "http.request", "file.read", "file.write", "file.list", "event.subscribe"];
        assert_eq!(asked, calls, "{form}");
        // Without the server, the folder and what was written, the session is the same.
        fs::remove_file(folder.join("note.txt")).unwrap();
        fs::remove_file(&data).unwrap();
        let verdict = again(&scene, &application, "one");
        assert!(verdict.identical, "{form}: {verdict:#?}");
        let is_mocked = how.ends_with(".wasm") && !verdict.mocked.is_empty();
        assert!(!is_mocked, "{form}: a component runs again");
        assert!(server.received().len() == 1 && !data.exists(), "{form}: a replay does nothing");
        story.extend(denied(form, &application, &scene, &server, &folder).await);
        application.runtime.stop("the test is over").await.unwrap();
        match &first {
            None => first = Some((form, story)),
            Some((other, expected)) => {
                for (one, two) in story.iter().zip(expected) {
                    assert_eq!(one, two, "{form} against {other}");
                }
                assert_eq!(story.len(), expected.len(), "{form} against {other}");
            }
        }
    }
}

/// Allows once what it is asked about.
struct Allows {
    questions: mpsc::UnboundedSender<(StreamId, Seq)>,
}

impl Surface for Allows {
    fn show(&self, session: &StreamId, event: SessionEvent) {
        if let SessionEvent::Question { request, .. } = event {
            self.questions.send((session.clone(), request)).unwrap();
        }
    }

    fn attended(&self, _: &StreamId) -> bool {
        true
    }
}

/// A component that was not granted the secret: the user is asked, and a replay runs it again without asking.
pub async fn consent() {
    let (form, how) = FORMS[2];
    let (scene, folder) = prepared();
    let server = Server::new(None);
    let asks = grants(&server, &folder);
    let place = install(&scene, form, how, &asks);
    grant(&scene, &place, Grants { secrets: Vec::new(), ..asks });
    let (questions, mut asked) = mpsc::unbounded_channel();
    let application = Application::open(&scene.plan(), Arc::new(Allows { questions })).await.unwrap();
    let token = SecretName::global("TOKEN").unwrap();
    application.runtime.set_secret(token, SecretString::from(SECRET.to_owned())).await.unwrap();
    serves(&application, "courier", 1).await;
    let answering = application.runtime.clone();
    tokio::spawn(async move {
        while let Some((session, request)) = asked.recv().await {
            answering.resume(&session).unwrap().answer(request, Some("once".into())).await.unwrap();
        }
    });
    let answer = deliver(&application, "one", &server.url(), &folder).await;
    assert!(answer.starts_with("200 heard authorization: Bearer [secret TOKEN]"), "{answer}");
    let frames = application.runtime.store().frames(&"one".into(), Seq(0)..).unwrap();
    let of = |kind: &str| frames.iter().filter(|frame| frame.envelope.kind.as_str() == kind).count();
    assert_eq!(of("ui.requested"), 1);
    let verdict = again(&scene, &application, "one");
    assert!(verdict.identical && verdict.mocked.is_empty(), "{verdict:#?}");
    application.runtime.stop("the test is over").await.unwrap();
}

/// What the grants do not cover is refused, in a component and in a class alike.
pub async fn refusals() {
    for (form, how) in [FORMS[2], FORMS[4]] {
        let (scene, folder) = prepared();
        let elsewhere = Server::new(None);
        let server = Server::new(Some(elsewhere.url()));
        let asks = grants(&server, &folder);
        let place = install(&scene, form, how, &asks);
        grant(&scene, &place, asks);
        let application = open(&scene).await;
        // A redirect to a host that is not granted is not followed, and the secret does not go there.
        let answer = deliver(&application, "redirect", &server.url(), &folder).await;
        assert!(answer.starts_with("307 ") && elsewhere.received().is_empty(), "{form}: {answer}");
        // A host that is not granted: nobody is there to be asked.
        let answer = deliver(&application, "host", &elsewhere.url(), &folder).await;
        assert!(answer.contains("nobody answered") && elsewhere.received().is_empty(), "{form}: {answer}");
        // A folder that is not granted, a link that leads out of one that is, and the home.
        let outside = scene.folder.path();
        for (session, path, why) in [
            ("outside", outside.to_owned(), "is not granted"),
            ("home", outside.join("home/config"), "is not granted"),
            ("missing", folder.join("inner"), "there is no such file"),
        ] {
            let answer = deliver(&application, session, &server.url(), &path).await;
            assert!(answer.contains(why), "{form} {session}: {answer}");
        }
        fs::remove_file(folder.join("note.txt")).unwrap();
        std::os::unix::fs::symlink("../outside.txt", folder.join("note.txt")).unwrap();
        let answer = deliver(&application, "link", &server.url(), &folder).await;
        assert!(answer.contains("leads out") && !answer.contains("not yours"), "{form}: {answer}");
        for session in ["redirect", "host", "outside", "home", "missing", "link"] {
            assert!(again(&scene, &application, session).identical, "{form} {session}");
        }
        application.runtime.stop("the test is over").await.unwrap();
    }
}
