//! A process is born in namespaces of its own. Between its birth and the first instruction of its program it makes itself small: it maps
//! its user, brings up its loopback, sets its limits, gives up every capability, and closes the doors. All of that happens in the child,
//! because a process with threads cannot enter a user namespace.
//!
//! This module holds `unsafe`: it forks a process that has threads. The argument: the child has a copy of the memory in which other threads
//! stopped anywhere, so it takes no lock, allocates nothing and calls nothing that might. It makes system calls on what was prepared before, and
//! then becomes another program or ends. Pointers that are passed to the kernel point into `SpawnPlan`, which outlives the call.

#![allow(unsafe_code, reason = "the argument is above")]

use std::ffi::{CStr, CString, c_char};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use holdfast_contract::manifest::GATEWAY_PORT;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;

use crate::linux::calls::Network;
use crate::linux::mounts::{MountView, is_same};

/// The port of the gateway, in a namespace in which nothing else listens.
pub(crate) const GATEWAY: u16 = GATEWAY_PORT;
/// The port of the resolver there, over TCP.
pub(crate) const RESOLVER: u16 = 53;
/// The most sockets that a namespace hands to the parent: listeners and connectors.
const MAX_SOCKETS: usize = 128;
/// Connections that may wait to be taken.
const LISTEN_BACKLOG: i32 = 64;

/// Everything that a child needs, prepared before the fork.
pub(crate) struct SpawnPlan<'a> {
    pub(crate) program: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    pub(crate) folder: CString,
    /// A handle on the folder that it starts in.
    pub(crate) folder_handle: Option<BorrowedFd<'a>>,
    /// What is visible to it, and what of that it may write.
    pub(crate) view: MountView<'a>,
    /// Standard input, output and error.
    pub(crate) streams: [BorrowedFd<'a>; 3],
    pub(crate) ruleset: BorrowedFd<'a>,
    pub(crate) filters: &'a [BpfProgram; 2],
    pub(crate) limits: Vec<(Resource, Rlimit)>,
    /// The maximal number of processes and threads.
    pub(crate) tasks: u32,
    /// The first process of the namespace.
    pub(crate) init: BorrowedFd<'a>,
    /// What it has of the network: that of this process, or a loopback of its own, with or without a gateway.
    pub(crate) network: Network,
    /// With a gateway: the ports that are listened on for connections without a proxy. A resolver listens if there are any.
    pub(crate) ports: &'a [u16],
    /// With a gateway: how many sockets are made with which the parent connects to the program.
    pub(crate) connectors: usize,
}

/// A child process.
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    pub(crate) handle: OwnedFd,
    /// The gateway, the resolver, and then the listeners of the ports, as far as there are any.
    pub(crate) listeners: Vec<OwnedFd>,
    /// Sockets that are not connected yet, and connect to the loopback of the namespace.
    pub(crate) connectors: Vec<OwnedFd>,
    /// Whether the kernel bounds how many processes there are.
    pub(crate) bounded: bool,
}

/// The step at which a child failed, as text.
const STEPS: [&str; 11] = [
    "no namespaces",
    "its user could not be mapped",
    "its loopback could not be brought up",
    "its limits could not be set",
    "its standard streams could not be set up",
    "its folder cannot be entered",
    "its capabilities could not be given up",
    "the first process of its namespace could not be started",
    "it could not be confined",
    "the program could not be started",
    "its view of the file system could not be made",
];

/// A step that failed: which, and why.
type Failed = (u8, Errno);

/// What a child says first: that it got that far, with its listening socket.
const HANDSHAKE_OK: u8 = 0xff;

/// Forks. The child belongs to the calling thread and ends with it, so that the thread must live as long.
pub(crate) fn give(birth: &SpawnPlan<'_>) -> Result<Spawned, String> {
    let told = |step: u8, error: Errno| match STEPS.get(usize::from(step)) {
        Some(what) => format!("{what}: {error}"),
        None => error.to_string(),
    };
    let pair =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.map_err(|error| error.to_string())?;
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&birth.arguments), pointers(&birth.environment));
    let maps = Maps::of_this_user();
    let namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWNS;
    let own_network = if birth.network == Network::Open { 0 } else { libc::CLONE_NEWNET };
    match fork(namespaces | own_network) {
        Err(error) => Err(told(0, error)),
        Ok(None) => {
            let (step, error) = match grow(birth, &maps, &theirs, &arguments, &environment) {
                Ok(never) => match never {},
                Err(failed) => failed,
            };
            tell(&theirs, step, error);
            exit_child()
        }
        Ok(Some((pid, handle))) => {
            drop(theirs);
            let received = read_handshake(&ours);
            let spawned = received.map(|(mut listeners, bounded)| {
                let connectors = listeners.split_off(listeners.len().saturating_sub(birth.connectors));
                Spawned { pid, handle, listeners, connectors, bounded }
            });
            spawned.map_err(|failed| {
                // It ends by itself, and nothing else waits for it.
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
                told(failed.0, failed.1)
            })
        }
    }
}

/// Never present.
enum Never {}

/// The user and group of this process, mapped to themselves: they keep their own files, and no other id is mapped.
struct Maps {
    user: CString,
    group: CString,
}

impl Maps {
    fn of_this_user() -> Self {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        // Digits and spaces hold no NUL.
        let line = |id: u32| CString::new(format!("{id} {id} 1\n")).unwrap_or_default();
        Self { user: line(user), group: line(group) }
    }
}

/// Forks, into new namespaces if any are named. In the child there is no number.
fn fork(namespaces: i32) -> Result<Option<(Pid, OwnedFd)>, Errno> {
    let mut handle: libc::c_int = -1;
    let flags = (namespaces | libc::CLONE_PIDFD | libc::SIGCHLD) as libc::c_ulong;
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: without a stack of its own and without shared memory the child goes on here with a copy of everything, as after `fork`.
    // The kernel writes the handle to where the pointer leads. The two arguments that machines have in another order are both nothing.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, none, &raw mut handle, none, none) };
    match result {
        0 => Ok(None),
        -1 => Err(last_error()),
        number => match i32::try_from(number).ok().and_then(Pid::from_raw) {
            // SAFETY: the kernel has just opened it for this process, and nothing else owns it.
            Some(pid) => Ok(Some((pid, unsafe { OwnedFd::from_raw_fd(handle) }))),
            None => Err(Errno::SRCH),
        },
    }
}

fn last_error() -> Errno {
    // SAFETY: the place belongs to this thread.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

/// The child: the first process of its namespaces. It starts the one that becomes the program, and then only waits.
fn grow(
    birth: &SpawnPlan<'_>,
    maps: &Maps,
    host: &OwnedFd,
    arguments: &[*const c_char],
    environment: &[*const c_char],
) -> Result<Never, Failed> {
    map_user(maps).map_err(|error| (1, error))?;
    // What ends everything in the namespace leads the group.
    rustix::process::setpgid(None, None).map_err(|error| (3, error))?;
    let listeners = match birth.network {
        Network::Gateway => loopback(birth.ports, birth.connectors).map_err(|error| (2, error))?,
        Network::Closed | Network::Open => [const { None }; MAX_SOCKETS],
    };
    let bounded = limit(birth).map_err(|error| (3, error))?;
    birth.view.enter().map_err(|error| (10, error))?;
    let [input, output, errors] = birth.streams;
    rustix::stdio::dup2_stdin(input).map_err(|error| (4, error))?;
    rustix::stdio::dup2_stdout(output).map_err(|error| (4, error))?;
    rustix::stdio::dup2_stderr(errors).map_err(|error| (4, error))?;
    start_in(birth).map_err(|error| (5, error))?;
    give_up().map_err(|error| (6, error))?;
    ordinary_signals();
    // It is killed when its parent ends. If the parent has ended already, the child does not start.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| (3, error))?;
    report(host, &listeners, bounded).map_err(|error| (7, error))?;
    match fork(0).map_err(|error| (7, error))? {
        None => {
            let failed = become_program(birth, arguments, environment);
            tell(host, failed.0, failed.1);
            exit_child()
        }
        Some((_, _handle)) => Err((7, become_init(birth.init))),
    }
}

/// Becomes the first process of the namespace, without open files and in the root folder.
fn become_init(init: BorrowedFd<'_>) -> Errno {
    let _ = rustix::process::chdir(c"/");
    let none = [ptr::null::<c_char>()];
    // SAFETY: the lists end with nothing, the text with NUL. Of what is open nothing is used any more but the file itself.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        let empty = c"".as_ptr();
        libc::syscall(
            libc::SYS_execveat,
            init.as_raw_fd(),
            empty,
            none.as_ptr(),
            none.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    last_error()
}

/// Applies the restrictions and executes the program.
fn become_program(
    birth: &SpawnPlan<'_>,
    arguments: &[*const c_char],
    environment: &[*const c_char],
) -> Failed {
    // SAFETY: numbers only.
    let held = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, birth.ruleset.as_raw_fd(), 0u32) };
    if held != 0 {
        return (8, last_error());
    }
    // SAFETY: numbers only. What is open from here on, the program does not get, apart from its three streams.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    // Only now: the parent's descriptors are open here too, and it may have more of them than the program is allowed.
    for (resource, limit) in birth.limits.iter().filter(|(resource, _)| *resource == Resource::Nofile) {
        if let Err(error) = rustix::process::setrlimit(*resource, *limit) {
            return (3, error);
        }
    }
    for filter in birth.filters {
        if seccompiler::apply_filter(filter).is_err() {
            return (8, last_error());
        }
    }
    // SAFETY: both lists end with nothing, and every text with NUL.
    unsafe { libc::execve(birth.program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    (9, last_error())
}

fn write_to(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(drop)
}

/// This process hides its memory from others of the same user, and with it the files in which the map is written. So for as long as that
/// takes, its copy does not.
fn map_user(maps: &Maps) -> Result<(), Errno> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let mapped = write_to(c"/proc/self/setgroups", b"deny")
        .and_then(|()| write_to(c"/proc/self/uid_map", maps.user.as_bytes()))
        .and_then(|()| write_to(c"/proc/self/gid_map", maps.group.as_bytes()));
    // A preference, not a limit: when memory is short, the program is killed first.
    let _ = write_to(c"/proc/self/oom_score_adj", b"1000");
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    mapped
}

/// The sockets for the parent, in a fixed place: nothing is allocated here.
type Sockets = [Option<OwnedFd>; MAX_SOCKETS];

/// Brings up the loopback interface, and listens on it for the parent. Where not every address can be led there, the gateway is all that
/// listens. The sockets with which the parent connects to the program come last.
fn loopback(ports: &[u16], connectors: usize) -> Result<Sockets, Errno> {
    let mut listeners: Sockets = [const { None }; MAX_SOCKETS];
    let gateway = tcp_socket()?;
    // SAFETY: zeros are a request without a name and without flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as c_char;
    request.ifr_name[1] = b'o' as c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is whole, and the kernel reads as much of it as it has.
    if unsafe { libc::ioctl(gateway.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) } != 0 {
        return Err(last_error());
    }
    let gateway = listening(gateway, Ipv4Addr::LOCALHOST, GATEWAY)?;
    let wanted = !ports.is_empty() && every_address_is_local().is_ok();
    let others = [(Ipv4Addr::LOCALHOST, RESOLVER)].into_iter();
    let others = others.chain(ports.iter().map(|port| (Ipv4Addr::UNSPECIFIED, *port)));
    let (first, places) = listeners.split_first_mut().ok_or(Errno::MFILE)?;
    *first = Some(gateway);
    let for_connectors = places.len().checked_sub(connectors).ok_or(Errno::MFILE)?;
    let (places, last) = places.split_at_mut(for_connectors);
    for (place, (address, port)) in places.iter_mut().zip(others).filter(|_| wanted) {
        *place = Some(listening(tcp_socket()?, address, port)?);
    }
    for place in last {
        *place = Some(tcp_socket()?);
    }
    Ok(listeners)
}

fn tcp_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
}

fn listening(socket: OwnedFd, address: Ipv4Addr, port: u16) -> Result<OwnedFd, Errno> {
    rustix::net::bind(&socket, &SocketAddrV4::new(address, port))?;
    rustix::net::listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket)
}

/// Makes every IPv4 address one of the loopback interface, so that whatever a program connects to is accepted by what listens there.
fn every_address_is_local() -> Result<(), Errno> {
    const LOOPBACK_INDEX: u8 = 1;
    // A route of type `local` for `0.0.0.0/0` in the local table, with the interface as its only attribute, and an acknowledgement.
    let (length, kind, flags) = (36u32.to_ne_bytes(), 24u16.to_ne_bytes(), 0x0605u16.to_ne_bytes());
    let (attribute, oif) = (8u16.to_ne_bytes(), 4u16.to_ne_bytes());
    let interface = u32::from(LOOPBACK_INDEX).to_ne_bytes();
    let family = libc::AF_INET as u8;
    let mut message = [0u8; 36];
    let parts: [&[u8]; 8] = [
        &length,
        &kind,
        &flags,
        &[0; 8],
        // Family, lengths, type of service, table `local`, protocol `static`, scope `host`, type `local`, flags.
        &[family, 0, 0, 0, 255, 4, 254, 2, 0, 0, 0, 0],
        &attribute,
        &oif,
        &interface,
    ];
    let mut rest = &mut message[..];
    for part in parts {
        let (here, after) = rest.split_at_mut_checked(part.len()).ok_or(Errno::INVAL)?;
        here.copy_from_slice(part);
        rest = after;
    }
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &message, SendFlags::NOSIGNAL)?;
    let mut answer = [0u8; 64];
    let (read, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    // An acknowledgement is an error of number nothing.
    match (read, answer.get(16..20).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes)) {
        (20.., Some(0)) => Ok(()),
        (20.., Some(code)) => Err(Errno::from_raw_os_error(-code)),
        _ => Err(Errno::PROTO),
    }
}

/// Sets the limits but that of descriptors, and says whether the kernel bounds the number of processes.
fn limit(birth: &SpawnPlan<'_>) -> Result<bool, Errno> {
    for (resource, limit) in birth.limits.iter().filter(|(resource, _)| *resource != Resource::Nofile) {
        rustix::process::setrlimit(*resource, *limit)?;
    }
    // The numbers of processes: since Linux 6.14 every namespace has a limit of its own.
    let mut digits = [0; 10];
    let numbered = write_to(c"/proc/sys/kernel/pid_max", decimal(birth.tasks, &mut digits)).is_ok();
    // And the count of the namespace's processes, which holds for everybody but the system's root.
    let tasks = Some(u64::from(birth.tasks));
    rustix::process::setrlimit(Resource::Nproc, Rlimit { current: tasks, maximum: tasks })?;
    Ok(numbered || !rustix::process::geteuid().is_root())
}

/// Enters the folder that it starts in, if that is still the one that was meant.
fn start_in(birth: &SpawnPlan<'_>) -> Result<(), Errno> {
    rustix::process::chdir(birth.folder.as_c_str())?;
    match birth.folder_handle {
        Some(meant) => {
            let here = rustix::fs::open(c".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            if is_same(here.as_fd(), meant)? { Ok(()) } else { Err(Errno::STALE) }
        }
        None => Ok(()),
    }
}

/// Makes the mount that a path leads to read-only.
pub(crate) fn make_read_only(at: BorrowedFd<'_>, path: &CStr, flags: i32) -> Result<(), Errno> {
    let set = libc::MOUNT_ATTR_RDONLY;
    let wanted = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let size = size_of::<libc::mount_attr>();
    // SAFETY: the text ends with NUL, and the kernel reads the attributes, which are as long as it is told.
    let done = unsafe {
        libc::syscall(libc::SYS_mount_setattr, at.as_raw_fd(), path.as_ptr(), flags, &raw const wanted, size)
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// A number's digits.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        first -= 1;
        if number == 0 {
            break;
        }
    }
    digits.get(first..).unwrap_or_default()
}

/// Drops every capability permanently, including those that an executable file might add.
fn give_up() -> Result<(), Errno> {
    for capability in 0..64 {
        // Those that the kernel does not know need not be given up.
        let _ = rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(
            1 << capability,
        ));
    }
    let kept = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(kept)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)
}

/// A program starts with no signal blocked or ignored, regardless of this process's settings.
fn ordinary_signals() {
    // SAFETY: the set is made empty before it is read, and no handler of this process is kept.
    unsafe {
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Reports success to the parent and passes the sockets.
fn report(host: &OwnedFd, listeners: &Sockets, bounded: bool) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let (mut handed, mut count) = ([host.as_fd(); MAX_SOCKETS], 0);
    for (place, listener) in handed.iter_mut().zip(listeners.iter().flatten()) {
        *place = listener.as_fd();
        count += 1;
    }
    if let Some(handed) = handed.get(..count).filter(|handed| !handed.is_empty()) {
        ancillary.push(SendAncillaryMessage::ScmRights(handed));
    }
    let message = [HANDSHAKE_OK, u8::from(bounded)];
    rustix::net::sendmsg(host, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}

/// Reports a failure to the parent.
fn tell(host: &OwnedFd, step: u8, error: Errno) {
    let [a, b, c, d] = error.raw_os_error().to_ne_bytes();
    let _ = rustix::net::send(host, &[step, a, b, c, d], SendFlags::NOSIGNAL);
}

/// Exits without running this process's exit handlers.
fn exit_child() -> ! {
    // SAFETY: it does nothing but exit.
    unsafe { libc::_exit(125) }
}

/// Waits until the child has executed its program, or has failed.
fn read_handshake(child: &OwnedFd) -> Result<(Vec<OwnedFd>, bool), Failed> {
    let mut found = None;
    loop {
        let mut message = [0; 5];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut message)];
        let received = match rustix::net::recvmsg(child, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        {
            Err(Errno::INTR) => continue,
            Err(error) => return Err((7, error)),
            Ok(received) => received.bytes,
        };
        let handed = ancillary.drain().flat_map(|part| match part {
            RecvAncillaryMessage::ScmRights(rights) => rights.collect(),
            _ => Vec::new(),
        });
        let handed: Vec<OwnedFd> = handed.collect();
        match (received, message) {
            // Both ends that the child had are closed: it has executed its program.
            (0, _) => return found.ok_or((7, Errno::PIPE)),
            (_, [HANDSHAKE_OK, bounded, ..]) => found = Some((handed, bounded == 1)),
            (_, [step, a, b, c, d]) => {
                return Err((step, Errno::from_raw_os_error(i32::from_ne_bytes([a, b, c, d]))));
            }
        }
    }
}
