//! Ways out by commands. What gets through prints [`super::world::THROUGH`]; what is held back says why on its standard error.

use super::world::{Case, Expected, THROUGH};

/// Reading, writing and reaching, with the tools that every system has.
const COMMANDS: &[(&str, &str)] = &[
    // Reading what is outside.
    ("up", "cat ../outside/secret.txt"),
    ("absolute", "cat {outside}/secret.txt"),
    ("a link", "cat to-file"),
    ("a chain of links", "cat chain-1/secret.txt"),
    ("list outside", "ls {outside} && echo GOT-THROUGH"),
    ("copy from outside", "cp {outside}/secret.txt ./copy && cat copy"),
    ("link from outside", "ln {outside}/secret.txt ./hard && cat hard"),
    ("move from outside", "mv {outside}/secret.txt ./moved; cat moved"),
    ("soft link and read", "ln -s {outside}/secret.txt fresh && cat fresh"),
    ("include outside", ". {outside}/secret.txt && echo GOT-THROUGH"),
    ("run from outside", "sh {outside}/secret.txt && echo GOT-THROUGH"),
    ("change to it and read", "cd {outside}; cat secret.txt"),
    ("archive outside", "tar cf - {outside} | tar xOf -"),
    ("find outside", "find {outside} -type f -exec cat {} + | grep . && echo GOT-THROUGH"),
    // The home.
    ("the home's secrets", "cat {home}/.env"),
    ("the home's secrets by a link", "cat to-home/.env"),
    ("the policy", "cat {home}/config/policy.yaml"),
    ("write the policy", "echo 'profile: full-auto' > {home}/config/policy.yaml"),
    ("remove the policy", "rm {home}/config/policy.yaml && echo GOT-THROUGH"),
    ("rename the policy", "mv {home}/config/policy.yaml {home}/config/old.yaml && echo GOT-THROUGH"),
    ("empty the policy", "truncate -s 0 {home}/config/policy.yaml && echo GOT-THROUGH"),
    ("the log", "cat {home}/holdfast.db"),
    ("write the log", "echo broken > {home}/holdfast.db"),
    ("empty the log", ": > {home}/holdfast.db"),
    ("another extension's data", "cat {home}/data/kv/kv.db"),
    ("a new extension", "mkdir -p {home}/extensions/evil && echo GOT-THROUGH"),
    ("ask for a restart", "touch {home}/.restart_requested"),
    ("replace the home", "mv {home} {work}/mine && echo GOT-THROUGH"),
    // The system.
    ("write to usr", "echo x > /usr/bin/holdfast-escape"),
    ("write to etc", "echo x > /etc/holdfast-escape"),
    ("write to a shell's start", "echo x >> /root/.bashrc"),
    ("a timed job", "echo '* * * * * root true' > /etc/cron.d/holdfast-escape"),
    ("write to tmp", "echo x > /tmp/holdfast-escape-$$ && echo GOT-THROUGH"),
    ("write to shared memory", "echo x > /dev/shm/holdfast-escape && echo GOT-THROUGH"),
    ("passwords", "cat /etc/shadow && echo GOT-THROUGH"),
    ("root's folder", "ls /root && echo GOT-THROUGH"),
    ("other people's folders", "ls /home && echo GOT-THROUGH"),
    ("host keys", "cat /etc/ssh/ssh_host_* && echo GOT-THROUGH"),
    ("who may become root", "cat /etc/sudoers && echo GOT-THROUGH"),
    ("the bus of the system", "ls /run && echo GOT-THROUGH"),
    ("the kernel's settings", "ls /sys/kernel && echo GOT-THROUGH"),
    ("a disk", "head -c 16 /dev/vda && echo GOT-THROUGH"),
    ("memory", "head -c 16 /dev/mem && echo GOT-THROUGH"),
    ("the terminal", "echo x > /dev/tty && echo GOT-THROUGH"),
    ("a device node", "mknod disk b 8 0 && echo GOT-THROUGH"),
    ("preloading", "LD_PRELOAD=./a.txt cat {outside}/secret.txt"),
    ("the loader", "/lib64/ld-linux-x86-64.so.2 /bin/cat {outside}/secret.txt"),
    // Other processes.
    ("the own environment's file", "cat /proc/self/environ && echo GOT-THROUGH"),
    ("the environment", "env | grep KEEP && echo GOT-THROUGH; env | grep -c HOLDFAST >&2"),
    ("the parent's environment", "cat /proc/{pid}/environ && echo GOT-THROUGH"),
    ("the parent's root", "cat /proc/{pid}/root{outside}/secret.txt"),
    ("the parent's folder", "cat /proc/{pid}/cwd/Cargo.toml && echo GOT-THROUGH"),
    ("the parent's memory", "head -c 1 /proc/{pid}/mem && echo GOT-THROUGH"),
    ("the parent's files", "ls /proc/{pid}/fd && echo GOT-THROUGH"),
    ("all processes", "ls /proc && echo GOT-THROUGH"),
    ("an inherited file", "cat <&7"),
    ("an inherited file by name", "cat /dev/fd/7"),
    ("kill the parent", "kill -9 {pid} && echo GOT-THROUGH"),
    ("kill a bystander", "kill -9 {bystander} && echo GOT-THROUGH"),
    ("kill everybody", "kill -URG -1; sleep 0.1; echo held"),
    ("kill its parent", "kill -9 $PPID && echo GOT-THROUGH"),
    ("the parent's limits", "prlimit --pid {pid} --nofile=3:3 && echo GOT-THROUGH"),
    ("the parent's priority", "renice -n 19 -p {pid} && echo GOT-THROUGH"),
    ("more of a limit", "ulimit -Hf unlimited && echo GOT-THROUGH"),
    ("become somebody else", "setpriv --reuid 1 true && echo GOT-THROUGH; su -c true && echo GOT-THROUGH"),
    ("a program of somebody else", "cp /bin/sh mine && chmod 4755 mine && echo GOT-THROUGH"),
    ("give away", "chown 1:1 a.txt && echo GOT-THROUGH"),
    // Other views.
    ("a namespace", "unshare -Ur true && echo GOT-THROUGH"),
    ("a mount namespace", "unshare -m true && echo GOT-THROUGH"),
    ("enter a namespace", "nsenter -t {pid} -m true && echo GOT-THROUGH"),
    ("a mount", "mount -t tmpfs none sub && echo GOT-THROUGH"),
    ("a bind mount", "mount --bind {outside} sub && cat sub/secret.txt"),
    ("another root", "chroot / true && echo GOT-THROUGH"),
    ("the host's name", "hostname holdfast-escape && echo GOT-THROUGH"),
    ("the clock", "date -s 2001-01-01 && echo GOT-THROUGH"),
    // Outliving the call: a process that survives has the FIFO open.
    (
        "a session of its own",
        "exec 9>alive; setsid sh -c 'while :; do echo x >> ticks; sleep 0.01; done' >/dev/null 2>&1 & sleep 0.1; echo held",
    ),
    (
        "without hanging up",
        "exec 9>alive; nohup sh -c 'while :; do echo x >> ticks; sleep 0.01; done' >/dev/null 2>&1 & sleep 0.1; echo held",
    ),
    (
        "a job group",
        "exec 9>alive; set -m; (while :; do echo x >> ticks; sleep 0.01; done) >/dev/null 2>&1 & sleep 0.1; echo held",
    ),
    (
        "many forks",
        "exec 9>alive; (((while :; do echo x >> ticks; sleep 0.01; done) &) &) >/dev/null 2>&1; sleep 0.1; echo held",
    ),
    ("forking on", "i=0; while [ $i -lt 3000 ]; do sleep 30 & i=$((i+1)); done; echo GOT-THROUGH"),
];

/// Reaching out, with Python where it is there.
const PYTHON: &[(&str, &str)] = &[
    ("a connection", "s.create_connection(('127.0.0.1', {port})).send(b'x')"),
    ("a connection by six", "s.socket(s.AF_INET6).connect(('::1', {port}))"),
    ("a datagram", "s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp}))"),
    ("a name", "s.getaddrinfo('example.com', 80)"),
    ("a port", "s.socket().bind(('127.0.0.1', 0))"),
    ("the control socket", "s.socket(s.AF_UNIX).connect('{home}/control.sock')"),
    ("the abstract socket", "s.socket(s.AF_UNIX).connect('\\0{abstract}')"),
    ("a pair turned around", "s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b'x', '{home}/control.dgram')"),
    ("the kernel's socket", "s.socket(s.AF_NETLINK, s.SOCK_RAW, 0)"),
    ("a raw socket", "s.socket(s.AF_PACKET, s.SOCK_RAW)"),
    ("the bystander's processor", "os.sched_setaffinity({bystander}, {0})"),
    (
        "a named memory",
        "__import__('multiprocessing.shared_memory').shared_memory.SharedMemory('hf', True, 9)",
    ),
    ("a mode on creation", "os.close(os.open('setuid', os.O_CREAT | os.O_WRONLY, 0o4755))"),
];

/// System calls by their number; those of this machine only.
#[cfg(target_arch = "x86_64")]
const CALLS: &[(&str, &str)] = &[
    ("io_uring", "425, 8, $b"),
    ("ptrace", "101, 16, {bystander}, 0, 0"),
    ("reading memory", "310, {bystander}, $b, 1, $b, 1, 0"),
    ("another's files", "438, 3, 0, 0"),
    ("an open by handle", "304, 3, $b, 0"),
    ("a program in the kernel", "321, 0, $b, 8"),
    ("keys", "250, 0, -3, 0"),
    ("a fault handler", "323, 0"),
    ("counters", "298, $b, 0, -1, -1, 0"),
    ("a namespace by clone", "56, 0x10000011, 0, 0, 0, 0"),
    ("clone with a structure", "435, $b, 88"),
    ("another calling convention", "0x40000065, 16, {bystander}, 0, 0"),
    ("a call of tomorrow", "999, 0"),
    ("reboot", "169, 0xfee1dead, 672274793, 0, 0"),
    ("shared memory", "29, 0, 4096, 01600"),
    ("a personality", "135, 0x0040000"),
    ("typing for somebody", "16, 0, 0x5412, $b"),
];
#[cfg(not(target_arch = "x86_64"))]
const CALLS: &[(&str, &str)] = &[];

pub fn all() -> Vec<Case> {
    use Expected::{Closed, Works};

    let mut cases: Vec<_> =
        COMMANDS.iter().map(|(name, command)| Case::shell(name, command, Closed)).collect();
    for (name, line) in PYTHON {
        let command =
            format!("/usr/bin/python3 - <<'END'\nimport os, socket as s\n{line}\nprint('{THROUGH}')\nEND");
        cases.push(Case::shell(&format!("{name} (Python)"), &command, Closed).needs(&["python3"]));
    }
    for (name, call) in CALLS {
        let line =
            format!("$b = \"\\0\" x 256; syscall({call}) == -1 or print \"{THROUGH}\"; print STDERR $!");
        let command = format!("/usr/bin/perl -e '{line}'");
        cases.push(Case::shell(&format!("{name} (system call)"), &command, Closed).needs(&["perl"]));
    }
    cases.push(Case::shell("a hard link", "cat hard", Closed).with_hard_links());
    cases.push(Case::shell("write to a hard link", "echo mine > sub/hard.yaml", Closed).with_hard_links());
    let mut elsewhere = Case::shell("start outside", "cat secret.txt", Closed);
    elsewhere.arguments["cwd"] = "../outside".into();
    let mut linked = Case::shell("start behind a link", "cat secret.txt", Closed);
    linked.arguments["cwd"] = "to-folder".into();
    let mut late = Case::shell(
        "longer than allowed",
        "exec 9>alive; (while :; do echo x >> ticks; sleep 0.01; done) & sleep 60",
        Closed,
    );
    late.arguments["timeout_ms"] = 1_000.into();
    cases.extend([elsewhere, linked, late]);

    let plain = |name: &str, command: &str, expected| Case::shell(name, command, Works(expected));
    cases.extend([
        plain("list", "ls", "a.txt"),
        plain("read", "cat a.txt", "an ordinary file"),
        plain("write", "echo new > b.txt && cat b.txt", "new"),
        plain("a pipe", "printf 'b\\na\\n' | sort | tr '\\n' '-'", "a-b-"),
        plain("a script", "printf '#!/bin/sh\\necho ran' > s && chmod +x s && ./s", "ran"),
        plain("a background job", "sleep 0.1 & wait; echo waited", "waited"),
        plain("temporary files", "mktemp >/dev/null && echo made", "made"),
        plain("a here document", "cat <<END\nhere\nEND", "here"),
        plain("rename across folders", "mkdir x && mv a.txt x/ && ls x", "a.txt"),
        plain("git", "git init -q repo && cd repo && git status --short --branch && echo fine", "fine").needs(&["git"]),
        plain("a commit", "git init -q r && cd r && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline | wc -l", "1").needs(&["git"]),
        plain("Python", "/usr/bin/python3 -c 'print(6*7)'", "42").needs(&["python3"]),
        plain("Python's subprocesses", "/usr/bin/python3 -c \"import subprocess as s; print(s.check_output(['echo', 'child']).decode())\"", "child").needs(&["python3"]),
        plain("Perl", "/usr/bin/perl -e 'print 6*7'", "42").needs(&["perl"]),
        plain("a compiler", "printf 'int main(){return 7;}' > m.c && cc m.c -o m && ./m; echo code $?", "code 7").needs(&["cc"]),
    ]);
    cases
}
