//! Ordinary commands and their results. Escape attempts are in `tests/tests/extensions/escapes.rs`.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::manifest::{LaneKind, lane, parse};
use holdfast_contract::message::TurnContext;
use holdfast_contract::problem::{Code, Fault};
use holdfast_lane_native::{Tool, Workspace};
use holdfast_sandbox::Switch;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::ShellOptions;
use crate::linux::output::CapturedOutput;
use crate::linux::settings::WorkspaceSettings;
use crate::linux::tool::{Shell, run};

/// After this a test gives up. It only has to be longer than the slowest machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A command that ends only when it is killed, with a process in the background; both have the FIFO `alive` open.
const ENDLESS: &str = "exec 9>alive; (while :; do sleep 60; done) & sleep 600";

struct Fixture {
    scratch: tempfile::TempDir,
    shell: Shell,
}

impl Fixture {
    fn new() -> Self {
        Self::with(ShellOptions::default())
    }

    fn with(options: ShellOptions) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for folder in ["work/inner", "home"] {
            fs::create_dir_all(scratch.path().join(folder)).unwrap();
        }
        let workspace = Workspace::new(scratch.path().join("work"), scratch.path().join("home")).unwrap();
        Self { shell: Shell::new(workspace.into(), options).unwrap(), scratch }
    }

    fn call(&self, arguments: Value) -> Result<Value, Fault> {
        run(&self.shell.0, &TurnContext::default(), Content::new(arguments), &Switch::default())
            .map(|content| content.value().clone())
    }

    fn run(&self, command: &str) -> Value {
        self.call(json!({ "command": command, "timeout_ms": 120_000 })).unwrap()
    }

    /// A FIFO `alive` in the workspace: the first signal comes when a command opens it, the second when no process has it open any more.
    fn alive(&self) -> (oneshot::Receiver<()>, mpsc::Receiver<()>) {
        let fifo = self.scratch.path().join("work/alive");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let ((opened, is_open), (ended, has_ended)) = (oneshot::channel(), mpsc::channel());
        std::thread::spawn(move || {
            let mut fifo = fs::File::open(fifo).unwrap();
            let _ = opened.send(());
            fifo.read_to_end(&mut Vec::new()).unwrap();
            let _ = ended.send(());
        });
        (is_open, has_ended)
    }
}

#[test]
fn the_manifest_is_valid_and_matches_the_code() {
    let parsed = parse(Path::new("manifest.yaml"), include_str!("../manifest.yaml")).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    assert_eq!(lane(&parsed.manifest, &[]).unwrap(), LaneKind::Native);
    let spec = Fixture::new().shell.spec();
    let hint = &parsed.manifest.tools[&spec.name];
    assert_eq!((hint.effects, hint.timeout_ms), (Some(spec.effects), Some(spec.timeout)));
    let options: ShellOptions = serde_json::from_value(Value::Object(parsed.manifest.config)).unwrap();
    assert_eq!(options, ShellOptions::default());
}

#[test]
fn a_command_returns_its_output_and_status() {
    let fixture = Fixture::new();
    let answer = fixture.run("echo out; echo err >&2; exit 3");
    assert_eq!(
        answer,
        json!({ "exit_code": 3, "signal": null, "timed_out": false, "stdout": "out\n", "stderr": "err\n", "truncated": false })
    );
    assert_eq!(fixture.run("kill -15 $$")["signal"], 15);
    assert_eq!(fixture.run("cat; echo end")["stdout"], "end\n", "there is nothing to read");
    assert_eq!(fixture.run("-x; true")["exit_code"], 0, "an odd name is a name, not an option");
    assert!(fixture.call(json!({ "command": "a\0b" })).is_err());
}

#[test]
fn ordinary_commands_work() {
    let fixture = Fixture::new();
    for (command, expected) in [
        ("echo hello > a.txt && cat a.txt", "hello\n"),
        ("printf 'b\\na\\n' | sort | tr -d '\\n'", "ab"),
        ("mkdir -p x/y && mv a.txt x/y/ && ls x/y", "a.txt\n"),
        ("ln -s x/y/a.txt link && cat link", "hello\n"),
        ("printf '#!/bin/sh\\necho ran' > run.sh && chmod +x run.sh && ./run.sh", "ran\n"),
        ("echo tmp > $TMPDIR/t && cat $TMPDIR/t", "tmp\n"),
        ("sleep 30 & kill $! && wait $!; echo $?", "143\n"),
        ("touch -d 2001-01-01 x && date -r x +%Y", "2001\n"),
        ("head -c 3 /dev/zero | wc -c", "3\n"),
        ("echo gone > /dev/null; test \"$(pwd)\" = \"$HOME\" && echo home", "home\n"),
        (
            "env | cut -d= -f1 | sort | grep -vE '^(_|PWD|OLDPWD|SHLVL)$' | tr '\\n' ' '",
            "HOME LANG PATH TERM TMPDIR ",
        ),
    ] {
        let answer = fixture.run(command);
        assert_eq!(
            (answer["stdout"].as_str(), answer["exit_code"].as_i64()),
            (Some(expected), Some(0)),
            "{command}: {answer}"
        );
    }
    let inner = fixture.call(json!({ "command": "pwd", "cwd": "inner" })).unwrap();
    assert!(inner["stdout"].as_str().unwrap().ends_with("/work/inner\n"), "{inner}");
    for cwd in ["..", "/", "inner/../..", "none", ""] {
        let answer = fixture.call(json!({ "command": "pwd", "cwd": cwd }));
        assert!(cwd.is_empty() || answer.is_err_and(|fault| fault.code == Code::PathRefused), "{cwd}");
    }
}

#[test]
fn a_timeout_kills_the_command_and_all_it_started() {
    let fixture = Fixture::new();
    let (_, ended) = fixture.alive();
    let answer = fixture.call(json!({ "command": ENDLESS, "timeout_ms": 2_000 })).unwrap();
    assert_eq!((answer["timed_out"].clone(), answer["signal"].clone()), (json!(true), json!(9)));
    assert!(answer["note"].as_str().unwrap().contains("2000 ms"), "{answer}");
    ended.recv_timeout(TIMEOUT).expect("all that it started has ended");
}

#[test]
fn limits_are_enforced() {
    let fixture = Fixture::with(ShellOptions {
        tasks: 40,
        file_bytes: 10_000,
        output_bytes: 1000,
        ..ShellOptions::default()
    });
    let many = fixture.run("i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; wait");
    // The kernel refuses them, or they are counted.
    let refused = many["stderr"].as_str().unwrap().contains("fork");
    let counted = many["note"].as_str().unwrap_or_default().contains("more than 40 processes");
    assert!(refused || counted, "{many}");
    let large = fixture.run("head -c 20000 /dev/zero > large; echo $?");
    assert!(fs::metadata(fixture.scratch.path().join("work/large")).unwrap().len() <= 10_000, "{large}");
    let loud = fixture.run("seq 1 100000");
    assert_eq!(loud["truncated"], true);
    let text = loud["stdout"].as_str().unwrap();
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("99999\n100000\n") && text.contains("bytes left out")
    );
    assert!(text.len() < 1100);
    assert_eq!(fixture.run("ulimit -c")["stdout"], "0\n");
}

#[test]
fn truncated_output_keeps_its_beginning_and_end() {
    for (length, limit) in [(0, 10), (9, 10), (10, 10), (11, 10), (1_000_000, 10), (300_000, 200_000)] {
        let bytes: Vec<u8> = (0..length).map(|index| b'a' + (index % 26) as u8).collect();
        let kept = CapturedOutput::of(bytes.as_slice(), limit);
        assert_eq!(kept.truncated(), length > limit);
        let text = kept.into_text();
        let (head, tail) = (limit / 2, limit - limit / 2);
        if length > limit {
            assert_eq!(&text.as_bytes()[..head], &bytes[..head]);
            assert_eq!(&text.as_bytes()[text.len() - tail..], &bytes[length - tail..]);
            assert!(text.contains(&format!("{} bytes left out", length - limit)));
        } else {
            assert_eq!(text.as_bytes(), bytes)
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_kills_its_command() {
    struct Nobody;
    impl holdfast_contract::wire::Host for Nobody {
        fn call_within(
            &self,
            _: holdfast_contract::host_call::HostCall,
            _: Option<holdfast_contract::ids::Millis>,
        ) -> holdfast_contract::wire::Later<Result<Content, Fault>> {
            holdfast_lane_native::now(Err(Fault::new(Code::Internal, "nobody")))
        }
    }
    let fixture = Fixture::new();
    let (opened, ended) = fixture.alive();
    let command = json!({ "command": ENDLESS, "timeout_ms": 500_000 });
    let call = fixture.shell.call(
        Default::default(),
        Content::new(command),
        Default::default(),
        std::sync::Arc::new(Nobody),
    );
    tokio::select! {
        answer = call => panic!("it ended by itself: {answer:?}"),
        opened = tokio::time::timeout(TIMEOUT, opened) => opened.unwrap().unwrap(),
    }
    ended.recv_timeout(TIMEOUT).expect("the command and all it started have ended");
}

#[test]
fn readable_folders_that_contain_the_home_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    for folder in ["work", "tools/home"] {
        fs::create_dir_all(scratch.path().join(folder)).unwrap();
    }
    let workspace = Workspace::new(scratch.path().join("work"), scratch.path().join("tools/home")).unwrap();
    let readable = vec![scratch.path().join("tools")];
    let problem = Shell::new(workspace.clone().into(), ShellOptions { readable, ..ShellOptions::default() })
        .err()
        .unwrap();
    assert!(problem.what.contains("the home folder lies in it"), "{problem}");
    assert!(
        Shell::new(workspace.into(), ShellOptions { readable: vec!["/".into()], ..ShellOptions::default() })
            .is_err()
    );
}

#[test]
fn a_hard_link_to_a_file_of_the_home_refuses_every_command() {
    let fixture = Fixture::new();
    let at = |path: &str| fixture.scratch.path().join(path);
    fs::write(at("home/.env"), "KEY=1").unwrap();
    fs::hard_link(at("home/.env"), at("elsewhere")).unwrap();
    assert_eq!(fixture.run("echo fine")["stdout"], "fine\n");
    fs::hard_link(at("home/.env"), at("work/inner/notes")).unwrap();
    let fault = fixture.call(json!({ "command": "cat inner/notes" })).unwrap_err();
    assert!(fault.message.contains("inner/notes is a file of the home folder"), "{fault}");
}

#[test]
fn an_open_network_does_not_open_local_sockets() {
    let fixture = Fixture::with(ShellOptions { network: true, ..ShellOptions::default() });
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let _local = std::os::unix::net::UnixListener::bind(fixture.scratch.path().join("work/local")).unwrap();
    let script = |call: &str| format!("perl -MSocket -e '{call} or die $!; print qq(through)'");
    let internet = format!(
        "socket(S, PF_INET, SOCK_STREAM, 0) && connect(S, sockaddr_in({}, INADDR_LOOPBACK))",
        tcp.local_addr().unwrap().port()
    );
    assert_eq!(fixture.run(&script(&internet))["stdout"], "through");
    let local = fixture.run(&script("socket(S, PF_UNIX, SOCK_STREAM, 0)"));
    assert!(local["stderr"].as_str().unwrap().contains("not permitted"), "{local}");
    let closed = Fixture::new().run(&script("socket(S, PF_INET, SOCK_STREAM, 0)"));
    assert!(closed["stderr"].as_str().unwrap().contains("not permitted"), "{closed}");
}

// Finding M1.
#[test]
fn a_deep_tree_in_the_temporary_folder_is_removed() {
    let fixture = Fixture::new();
    let deep = "import os\nos.chdir(os.environ['TMPDIR'])\nprint(os.getcwd())\n\
                for i in range(15000): os.mkdir('d'); os.chdir('d')\nprint('made')";
    let answer = fixture.run(&format!("python3 -c \"{deep}\""));
    let out = answer["stdout"].as_str().unwrap();
    let (folder, made) = out.split_once('\n').unwrap();
    assert_eq!(made, "made\n", "{answer}");
    assert!(folder.contains("holdfast-") && !Path::new(folder).exists(), "{folder} is gone");
    assert_eq!(fixture.run("echo on")["stdout"], "on\n");
}

// Findings H3 and L1.
#[test]
fn a_command_sees_nothing_but_what_it_may_read() {
    use std::os::unix::fs::PermissionsExt;

    let fixture = Fixture::new();
    let home = fixture.scratch.path().join("home");
    fs::create_dir(home.join("extensions")).unwrap();
    let mode = || fs::metadata(home.join("extensions")).unwrap().permissions().mode();
    let before = mode();
    let script = format!(
        "chmod 000 {home}/extensions; ls {home}; ls /proc; \
         python3 -c 'import ctypes; libc = ctypes.CDLL(None); print(libc.inotify_add_watch(libc.inotify_init1(0), b\"{home}\", 0xfff))'",
        home = home.display()
    );
    let answer = fixture.run(&script);
    assert_eq!(answer["stdout"], "-1\n", "{answer}");
    assert!(answer["stderr"].as_str().unwrap().matches("No such file").count() >= 3, "{answer}");
    assert_eq!(mode(), before);
}

// Finding M10.
#[test]
fn what_runs_on_the_host_is_read_only_for_commands() {
    let fixture = Fixture::new();
    let work = fixture.scratch.path().join("work");
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    fs::create_dir(work.join(".vscode")).unwrap();
    fs::write(work.join(".git/config"), "[core]\n").unwrap();
    fs::write(work.join(".envrc"), "").unwrap();
    let attack = "echo x > .git/config; echo x > .git/hooks/post-commit; echo x > .git/commondir; echo x > .envrc; \
                  echo x > .vscode/tasks.json; mv .git elsewhere; rm -rf .git; echo on > ordinary; cat ordinary";
    let answer = fixture.run(attack);
    assert_eq!(answer["stdout"], "on\n", "{answer}");
    assert_eq!(fs::read_to_string(work.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(fs::read_dir(work.join(".git/hooks")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(work.join(".vscode")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(work.join(".envrc")).unwrap(), "");
    let trusting = ShellOptions { protect_settings: false, ..ShellOptions::default() };
    let fixture = Fixture::with(trusting);
    fs::create_dir_all(fixture.scratch.path().join("work/.git")).unwrap();
    assert_eq!(fixture.run("echo x > .git/index && cat .git/index")["stdout"], "x\n");
}

// Finding M10.
#[test]
fn what_runs_on_the_host_is_read_only_in_subfolders_and_reported_where_it_is_new() {
    let fixture = Fixture::new();
    let work = fixture.scratch.path().join("work");
    for folder in ["sub/deep/.git", "conf", "mine/.GIT"] {
        fs::create_dir_all(work.join(folder)).unwrap();
    }
    fs::write(work.join("sub/deep/.git/config"), "[core]\n").unwrap();
    std::os::unix::fs::symlink("conf", work.join(".vscode")).unwrap();
    let answer = fixture.run(
        "echo x > sub/deep/.git/config; echo x > conf/tasks.json; echo x > mine/.GIT/config; rm -rf sub/deep/.git; ls conf",
    );
    assert_eq!((answer["stdout"].as_str(), answer.get("warning")), (Some(""), None), "{answer}");
    assert_eq!(fs::read_to_string(work.join("sub/deep/.git/config")).unwrap(), "[core]\n");

    for (command, new) in [
        ("mkdir .git && echo '[core]' > .git/config", "\".git\""),
        ("echo 'touch x' > inner/.envrc", "\"inner/.envrc\""),
        ("printf 'gitdir: ../conf' > inner/.git", "\"inner/.git\""),
        ("mkdir -p a/b && ln -s /tmp a/b/.vscode", "\"a/b/.vscode\""),
        ("ln -sfn inner .vscode", "\".vscode\""),
        ("mv sub other", "\"other/deep/.git\""),
        ("mkdir -p bare/objects bare/refs && touch bare/HEAD bare/config", "\"bare/HEAD\""),
        ("mkdir -p new/.git; mkdir new/.github; kill -9 $$", "\"new/.git\", \"new/.github\""),
    ] {
        let answer = fixture.run(command);
        let warning = answer["warning"].as_str().unwrap_or_default();
        assert!(warning.contains(&format!("created or replaced {new} in")), "{command}: {answer}");
    }
    assert_eq!(fixture.run("echo x > .git/config; echo on > ordinary").get("warning"), None);
    let many = fixture.run("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do mkdir m$i; echo x > m$i/.envrc; done");
    assert!(many["warning"].as_str().unwrap().contains("and 2 more"), "{many}");
}

/// What a command cannot change it can move away with the folder above it, and put something else in its place.
#[test]
fn settings_that_were_replaced_are_reported() {
    let fixture = Fixture::new();
    let work = fixture.scratch.path().join("work");
    for folder in ["sub/.git", "store/bare/objects", "store/bare/refs"] {
        fs::create_dir_all(work.join(folder)).unwrap();
    }
    fs::write(work.join("sub/.git/config"), "[core]\n").unwrap();
    for file in ["sub/.envrc", "store/bare/HEAD", "store/bare/config"] {
        fs::write(work.join(file), "").unwrap();
    }
    let warning = |command: &str| {
        let answer = fixture.run(command);
        answer["warning"].as_str().unwrap_or_else(|| panic!("{command}: {answer}")).to_owned()
    };
    let told = warning("mv sub moved && mkdir -p sub/.git && echo '[core] fsmonitor=x' > sub/.git/config");
    assert!(told.contains("\"moved/.git\"") && told.contains("\"sub/.git\""), "{told}");
    let told = warning("mv moved again && mkdir moved && echo 'gitdir: ../x' > moved/.git");
    assert!(told.contains("\"moved/.git\"") && told.contains("\"again/.envrc\""), "{told}");
    let told = warning(
        "mv store old && mkdir -p store/bare/objects store/bare/refs && touch store/bare/HEAD && echo x > store/bare/config",
    );
    assert!(told.contains("\"store/bare/HEAD\"") && told.contains("\"old/bare/HEAD\""), "{told}");
    let told = warning("mkdir fresh && cd fresh && (git init -q . || mkdir .git)");
    assert!(told.contains("\"fresh/.git\""), "{told}");

    // Without namespaces nothing is read-only. A removed folder's number is soon used again.
    let found = || WorkspaceSettings::find(&work).unwrap();
    let before = found();
    for content in ["index.lock", "index"] {
        fs::write(work.join("fresh/.git").join(content), "").unwrap();
    }
    assert_eq!(found().new_since(&before), Vec::<std::path::PathBuf>::new(), "git at work replaces nothing");
    fs::remove_dir_all(work.join("fresh/.git")).unwrap();
    fs::create_dir(work.join("fresh/.git")).unwrap();
    assert_eq!(found().new_since(&before), [std::path::PathBuf::from("fresh/.git")]);
}

// Findings L1 and M10: a protected name does not make a command see what lies elsewhere.
#[test]
fn a_link_with_a_protected_name_shows_a_command_nothing() {
    let fixture = Fixture::new();
    let home = fixture.scratch.path().join("home");
    fs::write(home.join("id_prod_payroll"), "").unwrap();
    for name in [".vscode", ".git"] {
        std::os::unix::fs::symlink(&home, fixture.scratch.path().join("work").join(name)).unwrap();
    }
    let script = format!(
        "ls .vscode/; ls {home}; \
         python3 -c 'import ctypes; libc = ctypes.CDLL(None); print(libc.inotify_add_watch(libc.inotify_init1(0), b\"{home}\", 0xfff))'",
        home = home.display()
    );
    let answer = fixture.run(&script);
    assert_eq!(answer["stdout"], "-1\n", "{answer}");
    assert_eq!(answer["stderr"].as_str().unwrap().matches("No such file").count(), 2, "{answer}");
}

// Finding L2.
#[test]
fn a_command_that_shares_too_much_memory_is_killed() {
    let fixture = Fixture::with(ShellOptions { memory_bytes: 256 << 20, ..ShellOptions::default() });
    let script = "import mmap, time\nall = [mmap.mmap(-1, 60 << 20) for _ in range(5)]\n\
                  for one in all:\n\x20 for place in range(0, 60 << 20, 4096): one[place] = 1\n\
                  time.sleep(600)";
    let answer = fixture.run(&format!("exec python3 -c '{script}'"));
    assert!(
        answer["note"].as_str().unwrap_or_default().contains("shared more than 268435456 bytes"),
        "{answer}"
    );
}

// Finding M8.
#[test]
fn no_zombies_stay_after_a_command() {
    let fixture = Fixture::new();
    let zombies = "import ctypes\nlibc = ctypes.CDLL(None)\n\
                   for i in range(100):\n\x20 if libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0: libc._exit(0)";
    fixture.run(&format!("exec python3 -c '{zombies}'"));
    let children = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let own = format!(" Z {} ", std::process::id());
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(&own))
    });
    assert_eq!(children.count(), 0);
}

// Finding M10: what the program does not look at is not left writable. The number of entries is in the model's hands.
#[test]
fn many_entries_do_not_hide_what_runs_on_the_host() {
    let fixture = Fixture::new();
    let work = fixture.scratch.path().join("work");
    fs::create_dir_all(work.join("sub/.git")).unwrap();
    fs::write(work.join("sub/.git/config"), "[core]\n").unwrap();
    fs::create_dir(work.join("many")).unwrap();
    for number in 0..51_000 {
        fs::write(work.join(format!("many/{number}")), "").unwrap();
    }
    for number in 0..300 {
        fs::create_dir(work.join(format!("{number:04}"))).unwrap();
        fs::write(work.join(format!("{number:04}/.envrc")), "").unwrap();
    }
    let answer =
        fixture.run("echo x >> sub/.git/config; echo x > 0299/.envrc; echo on > ordinary; cat ordinary");
    assert_eq!(answer["stdout"], "on\n", "{answer}");
    assert_eq!(fs::read_to_string(work.join("sub/.git/config")).unwrap(), "[core]\n");
    assert_eq!(fs::read_to_string(work.join("0299/.envrc")).unwrap(), "");

    // Where there are more than can be protected or looked at, no command runs.
    let found = WorkspaceSettings::find_among(&work, 50_000);
    assert!(found.unwrap_err().contains("more than 50000 entries"));
    for number in 300..4_200 {
        fs::create_dir(work.join(format!("{number:04}"))).unwrap();
        fs::write(work.join(format!("{number:04}/.envrc")), "").unwrap();
    }
    let refused = fixture.call(json!({ "command": "touch ran" })).unwrap_err();
    assert_eq!(refused.code, Code::PathRefused, "{refused}");
    assert!(refused.message.contains("protect_settings") && !work.join("ran").exists(), "{refused}");
}

// Finding M10: git reads the configuration of a repository whatever its folder is called.
#[test]
fn a_bare_repository_is_read_only_for_commands() {
    let fixture = Fixture::new();
    let work = fixture.scratch.path().join("work");
    for folder in ["own.git/hooks", "plain/objects", "plain/refs", "objects", "refs", "hooks"] {
        fs::create_dir_all(work.join(folder)).unwrap();
    }
    for file in ["plain/HEAD", "plain/config", "own.git/config", "HEAD", "config"] {
        fs::write(work.join(file), "before").unwrap();
    }
    let answer = fixture.run(
        "for f in plain/HEAD plain/config plain/commondir own.git/config own.git/hooks/x HEAD config hooks/x; do echo x > $f; done; \
         echo on > ordinary; cat ordinary",
    );
    assert_eq!(answer["stdout"], "on\n", "{answer}");
    for file in ["plain/HEAD", "plain/config", "own.git/config", "HEAD", "config"] {
        assert_eq!(fs::read_to_string(work.join(file)).unwrap(), "before", "{file}");
    }
    for file in ["plain/commondir", "own.git/hooks/x", "hooks/x"] {
        assert!(!work.join(file).exists(), "{file}");
    }
}
