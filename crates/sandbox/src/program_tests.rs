//! Programs in namespaces of their own, and where there are none.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use crate::linux::probe::describe;
use crate::{Network, ProcessLimits, Program, ProgramAccess, Running, SandboxReport, Switch, report};

const LIMITS: ProcessLimits = ProcessLimits { file_bytes: 1 << 20, memory_bytes: 1 << 30, cpu_seconds: None };

/// Runs a script, and gives what it writes and how it ended.
fn script(report: &SandboxReport, text: &str) -> (String, String, ExitStatus) {
    let words = ["sh", "-c", text].map(str::to_owned);
    let running = start(report, &words).unwrap();
    let Running { input, output, errors, gateway: _gateway, life, .. } = running;
    drop(input);
    assert!(life.wait(Duration::from_secs(60)), "it ends");
    let status = life.end(&Switch::default()).unwrap();
    let text = |from| {
        let mut text = String::new();
        std::fs::File::from(from).read_to_string(&mut text).unwrap();
        text
    };
    (text(output), text(errors), status)
}

fn start(report: &SandboxReport, words: &[String]) -> Result<Running, holdfast_contract::problem::Fault> {
    start_within(report, words, LIMITS)
}

fn start_within(
    report: &SandboxReport,
    words: &[String],
    limits: ProcessLimits,
) -> Result<Running, holdfast_contract::problem::Fault> {
    let scratch = std::fs::File::open(std::env::temp_dir()).unwrap();
    let program = Program {
        words,
        environment: &[("PATH", OsString::from("/usr/bin:/bin"))],
        folder: Path::new("/usr"),
        folder_handle: None,
        reach: &ProgramAccess::new(&[], Network::Gateway),
        writable: &[(&std::env::temp_dir(), scratch.as_fd())],
        read_only: &[],
        limits,
        tasks: 512,
        socket: false,
    };
    program.start(report)
}

/// A machine like this one without namespaces.
fn without_namespaces() -> SandboxReport {
    describe(report().landlock, true, Err("this is a test"))
}

#[test]
fn a_program_is_what_it_is_with_namespaces_and_without() {
    for report in [report(), without_namespaces()] {
        let (out, err, status) = script(&report, "pwd; echo $PATH; cat; echo problem >&2; exit 3");
        assert_eq!(
            (out.as_str(), err.as_str(), status.code()),
            ("/usr\n/usr/bin:/bin\n", "problem\n", Some(3))
        );
        let (_, _, status) = script(&report, "kill -9 $$");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
    }
}

#[test]
fn it_is_the_second_process_of_its_world_and_has_no_capability() {
    let (out, err, _) = script(&report(), "echo $$; kill -0 1 && echo first; ulimit -c; (exit 0) & wait");
    assert!(out.starts_with("2\n") && out.ends_with("0\n"), "{out} {err}");
    let (_, err, _) = script(&report(), "cat /proc/self/status /proc/1/environ");
    assert_eq!(err.matches("No such file").count(), 2, "there is no /proc: {err}");
}

#[test]
fn its_gateway_is_all_that_it_reaches() {
    let words = [
        "python3",
        "-c",
        "import socket; s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'hello')",
    ];
    let running = start(&report(), &words.map(str::to_owned)).unwrap();
    let gateway = running.gateway.unwrap();
    gateway.set_nonblocking(false).unwrap();
    let (mut connection, _) = gateway.accept().unwrap();
    let mut received = [0; 5];
    connection.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"hello");
    connection.write_all(b"bye").unwrap();
    running.life.wait(Duration::from_secs(60));
    running.life.end(&Switch::default()).unwrap();
}

#[test]
fn whatever_it_starts_ends_with_it() {
    let began = std::time::Instant::now();
    let (_, _, status) = script(&report(), "(while :; do sleep 60; done) & sleep 60 & exit 7");
    assert_eq!(status.code(), Some(7));
    assert!(began.elapsed() < Duration::from_secs(50));
}

/// Every process of the namespace ends with it, and orphans are reaped by its first process.
#[test]
fn too_many_processes_are_refused_by_the_kernel() {
    let bomb = "i=0; while [ $i -lt 2000 ]; do sleep 60 & i=$((i+1)); done";
    let (_, err, status) = script(&report(), bomb);
    assert!(!status.success() && err.contains("fork"), "{status}: {err}");
}

#[test]
fn what_cannot_be_started_says_why() {
    let missing = start(&report(), &["no-such-program".to_owned()]).err().unwrap();
    assert_eq!(missing.message, "there is no program `no-such-program`");
    let folder = start(&report(), &["/usr".to_owned()]).err().unwrap();
    assert_eq!(folder.message, "there is no program `/usr`");
}

#[test]
fn what_is_missing_is_said() {
    assert!(describe(Some(7), true, Ok(())).is_whole());
    for (landlock, seccomp, namespaces, expected) in [
        (Some(7), true, Err("forbidden"), "no network (forbidden)"),
        (Some(5), true, Ok(()), "does not hold signals back"),
        (Some(3), true, Ok(()), "does not hold connections back"),
    ] {
        let report = describe(landlock, seccomp, namespaces);
        assert!(report.confined && !report.is_whole());
        assert!(report.to_string().contains(expected), "{report}");
    }
    for (landlock, seccomp) in [(None, true), (Some(2), true), (Some(7), false)] {
        let report = describe(landlock, seccomp, Ok(()));
        assert!(!report.confined && !report.namespaces && !report.notes.is_empty());
        let fault = start(&report, &["true".to_owned()]).err().unwrap();
        assert_eq!(fault.code, holdfast_contract::problem::Code::Unconfined);
    }
}

/// Prints what a start costs: `cargo nextest run --run-ignored only -E 'test(start_costs)' --no-capture`.
#[test]
#[ignore = "a measurement"]
fn what_a_start_costs() {
    for (name, report) in [("namespaces", report()), ("group", without_namespaces())] {
        script(&report, "true");
        let began = std::time::Instant::now();
        for _ in 0..100 {
            let running = start(&report, &["/bin/true".to_owned()]).unwrap();
            running.life.wait(Duration::from_secs(60));
            running.life.end(&Switch::default()).unwrap();
        }
        println!("{name}: {:?} from start to end of /bin/true", began.elapsed() / 100);
    }
}

#[test]
fn a_program_with_an_open_network_has_that_of_this_machine_and_no_other_process() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!(
        "import os, socket; s = socket.create_connection(('127.0.0.1', {port}), 5); s.sendall(str(os.getpid()).encode())"
    );
    let words = ["python3".to_owned(), "-c".to_owned(), connect];
    let program = Program {
        words: &words,
        environment: &[("PATH", OsString::from("/usr/bin:/bin"))],
        folder: Path::new("/"),
        folder_handle: None,
        reach: &ProgramAccess::new(&[], Network::Open),
        writable: &[],
        read_only: &[],
        limits: LIMITS,
        tasks: 512,
        socket: false,
    };
    let running = program.start(&report()).unwrap();
    assert!(running.gateway.is_none());
    let (mut connection, _) = listener.accept().unwrap();
    let mut received = String::new();
    connection.read_to_string(&mut received).unwrap();
    assert_eq!(received, "2", "it has a process namespace of its own");
    running.life.wait(Duration::from_secs(60));
    running.life.end(&Switch::default()).unwrap();
}

/// Runs a script that may write these folders, except for what is to stay read-only.
fn in_folders(writable: &[&Path], read_only: &[std::path::PathBuf], text: &str) -> (String, String) {
    let handles: Vec<_> = writable.iter().map(|path| std::fs::File::open(path).unwrap()).collect();
    let writable: Vec<_> = writable.iter().copied().zip(handles.iter().map(AsFd::as_fd)).collect();
    let program = Program {
        words: &["sh", "-c", text].map(str::to_owned),
        environment: &[("PATH", OsString::from("/usr/bin:/bin"))],
        folder: writable[0].0,
        folder_handle: Some(writable[0].1),
        reach: &ProgramAccess::new(&[], Network::Closed),
        writable: &writable,
        read_only,
        limits: LIMITS,
        tasks: 512,
        socket: false,
    };
    let Running { input, output, errors, life, .. } = program.start(&report()).unwrap();
    drop(input);
    assert!(life.wait(Duration::from_secs(60)), "it ends");
    life.end(&Switch::default()).unwrap();
    let text = |from| {
        let mut text = String::new();
        std::fs::File::from(from).read_to_string(&mut text).unwrap();
        text
    };
    (text(output), text(errors))
}

// Finding L12: a folder and one inside it are both writable, whichever comes first.
#[test]
fn writable_folders_may_contain_each_other_and_read_only_files() {
    let folder = tempfile::tempdir().unwrap();
    let outer = folder.path().canonicalize().unwrap();
    let inner = outer.join("deep/inner");
    std::fs::create_dir_all(inner.join("kept")).unwrap();
    std::fs::write(outer.join("deep/settings"), "old").unwrap();
    let kept = [inner.join("kept"), outer.join("deep/settings"), outer.join("missing")];
    for order in [[outer.as_path(), &inner], [&inner, &outer]] {
        let script = format!(
            "cd {outer}; echo a > own; echo b > deep/inner/own; echo c > deep/inner/kept/own; echo d > deep/settings; \
             chmod 777 deep/settings; mv deep/settings deep/away; rm -rf deep/inner/kept; cat own deep/inner/own deep/settings",
            outer = outer.display()
        );
        let (out, err) = in_folders(&order, &kept, &script);
        assert_eq!(out, "a\nb\nold", "{err}");
        assert!(err.matches("Read-only file system").count() >= 3, "{err}");
        assert!(inner.join("kept").is_dir() && !inner.join("kept/own").exists());
    }
}

// Findings H3 and L1: what is not granted is not there, so its mode cannot change, and it cannot be listed or watched.
#[test]
fn what_was_not_granted_is_not_visible() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("own"), folder.path().join("other"));
    std::fs::create_dir(&own).unwrap();
    std::fs::create_dir(&other).unwrap();
    let mode = || std::fs::metadata(&other).unwrap().permissions().mode();
    let before = mode();
    let script = format!(
        "chmod 000 {other}; ls {other}; touch -d 2001-01-01 {other}; ls /proc /home /root /run /var /boot; \
         python3 -c 'import ctypes, os; libc = ctypes.CDLL(None); fd = libc.inotify_init1(0)\n\
for path in [\"{other}\", \"/proc\", \"/var/log\", \"/home\", \"/root\"]: print(libc.inotify_add_watch(fd, path.encode(), 0xfff))'",
        other = other.display()
    );
    let (out, err) = in_folders(&[&own], &[], &script);
    assert_eq!(out, "-1\n".repeat(5), "{err}");
    assert!(err.matches("No such file").count() >= 8, "{err}");
    assert_eq!(mode(), before);
}

// Finding M8: a process cannot make a child of its parent's, which nobody would wait for.
#[test]
fn no_child_is_left_to_this_process() {
    let script = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                  print(libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0), ctypes.get_errno())";
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for report in [report(), without_namespaces()] {
        let words = ["python3", "-c", script].map(str::to_owned);
        let Running { input, output, life, .. } = start(&report, &words).unwrap();
        drop(input);
        assert!(life.wait(Duration::from_secs(60)), "it ends");
        life.end(&Switch::default()).unwrap();
        let mut out = String::new();
        std::fs::File::from(output).read_to_string(&mut out).unwrap();
        assert_eq!(out, "-1 1\n", "it is not permitted");
    }
    let stat = |id: &str| std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let own = format!(" {} ", std::process::id());
    let ids = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let zombies = ids.filter_map(|id| id.into_string().ok()).filter(|id| {
        let stat = stat(id);
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z") && rest.contains(&own))
    });
    assert_eq!(zombies.count(), 0);
}

// Finding L2: shared memory is not data, so the limit of data does not hold it.
#[test]
fn shared_memory_is_limited() {
    let script = "import ctypes, mmap, os\n\
                  def attempt(name, make):\n\
                  \x20   try: make(); print(name, 'made')\n\
                  \x20   except OSError as error: print(name, 'refused')\n\
                  attempt('small', lambda: mmap.mmap(-1, 1 << 20))\n\
                  attempt('large', lambda: mmap.mmap(-1, 6 << 30))\n\
                  attempt('file', lambda: os.memfd_create('x'))\n\
                  attempt('device', lambda: mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20))\n\
                  attempt('copy', lambda: mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 1 << 20, mmap.MAP_PRIVATE))\n\
                  attempt('whole', lambda: mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 6 << 30, mmap.MAP_SHARED, mmap.PROT_READ)[0])";
    for report in [report(), without_namespaces()] {
        let words = ["python3", "-c", script].map(str::to_owned);
        let Running { input, output, life, .. } = start(&report, &words).unwrap();
        drop(input);
        assert!(life.wait(Duration::from_secs(60)), "it ends");
        life.end(&Switch::default()).unwrap();
        let mut out = String::new();
        std::fs::File::from(output).read_to_string(&mut out).unwrap();
        // What is mapped to be read is not shared memory.
        assert_eq!(out, "small made\nlarge refused\nfile refused\ndevice refused\ncopy made\nwhole made\n");
    }
}

// Finding L2: many pieces, each of which is small enough.
#[test]
fn the_sum_of_shared_memory_is_counted() {
    let limits = ProcessLimits { memory_bytes: 256 << 20, ..LIMITS };
    let script = |pieces: u32| {
        format!(
            "import mmap, os, sys, time\n\
             pieces = [mmap.mmap(-1, 60 << 20) for _ in range({pieces})]\n\
             for piece in pieces:\n\
             \x20   for place in range(0, 60 << 20, 4096): piece[place] = 1\n\
             if os.fork() == 0: time.sleep(600)\n\
             print('ready', flush=True)\n\
             time.sleep(600)"
        )
    };
    for report in [report(), without_namespaces()] {
        for (pieces, is_too_much) in [(3, false), (5, true)] {
            let words = ["python3".to_owned(), "-c".to_owned(), script(pieces)];
            let Running { input, output, errors: _errors, life, .. } =
                start_within(&report, &words, limits).unwrap();
            drop(input);
            let mut ready = [0; 6];
            std::fs::File::from(output).read_exact(&mut ready).unwrap();
            assert_eq!(&ready, b"ready\n");
            assert_eq!(life.shares_too_much(), is_too_much, "{pieces} pieces, {report:?}");
            life.end(&Switch::default()).unwrap();
        }
    }
}

// The child of a process has its descriptors at first, and may not be allowed so many.
#[test]
fn a_program_starts_also_where_its_parent_has_more_descriptors_open_than_it_may_have() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX).min(8_192);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..getrlimit(Resource::Nofile) }).unwrap();
    let open: Vec<_> = (0..most - 200).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let (out, err, status) = script(&report(), "ulimit -n");
    assert!(status.success(), "{err}");
    let allowed = most.min(4_096);
    assert_eq!(out, format!("{allowed}\n"), "with {} open", open.len());
}
