//! The confinement of installers: a hostile program is run in place of one.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::Sinks;
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::{SandboxReport, report};
use serde_json::Value;
use tokio::time::Instant;

use super::installer::Installer;
use crate::python::environment::configured;
use crate::python::interpreter::Interpreter;

/// Tries what a hostile package would, and writes the outcomes into the environment.
const HOSTILE: &str = r#"
import json, os, socket, sys
secret, planted, port, report = sys.argv[1:]
def tried(attempt):
    try: return attempt()
    except OSError as error: return error.strerror
def connect():
    socket.create_connection(("127.0.0.1", int(port)), 5).close()
    return "connected"
json.dump({
    "read": tried(lambda: open(secret).read()),
    "write": tried(lambda: open(planted, "w").close() or "written"),
    "list": tried(lambda: os.listdir(os.path.dirname(secret))),
    "connect": tried(connect),
    "variables": sorted(os.environ),
    "home": os.environ["HOME"],
    "folder": os.getcwd(),
    "temporary": tried(lambda: open(os.path.join(os.environ["TMPDIR"], "x"), "w").close() or "written"),
}, open(report, "w"))
print("last words", file=sys.stderr)
"#;

struct Place {
    folder: tempfile::TempDir,
    python: Interpreter,
    id: ExtensionId,
    sinks: Sinks,
}

impl Place {
    async fn new() -> Self {
        let (folder, path) = (tempfile::tempdir().unwrap(), std::env::var_os("PATH"));
        let report = holdfast_sandbox::report();
        let python = Interpreter::find(path.as_deref(), &[], folder.path(), &report).unwrap().interpreter;
        Self { folder, python, id: ExtensionId::from("planted"), sinks: Sinks::default() }
    }

    fn installer(&self, name: &str, report: SandboxReport, timeout: Duration) -> Installer<'_> {
        let folder = self.folder.path().join(name);
        let deadline = Instant::now() + timeout;
        let configure = |home: &std::path::Path| configured(&folder, home, &self.python, &[]);
        Installer::prepare(&folder, configure, report, deadline, (&self.id, &self.sinks)).unwrap()
    }

    async fn python(&self, installer: &Installer<'_>, words: &[&str]) -> Result<(), Fault> {
        let python = self.python.executable.to_str().unwrap();
        let all = [[python, "-I", "-S", "-c"].as_slice(), words].concat();
        installer.run(&all).await
    }
}

#[tokio::test]
async fn an_installer_reads_and_writes_no_file_of_the_users_and_has_no_variable_of_another_program() {
    let place = Place::new().await;
    let secret = place.folder.path().join("secret.txt");
    fs::write(&secret, "hunter2").unwrap();
    let planted = place.folder.path().join("planted");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let without = SandboxReport { namespaces: false, ..report() };
    // With namespaces a file outside is not visible, without them it is closed.
    let (invisible, closed) = ("No such file or directory", "Permission denied");
    for (name, report, read) in [("with", report(), invisible), ("without", without, closed)] {
        let installer = place.installer(name, report, Duration::from_secs(60));
        let told = place.folder.path().join(name).join("told.json");
        let words =
            [HOSTILE, secret.to_str().unwrap(), planted.to_str().unwrap(), &port, told.to_str().unwrap()];
        place.python(&installer, &words).await.unwrap();
        let told: Value = serde_json::from_slice(&fs::read(told).unwrap()).unwrap();
        assert_eq!(told["read"], read, "{told}");
        assert_eq!(told["list"], "Permission denied", "{told}");
        assert_ne!(told["write"], "written", "{told}");
        assert!(!planted.exists());
        assert_eq!(told["connect"], "connected", "it reaches the index: {told}");
        assert_eq!(
            (told["folder"].as_str(), told["temporary"].as_str()),
            (Some("/"), Some("written")),
            "{told}"
        );
        let home = told["home"].as_str().unwrap();
        assert!(std::env::var_os("HOME").is_none_or(|own| own != home), "{told}");
        for variable in told["variables"].as_array().unwrap() {
            let name = variable.as_str().unwrap();
            let known = ["PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "PWD"].contains(&name)
                || ["PIP_", "UV_", "SSL_", "XDG_CONFIG_DIRS"].iter().any(|known| name.starts_with(known))
                || name.to_lowercase().ends_with("_proxy")
                || name.ends_with("_CA_BUNDLE");
            assert!(known, "{name} is passed on");
        }
    }
}

#[tokio::test]
async fn an_installer_is_stopped_at_its_deadline() {
    let place = Place::new().await;
    let installer = place.installer("late", report(), Duration::from_secs(2));
    let stuck = "import subprocess; subprocess.run(['/bin/sleep', '600'])";
    let fault = place.python(&installer, &[stuck]).await.unwrap_err();
    assert_eq!(fault.code, Code::PackagesFailed);
    assert!(fault.message.contains("timed out"), "{}", fault.message);
}

#[tokio::test]
async fn the_last_lines_of_a_failed_installer_are_in_the_error() {
    let place = Place::new().await;
    let installer = place.installer("fails", report(), Duration::from_secs(60));
    let fails = "import sys; print('first'); print('the reason', file=sys.stderr); sys.exit(3)";
    let fault = place.python(&installer, &[fails]).await.unwrap_err();
    assert_eq!(fault.code, Code::PackagesFailed);
    assert!(fault.message.contains("the reason"), "{}", fault.message);
}

// Finding M7.
#[tokio::test]
async fn output_of_an_installer_is_read_in_pieces_and_need_not_be_text() {
    let place = Place::new().await;
    let installer = place.installer("long", report(), Duration::from_secs(60));
    let fails =
        r"import sys; sys.stdout.buffer.write(b'x' * (32 << 20) + b'\xff\nthe reason\n'); sys.exit(3)";
    let fault = place.python(&installer, &[fails]).await.unwrap_err();
    assert_eq!(fault.code, Code::PackagesFailed);
    assert!(fault.message.ends_with("the reason"), "{}", fault.message);
    assert!(fault.message.len() < 64 << 10, "{} bytes", fault.message.len());
}

#[tokio::test]
async fn no_installer_runs_without_confinement() {
    let place = Place::new().await;
    let bare = SandboxReport { confined: false, ..report() };
    let installer = place.installer("bare", bare, Duration::from_secs(60));
    let mark = place.folder.path().join("bare/mark");
    let script = format!("open({:?}, 'w')", mark.display().to_string());
    let fault = place.python(&installer, &[&script]).await.unwrap_err();
    assert_eq!(fault.code, Code::Unconfined);
    assert!(!mark.exists());
}
