//! The attempts, in Python. `W` is the home folder, `DATA` the program's data folder, `OTHER` that of another program, `HOST` this process,
//! `VICTIM` an unrelated process, `PORT` a server on the loopback interface.

/// One attempt, and the prefixes of its expected errors; without any it must work.
pub struct Case {
    pub name: &'static str,
    pub code: &'static str,
    pub expected: &'static [&'static str],
}

const DENIED: &[&str] = &["EACCES", "EPERM", "EROFS"];
/// What is outside a program's files: with namespaces it is not there, without them it is closed.
const OUTSIDE: &[&str] = &["ENOENT", "EACCES", "EPERM", "EROFS"];
const ABSENT: &[&str] = &["EACCES", "ENOENT"];
const FORBIDDEN: &[&str] = &["EPERM", "ENOSYS"];
const NOBODY: &[&str] = &["ESRCH", "EPERM", "ENOSYS"];
const LINKED: &[&str] = &["ENOENT", "EACCES", "EXDEV", "EPERM", "EROFS"];
const UNREACHED: &[&str] = &["EACCES", "EPERM", "ENETUNREACH", "ECONNREFUSED"];
const RESET: &[&str] = &["ECONNRESET", "EPIPE"];
const NO_SOCKET: &[&str] = &["EPERM", "EAFNOSUPPORT"];
const REFUSED: &[&str] = &["HTTP/1.1 403"];
const NONSENSE: &[&str] = &["HTTP/1.1 400", "HTTP/1.1 411"];

/// Granted attempts that reach the server.
pub const REACHES_SERVER: usize = 2;

macro_rules! table {
    ($($name:literal, $code:literal, $expected:expr;)*) => {
        vec![$(Case { name: $name, code: $code, expected: $expected }),*]
    };
}

pub fn all() -> Vec<Case> {
    let groups = [work(), reading(), writing(), network(), gateway(), processes(), kernel()];
    groups.into_iter().flatten().collect()
}

/// Ordinary work.
fn work() -> Vec<Case> {
    table! {
        "keeps a file", "open(DATA + '/kept', 'w').write('x'); result = open(DATA + '/kept').read()", &[];
        "makes a folder for a while", "with tempfile.TemporaryDirectory() as f: open(f + '/x', 'w').write('x')", &[];
        "reads its code", "result = len(open('main.py').read())", &[];
        "starts a process", "result = subprocess.run(['sh', '-c', 'echo hello | tr a-z A-Z'], capture_output=True).stdout", &[];
        "starts a thread", "t = threading.Thread(target=print, kwargs=dict(file=sys.stderr)); t.start(); t.join()", &[];
        "links within its data", "os.link(DATA + '/kept', DATA + '/also'); os.symlink('kept', DATA + '/soft'); result = open(DATA + '/soft').read()", &[];
        "reaches what is granted", "result = ask_gateway('GET http://granted.example/ HTTP/1.1\\r\\n\\r\\n')", &[];
        "changes the mode of its own", "os.chmod(DATA + '/kept', 0o700); os.utime(DATA + '/kept')", &[];
    }
}

fn reading() -> Vec<Case> {
    table! {
        "a key", "result = open(W + '/.ssh/id').read()", OUTSIDE;
        "the passwords", "result = open('/etc/shadow').read()", OUTSIDE;
        "another's data", "result = open(OTHER + '/kept').read()", OUTSIDE;
        "the list of others' data", "result = os.listdir(W + '/data')", DENIED;
        "another's code", "result = open(W + '/code/process/other/main.py').read()", OUTSIDE;
        "the database", "result = open(W + '/holdfast.db', 'rb').read()", OUTSIDE;
        "the policy", "result = open(W + '/config/policy.yaml').read()", OUTSIDE;
        "the host's environment", "result = open(f'/proc/{HOST}/environ', 'rb').read()", ABSENT;
        "the host's memory", "result = open(f'/proc/{HOST}/mem', 'rb').read(1)", ABSENT;
        "the host's files", "result = os.listdir(f'/proc/{HOST}/fd')", ABSENT;
        "the first process's environment", "result = open('/proc/1/environ', 'rb').read()", OUTSIDE;
        "the first process's root", "result = open('/proc/1/root/etc/shadow').read()", OUTSIDE;
        "its own root", "result = open('/proc/self/root/etc/shadow').read()", OUTSIDE;
        "its own environment by proc", "result = open('/proc/self/environ').read()", OUTSIDE;
        "up from its folder", "result = open('../../../data/other/kept').read()", OUTSIDE;
        "up by proc", "result = open('/proc/self/cwd/../../../.ssh/id').read()", OUTSIDE;
        "a slash at the end", "result = open(W + '/.ssh/id/').read()", &["ENOENT", "ENOTDIR", "EACCES"];
        "a link to a key", "os.symlink(W + '/.ssh/id', DATA + '/key'); result = open(DATA + '/key').read()", OUTSIDE;
        "a link to a folder", "os.symlink(W, DATA + '/home'); result = open(DATA + '/home/holdfast.db').read()", OUTSIDE;
        "a second name for a key", "os.link(W + '/.ssh/id', DATA + '/second')", LINKED;
        "a second name by its number", "f = os.open(W + '/.ssh/id', os.O_PATH); os.link(f'/proc/self/fd/{f}', DATA + '/third', follow_symlinks=True)", LINKED;
        "a key moved over", "os.rename(W + '/.ssh/id', DATA + '/moved')", LINKED;
        "a folder swapped for a link", "
os.makedirs(DATA + '/flip', exist_ok=True); open(DATA + '/flip/id', 'w').write('mine'); os.symlink(W + '/.ssh', DATA + '/flop')
stop = []
def flip():
    while not stop: libc.renameat2(-100, (DATA + '/flip').encode(), -100, (DATA + '/flop').encode(), 2)
t = threading.Thread(target=flip); t.start(); seen = set()
for n in range(3000):
    try: seen.add(open(DATA + '/flip/id').read())
    except OSError as e: seen.add(errno.errorcode[e.errno])
stop.append(1); t.join()
if seen - {'mine'} in ({'EACCES'}, {'ENOENT'}): raise PermissionError(13, 'only its own, ' + str(seen))
result = seen", DENIED;
        "a handle without rights, opened again", "f = os.open(W + '/.ssh/id', os.O_PATH); result = open(f'/proc/self/fd/{f}').read()", OUTSIDE;
        "into another's folder first", "os.chdir(OTHER); result = open('kept').read()", OUTSIDE;
        "an inherited descriptor", "
found = []
for n in range(3, 256):
    try: found.append(os.pread(n, 64, 0))
    except OSError as e: last = e
if not found: raise last
result = found", &["EBADF"];
        "a handle by its bytes", "system(304, -100, ctypes.create_string_buffer(128), 0)", FORBIDDEN;
        "a handle's bytes", "b = ctypes.create_string_buffer(struct.pack('I', 128) + bytes(132)); m = ctypes.c_int(); system(303, -100, (W + '/.ssh/id').encode(), b, ctypes.byref(m), 0)", FORBIDDEN;
        "the machine's memory", "result = open('/dev/mem', 'rb').read(1)", ABSENT;
        "the kernel's log", "result = libc.klogctl(3, ctypes.create_string_buffer(64), 64); e = ctypes.get_errno()\nif result < 0: raise OSError(e, os.strerror(e))", FORBIDDEN;
        "shared memory of others", "result = os.listdir('/dev/shm')", OUTSIDE;
        "what others keep in /tmp", "result = os.listdir('/tmp')", DENIED;
    }
}

fn writing() -> Vec<Case> {
    table! {
        "a file outside", "open(W + '/new', 'w')", DENIED;
        "over a key", "open(W + '/.ssh/id', 'w')", OUTSIDE;
        "a key emptied", "os.truncate(W + '/.ssh/id', 0)", OUTSIDE;
        "into its code", "open('main.py', 'a').write('x')", DENIED;
        "a file beside its code", "open('new.py', 'w')", DENIED;
        "into another's data", "open(OTHER + '/new', 'w')", OUTSIDE;
        "another's data away", "os.unlink(OTHER + '/kept')", OUTSIDE;
        "a folder away", "os.rmdir(OTHER)", DENIED;
        "over the database", "open(DATA + '/mine', 'w').write('x'); os.rename(DATA + '/mine', W + '/holdfast.db')", LINKED;
        "a link outside", "os.symlink('/usr', W + '/link')", DENIED;
        "a file without a name, named outside", "f = os.open(DATA, os.O_TMPFILE | os.O_WRONLY); os.link(f'/proc/self/fd/{f}', W + '/named', follow_symlinks=True)", LINKED;
        "a file without a name outside", "os.open(W, os.O_TMPFILE | os.O_WRONLY)", DENIED;
        "by a handle on its own data", "f = os.open(DATA, os.O_RDONLY); os.open('../other/new', os.O_CREAT | os.O_WRONLY, dir_fd=f)", OUTSIDE;
        "the mode of a key", "os.chmod(W + '/.ssh/id', 0o777)", OUTSIDE;
        "the mode of the home", "os.chmod(W, 0o777)", DENIED;
        "the mode by a handle", "f = os.open('main.py', os.O_RDONLY); os.fchmod(f, 0o777)", DENIED;
        "the times of a key", "os.utime(W + '/.ssh/id', (0, 0))", OUTSIDE;
        "an attribute of its code", "os.setxattr('main.py', 'user.x', b'x')", &["ENOSYS", "EPERM", "EROFS", "EACCES"];
        "a device", "os.mknod(DATA + '/device', 0o600 | 0o060000, os.makedev(8, 0))", DENIED;
        "a program of root's", "open(DATA + '/su', 'w').write('x'); os.chmod(DATA + '/su', 0o4755)", DENIED;
        "the owner of a file", "os.chown(DATA + '/kept', 1, 1)", DENIED;
        "a setting of the kernel's", "open('/proc/sys/kernel/core_pattern', 'w').write('x')", OUTSIDE;
        "its own oom score", "open('/proc/self/oom_score_adj', 'w').write('-1000')", OUTSIDE;
    }
}

fn network() -> Vec<Case> {
    table! {
        "a server on this machine", "connect(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', PORT))", UNREACHED;
        "this machine by zero", "connect(socket.AF_INET, socket.SOCK_STREAM, ('0.0.0.0', PORT))", UNREACHED;
        "this machine by IPv6", "connect(socket.AF_INET6, socket.SOCK_STREAM, ('::1', PORT))", &["EACCES", "EPERM", "ENETUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL"];
        "this machine, mapped", "connect(socket.AF_INET6, socket.SOCK_STREAM, ('::ffff:127.0.0.1', PORT))", UNREACHED;
        // The gateway accepts these, and resets them when the host has said no.
        "credentials of the cloud's", "answered(connect(socket.AF_INET, socket.SOCK_STREAM, ('169.254.169.254', 80)))", RESET;
        "a public address", "answered(connect(socket.AF_INET, socket.SOCK_STREAM, ('1.1.1.1', 443)))", RESET;
        "a server on this machine by a port of the web", "answered(connect(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', 8080)))", RESET;
        "a name that leads elsewhere", "answered(connect(socket.AF_INET, socket.SOCK_STREAM, (socket.gethostbyname('other.example'), 443)))", RESET;
        "a public address on the gateway's port", "connect(socket.AF_INET, socket.SOCK_STREAM, ('1.1.1.1', 3128))", UNREACHED;
        "a datagram", "connect(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', PORT))", NO_SOCKET;
        "a name by a datagram", "connect(socket.AF_INET, socket.SOCK_DGRAM, ('1.1.1.1', 53))", NO_SOCKET;
        "a name at another resolver", "connect(socket.AF_INET, socket.SOCK_STREAM, ('1.1.1.1', 53))", UNREACHED;
        "a raw packet", "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)", NO_SOCKET;
        "a packet of the link's", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)", NO_SOCKET;
        "netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)", NO_SOCKET;
        "a virtual machine's socket", "socket.socket(40, socket.SOCK_STREAM, 0)", NO_SOCKET;
        "another protocol of streams", "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)", NO_SOCKET;
        "a socket with a path", "connect(socket.AF_UNIX, socket.SOCK_STREAM, CONTROL)", NO_SOCKET;
        "a socket with a name", "connect(socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + ABSTRACT)", NO_SOCKET;
        "a pair turned to somebody", "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", NO_SOCKET;
        "a server of its own", "s = socket.socket(); s.bind(('127.0.0.1', 8080))", DENIED;
        "the interface down", "s = socket.socket(); fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0))", DENIED;
    }
}

fn gateway() -> Vec<Case> {
    table! {
        "what is not granted", "ask_gateway('GET http://other.example/ HTTP/1.1\\r\\n\\r\\n')", REFUSED;
        "a tunnel to what is not granted", "ask_gateway('CONNECT other.example:443 HTTP/1.1\\r\\n\\r\\n')", REFUSED;
        "a tunnel to this machine", "ask_gateway(f'CONNECT 127.0.0.1:{PORT} HTTP/1.1\\r\\n\\r\\n')", REFUSED;
        "a tunnel to IPv6's own", "ask_gateway(f'CONNECT [::1]:{PORT} HTTP/1.1\\r\\n\\r\\n')", REFUSED;
        "a tunnel to the credentials", "ask_gateway('CONNECT 169.254.169.254:80 HTTP/1.1\\r\\n\\r\\n')", REFUSED;
        "what is granted, on another port", "ask_gateway('CONNECT granted.example:443 HTTP/1.1\\r\\n\\r\\n')", REFUSED;
        "a host field that says something else", "
got = ask_gateway('GET http://granted.example/ HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\nX: y\\r\\n\\r\\n')
if 'Host: granted.example' in got and '169.254' not in got: raise OSError(0, 'HTTP/1.1 403 the field was set right')
result = got", REFUSED;
        "a host field of what is granted", "ask_gateway('GET http://other.example/ HTTP/1.1\\r\\nHost: granted.example\\r\\n\\r\\n')", REFUSED;
        "no whole address", "ask_gateway('GET / HTTP/1.1\\r\\nHost: granted.example\\r\\n\\r\\n')", NONSENSE;
        "a user in the address", "ask_gateway('GET http://granted.example@other.example/ HTTP/1.1\\r\\n\\r\\n')", NONSENSE;
        "a length that is hidden", "ask_gateway('POST http://granted.example/ HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n')", NONSENSE;
        "a line that is broken", "ask_gateway('CONNECT granted.example:80\\nother HTTP/1.1\\r\\n\\r\\n')", NONSENSE;
        "an ask of its own", "send(id='q', method='ask', params={'call': message['id'], 'name': 'network.connect', 'arguments': {'host': 'x', 'port': 1}}); got = receive()\nif 'error' in got: raise OSError(0, got['error']['message'])", &["`network.connect` is for the gateway"];
    }
}

/// What a program is told that forms a process group: nothing where it has a namespace, which ends it all.
fn groups() -> &'static [&'static str] {
    if holdfast_sandbox::report().namespaces { &[] } else { FORBIDDEN }
}

fn processes() -> Vec<Case> {
    table! {
        "a signal to the host", "os.kill(HOST, 9)", NOBODY;
        "a signal to a bystander", "os.kill(VICTIM, 9)", NOBODY;
        "a signal to the first process", "os.kill(1, 9)", NOBODY;
        "the host's limits", "resource.prlimit(HOST, resource.RLIMIT_NOFILE, (1, 1))", NOBODY;
        "the host's priority", "os.setpriority(os.PRIO_PROCESS, HOST, 19)", NOBODY;
        "the host traced", "system(101, 16, HOST, 0, 0)", NOBODY;
        "the first process traced", "system(101, 16, 1, 0, 0)", NOBODY;
        "the host's memory, copied", "b = ctypes.create_string_buffer(16); v = struct.pack('PN', ctypes.addressof(b), 16); system(310, HOST, v, 1, v, 1, 0)", NOBODY;
        "a handle on the host", "os.pidfd_open(HOST)", NOBODY;
        "the first process's files", "f = os.pidfd_open(1); system(438, f, 0, 0)", NOBODY;
        // In a namespace of its own a program may form sessions and groups; that everything in them ends with it is checked at the end.
        "a child that leaves and stays", "
r, w = os.pipe()
if os.fork() == 0:
    try: os.setsid(); os.write(w, b'left')
    except OSError as e: os.write(w, errno.errorcode[e.errno].encode())
    if os.fork() == 0:
        os.closerange(0, 3); time.sleep(600)
    os._exit(0)
told = os.read(r, 16).decode()
if told != 'left': raise PermissionError(1, told)", groups();
        "a group of its own that stays", "
r, w = os.pipe()
if os.fork() == 0:
    try: os.setpgid(0, 0); os.write(w, b'left')
    except OSError as e: os.write(w, errno.errorcode[e.errno].encode())
    os.closerange(0, 3); time.sleep(600)
told = os.read(r, 16).decode()
if told != 'left': raise PermissionError(1, told)", groups();
        "a sibling's loader", "open('/etc/ld.so.preload', 'w')", DENIED;
    }
}

fn kernel() -> Vec<Case> {
    table! {
        "a mount", "system(165, b'none', DATA.encode(), b'tmpfs', 0, 0)", FORBIDDEN;
        "a bind mount", "system(165, W.encode(), DATA.encode(), 0, 4096, 0)", FORBIDDEN;
        "its mounts made writable", "system(442, -100, b'/', 0x8000, struct.pack('QQQQ', 0, 1, 0, 0), 32)", FORBIDDEN;
        "a mount taken away", "system(166, DATA.encode(), 2)", FORBIDDEN;
        "another root", "os.chroot(DATA)", FORBIDDEN;
        "a new user", "system(272, 0x10000000)", FORBIDDEN;
        "a new network", "system(272, 0x40000000)", FORBIDDEN;
        "a clone in a new world", "system(56, 0x10000000 | 17, 0, 0, 0, 0)", FORBIDDEN;
        "a clone that hides its flags", "system(435, ctypes.create_string_buffer(88), 88)", FORBIDDEN;
        "another's namespace", "system(308, 0, 0)", FORBIDDEN;
        "capabilities", "system(126, struct.pack('Ii', 0x20080522, 0), struct.pack('6I', *[0xffffffff] * 6))", FORBIDDEN;
        "another user", "os.setuid(1)", &["EPERM", "EINVAL"];
        "other groups", "os.setgroups([0])", FORBIDDEN;
        "rings of requests", "system(425, 8, ctypes.create_string_buffer(120))", FORBIDDEN;
        "programs for the kernel", "system(321, 0, ctypes.create_string_buffer(120), 120)", FORBIDDEN;
        "keys of the kernel's", "system(250, 0, -3, 0)", FORBIDDEN;
        "faults of memory", "system(323, 0)", FORBIDDEN;
        "counters", "system(298, ctypes.create_string_buffer(120), 0, -1, -1, 0)", FORBIDDEN;
        "typing for somebody", "fcntl.ioctl(0, 0x5412, b'x')", FORBIDDEN;
        "memory by a number", "system(29, 0x7b1f, 4096, 0o1600)", FORBIDDEN;
        "a queue by a number", "system(68, 0x7b1f, 0o1600)", FORBIDDEN;
        "a queue by a name", "system(240, b'q', 0o102, 0o600, 0)", FORBIDDEN;
        "the machine's name", "socket.sethostname('mine')", FORBIDDEN;
        "the clock", "time.clock_settime(time.CLOCK_REALTIME, 0)", FORBIDDEN;
        "a module of the kernel's", "system(313, 0, b'', 0)", FORBIDDEN;
        "another personality", "system(135, 0x0040000)", FORBIDDEN;
        "a core file", "result = resource.getrlimit(resource.RLIMIT_CORE); resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))", &["EPERM", "ValueError"];
        "the restart of the machine", "system(169, 0xfee1dead, 672274793, 0x1234567, 0)", FORBIDDEN;
        "calls of another convention", "system(0x40000000 + 39)", FORBIDDEN;
    }
}

/// Attempts to exhaust resources, and the expected error or reason for killing the program.
pub const BOMBS: &[(&str, &str, &[&str])] = &[
    (
        "processes",
        "
while True:
    if os.fork() == 0: signal.pause(); os._exit(0)",
        &["EAGAIN", "ENOMEM"],
    ),
    (
        "processes that leave",
        "
n = 0
while n < 3000:
    n += 1
    if os.fork() == 0:
        if os.fork() == 0: time.sleep(600)
        os._exit(0)
result = n",
        &["EAGAIN", "ENOMEM", "ChildProcessError"],
    ),
    (
        "threads",
        "
e = threading.Event()
while True: threading.Thread(target=e.wait, daemon=True).start()",
        &["can't start new thread"],
    ),
    ("memory", "x = bytearray(6 << 30)", &["MemoryError"]),
    (
        "memory in small pieces",
        "
x = []
while True: x.append(mmap.mmap(-1, 256 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))",
        &["ENOMEM", "MemoryError"],
    ),
    (
        "descriptors",
        "
x = []
while True: x.append(os.dup(0))",
        &["EMFILE"],
    ),
    (
        "a large file",
        "f = open(DATA + '/large', 'wb'); signal.signal(signal.SIGXFSZ, signal.SIG_IGN); os.ftruncate(f.fileno(), 2 << 30)",
        &["EFBIG"],
    ),
    (
        "the disk",
        "
open(os.environ['TMPDIR'] + '/of-the-bomb', 'w').close()
for n in range(64):
    with open(f'{DATA}/{n}', 'wb') as f:
        for _ in range(4): f.write(bytes(1 << 20))
    time.sleep(0.05)
time.sleep(20)",
        &["the process was killed: it uses"],
    ),
    (
        "the disk by names",
        "
for n in range(200000):
    os.close(os.open(f'{DATA}/n{n}', os.O_CREAT | os.O_WRONLY))
time.sleep(20)",
        &["the process was killed: it uses"],
    ),
    ("everybody's end", "os.kill(-1, 9); time.sleep(20)", &["EPERM", "ESRCH", "has exited (signal: 9"]),
    ("a crash", "os.kill(os.getpid(), signal.SIGSEGV); time.sleep(20)", &["has exited (signal: 11"]),
    ("its own end", "os._exit(7)", &["has exited (exit status: 7)"]),
];

/// Of the above, what finds its aim without confinement.
pub const SPRUNG: &[(&str, &str)] = &[
    ("result = open(W + '/.ssh/id').read()", super::world::SECRET),
    ("result = open('/proc/self/root' + W + '/holdfast.db').read()", super::world::SECRET),
    ("result = open(OTHER + '/kept').read()", super::world::SECRET),
    ("connect(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', PORT))", "worked"),
    ("connect(socket.AF_UNIX, socket.SOCK_STREAM, CONTROL)", "worked"),
    ("connect(socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + ABSTRACT)", "worked"),
    ("os.kill(VICTIM, 0)", "worked"),
    ("os.setpgid(0, 0)", "worked"),
    ("os.chmod(W + '/.ssh/id', 0o600)", "worked"),
    ("resource.prlimit(HOST, resource.RLIMIT_NOFILE)", "worked"),
    ("system(272, 0x10000000)", "worked"),
];
