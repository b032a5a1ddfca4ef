//! Programs reach the network through their gateway alone: what is granted, what the user allows when asked, and nothing else. Every connection is
//! in the log before a byte goes out, and a replay needs neither the program nor the network.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_app::Application;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::session_frames::UiQuestion;
use holdfast_runtime::{SessionEvent, Surface};
use holdfast_tests::scene::{Scene, again, call, said};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const PROGRAM: &str = r#"
import json, os, sys, urllib.request, urllib.error
def answer(request):
    if request["method"] == "hello":
        return {"protocol": "0.1", "tools": [{"name": "fetch", "effects": "pure"}, {"name": "tunnel", "effects": "pure"}, {"name": "twice", "effects": "pure"}]}
    try:
        if request["params"]["tool"] == "fetch":
            data = b"a question" if os.path.exists("post") else None
            return urllib.request.urlopen(open("url").read(), data, 30).read().decode()
        if request["params"]["tool"] == "twice":
            import concurrent.futures
            with concurrent.futures.ThreadPoolExecutor() as pool:
                return list(pool.map(lambda _: urllib.request.urlopen(open("url").read()).status, range(4)))
        import http.client
        proxy = http.client.HTTPConnection("127.0.0.1", 3128, timeout=30)
        host, port = open("url").read().split("/")[2].split(":")
        proxy.set_tunnel(host, int(port))
        proxy.request("GET", "/through")
        return proxy.getresponse().read().decode()
    except urllib.error.HTTPError as error: return f"{error.code}: {error.read().decode()}"
    except OSError as error: return f"failed: {error}"
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}), flush=True)
"#;

/// A server on this machine that says what it was asked.
struct Server {
    port: u16,
    asked: Arc<AtomicUsize>,
}

/// Reads the head and the body of a request: closing a socket with unread bytes would reset the connection.
fn request(stream: &mut TcpStream) -> Vec<u8> {
    let (mut read, mut chunk) = (Vec::new(), [0; 4096]);
    while !is_whole(&read) {
        match stream.read(&mut chunk).unwrap_or(0) {
            0 => break,
            more => read.extend_from_slice(&chunk[..more]),
        }
    }
    read
}

fn is_whole(read: &[u8]) -> bool {
    let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
    let body =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    read.len() >= end + 4 + body
}

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, asked) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let counted = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let read = request(&mut stream);
                let text = String::from_utf8_lossy(&read).into_owned();
                let body = format!("heard {:?}", text.lines().next().unwrap_or_default());
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// The questions that were asked, each with its choices.
type Prompts = Arc<Mutex<Vec<(String, Vec<String>)>>>;

/// A user who answers every question in the same way, and remembers them.
struct User {
    questions: mpsc::UnboundedSender<(StreamId, Seq)>,
    prompts: Prompts,
    there: bool,
}

impl Surface for User {
    fn show(&self, session: &StreamId, event: SessionEvent) {
        if let SessionEvent::Question { request, question: UiQuestion::Select { prompt, options }, .. } =
            event
        {
            self.prompts.lock().unwrap().push((prompt, options));
            self.questions.send((session.clone(), request)).unwrap();
        }
    }

    fn attended(&self, _: &StreamId) -> bool {
        self.there
    }
}

fn install(scene: &Scene, grants: &str, url: &str) {
    let folder = scene.extension("weather");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.py"), PROGRAM).unwrap();
    fs::write(folder.join("url"), url).unwrap();
    let manifest = format!("id: weather\nname: Weather\ncommand: [python3, -S, main.py]\n{grants}");
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
}

fn policy(scene: &Scene, text: &str) {
    fs::write(scene.folder.path().join("home/config/policy.yaml"), text).unwrap();
}

async fn open(scene: &Scene, answer: Option<&'static str>) -> (Arc<Application>, Prompts) {
    let (questions, mut asked) = mpsc::unbounded_channel();
    let prompts = Prompts::default();
    let user = User { questions, prompts: prompts.clone(), there: answer.is_some() };
    let application = Arc::new(Application::open(&scene.plan(), Arc::new(user)).await.unwrap());
    let answering = Arc::downgrade(&application);
    tokio::spawn(async move {
        while let (Some((session, request)), Some(application)) = (asked.recv().await, answering.upgrade()) {
            let handle = application.runtime.resume(&session).unwrap();
            handle.answer(request, answer.map(Into::into)).await.unwrap();
        }
    });
    (application, prompts)
}

/// What a session recorded of asks to the host: the request and its outcome.
fn asks(application: &Application, session: &str) -> Vec<(String, Value, Value)> {
    application.runtime.store().flush().unwrap();
    let frames = application.runtime.store().frames(&session.into(), Seq(0)..).unwrap();
    let called = frames.into_iter().filter(|frame| frame.envelope.kind.as_str() == "host.called");
    let called = called.map(|frame| {
        let body = frame.body.unwrap();
        (body["ask"].as_str().unwrap().to_owned(), body["arguments"]["json"].clone(), body["outcome"].clone())
    });
    called.collect()
}

fn grant(server: &Server) -> String {
    format!("grants: {{ network: [\"127.0.0.1:{}\"] }}\n", server.port)
}

fn url(server: &Server) -> String {
    format!("http://127.0.0.1:{}/today", server.port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_user_allows_is_reached_and_recorded_and_replays_without_a_server() {
    let (scene, server) = (Scene::new(), Server::new());
    install(&scene, &grant(&server), &url(&server));
    let (application, prompts) = open(&scene, Some("once")).await;
    assert_eq!(said(&call(&application, "one", "fetch").await), "heard \"GET /today HTTP/1.1\"");
    let (prompt, options) = prompts.lock().unwrap()[0].clone();
    let place = format!("127.0.0.1:{}", server.port);
    assert!(prompt.contains(&format!("`weather` wants to reach {place}")), "{prompt}");
    assert_eq!(options, ["once", "always", "no"]);
    let recorded = asks(&application, "one");
    let target = json!({ "host": "127.0.0.1", "port": server.port });
    let outcome = json!({ "host": "127.0.0.1", "port": server.port, "address": place });
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert_eq!((recorded[0].0.as_str(), &recorded[0].1), ("network.connect", &target));
    assert_eq!(recorded[0].2["result"]["json"], json!({ "addresses": [place] }));
    assert_eq!((recorded[1].0.as_str(), &recorded[1].1), ("network.connected", &outcome));
    // For as long as it serves, the same is not asked twice, whichever way it goes.
    assert_eq!(said(&call(&application, "two", "tunnel").await), "heard \"GET /through HTTP/1.1\"");
    assert_eq!((prompts.lock().unwrap().len(), server.asked()), (1, 2));
    // Nothing runs and nobody listens in a replay.
    for session in ["one", "two"] {
        let verdict = again(&scene, &application, session);
        assert!(verdict.identical, "{session}: {verdict:?}");
    }
    assert_eq!(server.asked(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_come_together_are_one_question() {
    let (scene, server) = (Scene::new(), Server::new());
    install(&scene, &grant(&server), &url(&server));
    let (application, prompts) = open(&scene, Some("once")).await;
    assert_eq!(said(&call(&application, "one", "twice").await), "[200,200,200,200]");
    assert_eq!((prompts.lock().unwrap().len(), server.asked(), asks(&application, "one").len()), (1, 4, 8));
    assert!(again(&scene, &application, "one").identical);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_is_a_403_with_a_reason_and_stays_one() {
    let (scene, server) = (Scene::new(), Server::new());
    install(&scene, &grant(&server), &url(&server));
    let (application, prompts) = open(&scene, Some("no")).await;
    let expected = format!("holdfast ext grant weather --network 127.0.0.1:{}", server.port);
    for session in ["one", "two"] {
        let told = said(&call(&application, session, "fetch").await);
        assert!(
            told.starts_with("403: ") && told.contains("the user said no") && told.contains(&expected),
            "{told}"
        );
        let recorded = asks(&application, session);
        assert_eq!(recorded.len(), 1, "{recorded:?}");
        assert!(recorded[0].2.to_string().contains("HF-3103"), "{recorded:?}");
        assert!(again(&scene, &application, session).identical);
    }
    assert_eq!((prompts.lock().unwrap().len(), server.asked()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_is_written_down_as_a_grant() {
    let (scene, server) = (Scene::new(), Server::new());
    install(&scene, &grant(&server), &url(&server));
    let (application, prompts) = open(&scene, Some("always")).await;
    assert!(said(&call(&application, "one", "fetch").await).contains("heard"));
    let written = fs::read_to_string(scene.folder.path().join("home/config/policy.yaml")).unwrap();
    assert!(written.contains("weather") && written.contains(&server.port.to_string()), "{written}");
    application.runtime.stop("for a while").await.unwrap();
    drop(application);
    let (application, asked) = open(&scene, None).await;
    assert!(said(&call(&application, "two", "fetch").await).contains("heard"));
    assert_eq!((prompts.lock().unwrap().len(), asked.lock().unwrap().len(), server.asked()), (1, 0, 2));
}

/// Who is denied without a question: where nobody is there, under `safe`, and a host that only a pattern fits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_can_be_asked_it_is_denied() {
    let cases: [(&str, Option<&'static str>, &str, &str); 3] = [
        ("profile: full-auto\n", None, "", "nobody answered"),
        ("profile: safe\n", Some("once"), "", "under `safe` nobody is asked"),
        ("profile: full-auto\n", Some("once"), "*", "not an address of the public network"),
    ];
    for (text, answer, given, expected) in cases {
        let (scene, server) = (Scene::new(), Server::new());
        policy(&scene, text);
        let wanted =
            if given.is_empty() { grant(&server) } else { format!("grants: {{ network: [\"{given}\"] }}\n") };
        install(&scene, &wanted, &url(&server));
        if !given.is_empty() {
            let folder = scene.extension("weather");
            let plan = scene.plan();
            let found = holdfast_loader::candidate(
                &folder,
                &plan.home.policy(None).unwrap(),
                None,
                Default::default(),
            );
            let tied_to = holdfast_policy::Tie::Digest(found.unwrap().bundle.content());
            let give =
                holdfast_contract::manifest::Grants { network: vec![given.to_owned()], ..Default::default() };
            plan.home
                .remember_grant(&holdfast_policy::Grant { extension: "weather".into(), tied_to, give })
                .unwrap();
        }
        let (application, prompts) = open(&scene, answer).await;
        let told = said(&call(&application, "one", "fetch").await);
        assert!(told.starts_with("403: ") && told.contains(expected), "{told}");
        assert_eq!((prompts.lock().unwrap().len(), server.asked()), (0, 0), "{expected}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_manifest_does_not_ask_for_cannot_be_granted_for_good() {
    let (scene, server) = (Scene::new(), Server::new());
    install(&scene, "grants: { network: [elsewhere.example] }\n", &url(&server));
    fs::write(scene.extension("weather").join("post"), "").unwrap();
    let (application, prompts) = open(&scene, Some("once")).await;
    assert_eq!(said(&call(&application, "one", "fetch").await), "heard \"POST /today HTTP/1.1\"");
    assert_eq!(prompts.lock().unwrap()[0].1, ["once", "no"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_without_grants_can_be_granted_for_good() {
    let (scene, server) = (Scene::new(), Server::new());
    install(&scene, "", &url(&server));
    let (application, prompts) = open(&scene, Some("once")).await;
    assert!(said(&call(&application, "one", "fetch").await).contains("heard"));
    assert_eq!(prompts.lock().unwrap()[0].1, ["once", "always", "no"]);
}
