//! Programs without a layer of confinement, and their access to the files of dependencies.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::manifest::{Access, FileGrant, Grants};
use holdfast_contract::problem::Code;
use holdfast_sandbox::SandboxReport;
use serde_json::json;
use support::{Yard, go};

/// Reports what it can access.
const CURIOUS: &str = r#"
import socket
greet()
def tried(attempt):
    try: return attempt() or "done"
    except OSError as error: return error.strerror
while True:
    message = receive()
    if "id" not in message: continue
    send(id=message["id"], result={
        "pid": os.getpid(), "proxy": os.environ.get("http_proxy"), "depends_on": os.environ.get("HOLDFAST_DEPENDS_ON"),
        "socket": tried(lambda: socket.socket().close()),
        "read": [tried(lambda: open(path).read()) for path in message["params"]["arguments"].get("read", [])],
        "write": [tried(lambda: open(path, "w").close()) for path in message["params"]["arguments"].get("write", [])]})
"#;

/// A machine with every layer but namespaces.
fn without_namespaces() -> SandboxReport {
    let notes = vec!["programs get no namespaces of their own".to_owned()];
    SandboxReport { confined: true, landlock: Some(7), seccomp: true, namespaces: false, notes }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_namespaces_programs_run_and_have_no_network() {
    let yard = Yard::with(|lane| lane.on(without_namespaces()));
    let it = yard.load("curious", CURIOUS).await.unwrap();
    let answer = go(&it, json!({ "read": ["/etc/shadow"] })).await.unwrap();
    assert!(answer["pid"].as_u64().unwrap() > 2 && answer["proxy"].is_null(), "{answer}");
    assert_eq!(
        (answer["socket"].as_str(), answer["read"][0].as_str()),
        (Some("Operation not permitted"), Some("Permission denied"))
    );
    drop(it);
    yard.empties().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_layer_is_refused_where_all_are_required() {
    let demands = Arc::new(AtomicBool::new(true));
    let asked = demands.clone();
    let yard = Yard::with(|lane| {
        lane.on(without_namespaces()).demanding(Arc::new(move || asked.load(Ordering::SeqCst)))
    });
    let fault = yard.load("curious", CURIOUS).await.err().unwrap();
    assert_eq!((fault.code, fault.code.as_str()), (Code::ConfinementPartial, "HF-3111"));
    assert_eq!(fault.message, "programs get no namespaces of their own");
    demands.store(false, Ordering::SeqCst);
    assert!(yard.load("curious", CURIOUS).await.is_ok(), "the policy has changed");
    let whole = Yard::with(|lane| lane.demanding(Arc::new(|| true)));
    assert!(whole.load("curious", CURIOUS).await.is_ok(), "nothing is missing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_landlock_or_seccomp_no_program_runs() {
    let notes = vec!["the kernel has no Landlock".to_owned()];
    let report = SandboxReport { confined: false, landlock: None, seccomp: true, namespaces: false, notes };
    let yard = Yard::with(|lane| lane.on(report));
    let fault = yard.load("curious", CURIOUS).await.err().unwrap();
    assert_eq!((fault.code, fault.message.as_str()), (Code::Unconfined, "the kernel has no Landlock"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_dependencies_are_readable() {
    let yard = Yard::new();
    let other = yard.load("other", CURIOUS).await.unwrap();
    let stranger = yard.load("stranger", &format!("{CURIOUS}# stranger")).await.unwrap();
    let it = yard.load_with("curious", CURIOUS, "depends_on: [other, missing]\n").await.unwrap();
    let folders = go(&it, json!({})).await.unwrap()["depends_on"].as_str().unwrap().to_owned();
    let folders: serde_json::Value = serde_json::from_str(&folders).unwrap();
    assert_eq!(folders.as_object().unwrap().len(), 1, "{folders}");
    let code = format!("{}/main.py", folders["other"].as_str().unwrap());
    let laid_out = std::fs::read_dir(yard.path().join("code/process")).unwrap().flatten();
    let is_strange = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path).is_ok_and(|text| text.ends_with("# stranger"))
    };
    let strange = laid_out.map(|it| it.path().join("main.py")).find(is_strange).unwrap();
    let asked = json!({ "read": [code, strange], "write": [code] });
    let answer = go(&it, asked.clone()).await.unwrap();
    assert!(answer["read"][0].as_str().unwrap().contains("greet"), "{answer}");
    assert_eq!(answer["read"][1], "No such file or directory", "other extensions' files are not visible");
    assert_eq!(answer["write"][0], "Read-only file system");
    // The folder stays as long as a dependent runs.
    drop((other, stranger));
    assert!(go(&it, asked).await.unwrap()["read"][0].as_str().unwrap().contains("greet"));
}

/// Each layer works on its own: a fork bomb is stopped by counting processes where there is no other limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_namespaces_processes_are_counted() {
    let yard = Yard::with(|lane| lane.on(without_namespaces()));
    let script = "
greet()
receive()
while True:
    try:
        if os.fork() == 0: time.sleep(600); os._exit(0)
    except OSError: pass
";
    let it = yard.load("bomb", script).await.unwrap();
    let fault = go(&it, json!({})).await.unwrap_err();
    assert_eq!(fault.message, "the process was killed: it had too many processes");
    drop(it);
    yard.empties().await;
}

// Finding M2: programs must read the system's folders, so no home may be in one of them.
#[tokio::test]
async fn no_program_is_started_for_a_home_that_programs_can_read() {
    for home in ["/usr/share", "/usr", "/lib"] {
        let refused = Yard::at_home(home).load("reader", "serve({})").await.map(drop).unwrap_err();
        assert_eq!(refused.code, Code::Unconfined, "{home}: {refused}");
        assert!(refused.message.contains("put the home elsewhere"), "{home}: {refused}");
    }
}

/// A granted file tree never has the home in it: the keys, the policy and the log would be readable, or writable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_granted_tree_that_overlaps_the_home_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (home, shared) = (place.path().join("home"), place.path().join("shared"));
    for folder in [home.join("config"), shared.clone()] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(home.join(".env"), "KEY=planted").unwrap();
    std::fs::write(shared.join("note.txt"), "a note").unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(".", &link).unwrap();
    let asked = json!({ "read": [home.join(".env"), link.join("home/.env")], "write": [home.join("log")] });
    let granted = |path: &std::path::Path, access| Grants {
        files: vec![FileGrant { path: path.display().to_string(), access }],
        ..Grants::default()
    };
    let trees =
        ["/".into(), place.path().to_owned(), link, home.clone(), home.join("config"), home.join(".env")];
    for report in [holdfast_sandbox::report(), without_namespaces()] {
        let yard = Yard::of_home(home.to_str().unwrap(), report);
        for (tree, access) in trees.iter().flat_map(|tree| [(tree, Access::Read), (tree, Access::Write)]) {
            let loaded = yard.load_granted("curious", CURIOUS, "", granted(tree, access)).await;
            let shown = tree.display();
            let fault = match loaded {
                Err(fault) => fault,
                Ok(it) => panic!("{shown}, {access:?}: {:?}", go(&it, asked.clone()).await),
            };
            assert_eq!((fault.code, fault.code.as_str()), (Code::PathRefused, "HF-3109"), "{shown}: {fault}");
            assert!(fault.message.contains("home folder"), "{shown}: {fault}");
        }
        let it = yard.load_granted("curious", CURIOUS, "", granted(&shared, Access::Write)).await.unwrap();
        let asked = json!({ "read": [shared.join("note.txt"), home.join(".env")] });
        let answer = go(&it, asked).await.unwrap();
        assert_eq!(answer["read"][0], "a note", "{answer}");
        assert!(!answer["read"][1].to_string().contains("planted"), "{answer}");
    }
}

/// What a granted path leads to is looked at again when the program is started again.
#[test]
fn a_granted_path_that_is_replaced_by_a_link_to_the_home_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (home, shared) = (place.path().join("home"), place.path().join("shared"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&shared).unwrap();
    let files = [FileGrant { path: shared.display().to_string(), access: Access::Read }];
    let granted = holdfast_program::GrantedPaths::new(&files, &home).unwrap();
    std::fs::remove_dir(&shared).unwrap();
    std::os::unix::fs::symlink("home", &shared).unwrap();
    assert_eq!(granted.check().unwrap_err().code, Code::PathRefused);
}
