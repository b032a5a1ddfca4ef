//! Which system calls a command may make. Two filters are stacked. The first knows what ordinary programs need
//! and answers everything else with "no such call", so that a system call of a later kernel, or one of another calling
//! convention, is rejected and libraries fall back to older calls. The second denies dangerous calls by name.

use std::collections::BTreeMap;

use libc::*;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// A program's network access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    #[default]
    Closed,
    /// A gateway on the loopback of a namespace of its own, where there is one, and nothing else.
    Gateway,
    /// IPv4 and IPv6, as this machine has them.
    Open,
}

/// What the filters depend on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FilterOptions {
    /// Which sockets there are.
    pub(crate) network: Network,
    /// The process group that the command lives in, if nothing else holds its processes together. Joining it is then the only move
    /// between groups. In a namespace of their own, processes may form groups and sessions: all end with the namespace.
    pub(crate) group: Option<u32>,
    /// Whether seccomp blocks signals, because Landlock cannot.
    pub(crate) signals_by_group: bool,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Both filters, in the order in which they are applied.
pub(crate) fn filters(wanted: &FilterOptions) -> Result<[BpfProgram; 2], String> {
    let known = KNOWN.iter().chain(KNOWN_HERE).map(|call| (*call, Vec::new())).collect();
    let missing = SeccompAction::Errno(ENOSYS as u32);
    let denied = SeccompAction::Errno(EPERM as u32);
    Ok([
        compiled(known, missing, SeccompAction::Allow)?,
        compiled(forbidden(wanted)?, SeccompAction::Allow, denied)?,
    ])
}

/// Applies them to this thread and its descendants. Of two answers the later filter's counts, so that what is denied by name
/// is denied, not missing.
pub(crate) fn apply(filters: [BpfProgram; 2]) -> Result<(), String> {
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter).map_err(|error| error.to_string()))
}

fn compiled(rules: Rules, other: SeccompAction, listed: SeccompAction) -> Result<BpfProgram, String> {
    let machine = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let filter = SeccompFilter::new(rules, other, listed, machine).map_err(|error| error.to_string())?;
    filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())
}

/// Everything that is denied by name.
fn forbidden(wanted: &FilterOptions) -> Result<Rules, String> {
    let mut rules: Rules = FORBIDDEN.iter().chain(FORBIDDEN_HERE).map(|call| (*call, Vec::new())).collect();
    let mut deny = |call: i64, when: &[&[Test]]| -> Result<(), String> {
        let listed = when.iter().map(|tests| rule(tests)).collect::<Result<Vec<_>, _>>()?;
        rules.insert(call, listed);
        Ok(())
    };

    // A new namespace would come with its own capabilities, so no namespace flag is allowed. A child of the parent's would be one that
    // nobody waits for.
    let flags = CLONE_FLAGS.map(|flag| [set(0, flag as u64)]);
    deny(SYS_clone, &flags.each_ref().map(|tests| &tests[..]))?;

    let type_of = |kind: i32| (1, SeccompCmpOp::MaskedEq(0xf), kind as u64, SeccompCmpArgLen::Dword);
    let other_families = [not(0, AF_INET as u64), not(0, AF_INET6 as u64)];
    match wanted.network {
        Network::Closed => deny(SYS_socket, &[])?,
        Network::Open => deny(SYS_socket, &[&other_families])?,
        Network::Gateway => {
            let other_types: Vec<_> =
                (0..16).filter(|kind| *kind != SOCK_STREAM).map(|kind| [type_of(kind)]).collect();
            let other_protocols = [not(2, 0), not(2, IPPROTO_TCP as u64)];
            let mut listed: Vec<&[Test]> = vec![&other_families, &other_protocols];
            listed.extend(other_types.iter().map(|tests| &tests[..]));
            deny(SYS_socket, &listed)?;
        }
    }
    // A socket pair is safe as long as neither end can be connected elsewhere, as a datagram socket can.
    deny(SYS_socketpair, &[&[not(0, AF_UNIX as u64)], &[type_of(SOCK_DGRAM)], &[type_of(SOCK_RAW)]])?;

    if let Some(group) = wanted.group {
        // Leaving the process group would escape termination.
        deny(SYS_setsid, &[])?;
        deny(SYS_setpgid, &[&[not(0, 0)], &[not(1, group.into())]])?;
    }
    if wanted.signals_by_group {
        let group = 0u32.wrapping_sub(wanted.group.unwrap_or_default());
        deny(SYS_kill, &[&[not(0, 0), not(0, group.into())]])?;
        for call in [SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal]
        {
            deny(call, &[])?;
        }
    }

    // Calls about a process may name only this one.
    let limits_set = (2, SeccompCmpOp::Ne, 0, SeccompCmpArgLen::Qword);
    deny(SYS_prlimit64, &[&[not(0, 0), limits_set]])?;
    deny(SYS_setpriority, &[&[not(0, PRIO_PROCESS as u64)], &[not(1, 0)]])?;
    for call in [SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam] {
        deny(call, &[&[not(0, 0)]])?;
    }
    deny(SYS_personality, &[&[not(0, 0), not(0, 0xffff_ffff)]])?;

    // No program that runs as another user, regardless of its mode.
    for (call, mode) in MODES.iter().chain(MODES_HERE) {
        deny(*call, &[&[set(*mode, S_ISUID.into())], &[set(*mode, S_ISGID.into())]])?;
    }
    // Memory that is shared with children is not data, so no limit holds it. Files in memory are not available at all.
    let shared_memory = set(3, (MAP_SHARED | MAP_ANONYMOUS) as u64);
    let large = (1, SeccompCmpOp::Gt, MAX_SHARED_BYTES, SeccompCmpArgLen::Qword);
    deny(SYS_mmap, &[&[shared_memory, large]])?;
    // Injecting input into the user's terminal.
    deny(SYS_ioctl, &[&[is(1, TIOCSTI)], &[is(1, TIOCLINUX)]])?;
    Ok(rules)
}

/// A test of one argument.
type Test = (u8, SeccompCmpOp, u64, SeccompCmpArgLen);

fn is(argument: u8, value: u64) -> Test {
    (argument, SeccompCmpOp::Eq, value, SeccompCmpArgLen::Dword)
}

fn not(argument: u8, value: u64) -> Test {
    (argument, SeccompCmpOp::Ne, value, SeccompCmpArgLen::Dword)
}

fn set(argument: u8, bit: u64) -> Test {
    (argument, SeccompCmpOp::MaskedEq(bit), bit, SeccompCmpArgLen::Dword)
}

fn rule(tests: &[Test]) -> Result<SeccompRule, String> {
    let conditions = tests.iter().map(|(argument, comparison, value, length)| {
        SeccompCondition::new(*argument, length.clone(), comparison.clone(), *value)
    });
    let conditions = conditions.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

const CLONE_FLAGS: [i32; 8] = [
    CLONE_NEWNS,
    CLONE_NEWCGROUP,
    CLONE_NEWUTS,
    CLONE_NEWIPC,
    CLONE_NEWUSER,
    CLONE_NEWPID,
    CLONE_NEWNET,
    CLONE_PARENT,
];

/// The largest piece of memory that processes may share: the limit of data does not count it.
const MAX_SHARED_BYTES: u64 = 64 << 20;

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
const SYS_FCHMODAT2: i64 = 452;

/// Calls that take a mode, and which argument it is.
const MODES: &[(i64, u8)] =
    &[(SYS_fchmod, 1), (SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (SYS_openat, 3), (SYS_mknodat, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u8)] = &[(SYS_chmod, 1), (SYS_open, 2), (SYS_creat, 1), (SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8)] = &[];

/// Denied by name, with any arguments.
#[rustfmt::skip]
const FORBIDDEN: &[i64] = &[
    // Other processes.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_process_mrelease, SYS_kcmp,
    SYS_pidfd_getfd, SYS_migrate_pages, SYS_move_pages, SYS_sched_setattr, SYS_ioprio_set,
    // Other views of the system.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
    SYS_fspick, SYS_move_mount, SYS_open_tree, SYS_mount_setattr,
    // Ways around the checks of files and sockets.
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_open_by_handle_at, SYS_name_to_handle_at,
    SYS_fanotify_init, SYS_fanotify_mark,
    // Kernel internals.
    SYS_bpf, SYS_userfaultfd, SYS_perf_event_open, SYS_kexec_load, SYS_kexec_file_load, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_syslog, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_lookup_dcookie,
    // Rebooting, time and swap.
    SYS_reboot, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_quotactl_fd, SYS_acct, SYS_settimeofday, SYS_clock_settime,
    SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname, SYS_vhangup,
    // Changing ownership.
    SYS_fchown, SYS_fchownat,
    // Memory and queues that are shared by name.
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semget, SYS_semop, SYS_semctl,
    SYS_semtimedop, SYS_mq_open, SYS_mq_unlink,
];

#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[i64] = &[SYS_chown, SYS_lchown, SYS_ioperm, SYS_iopl, SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[i64] = &[];

/// What ordinary programs need. `clone3` is not here: its flags cannot be looked at, and without it libraries use `clone`. Neither
/// is `openat2`, whose mode cannot be, nor `memfd_create`: no limit counts what is written there.
#[rustfmt::skip]
const KNOWN: &[i64] = &[
    // Files.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2,
    SYS_pwritev2, SYS_openat, SYS_close, SYS_close_range, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_lseek, SYS_ioctl,
    SYS_fcntl, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_sync, SYS_syncfs, SYS_sync_file_range, SYS_truncate,
    SYS_ftruncate, SYS_fallocate, SYS_fadvise64, SYS_readahead, SYS_copy_file_range, SYS_sendfile, SYS_splice, SYS_tee,
    SYS_vmsplice, SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_mkdirat, SYS_unlinkat, SYS_renameat2,
    SYS_linkat, SYS_symlinkat, SYS_readlinkat, SYS_fchmod, SYS_fchmodat, SYS_FCHMODAT2, SYS_faccessat, SYS_faccessat2,
    SYS_umask, SYS_utimensat, SYS_mknodat, SYS_statfs, SYS_fstatfs, SYS_dup, SYS_dup3, SYS_pipe2, SYS_getxattr,
    SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr, SYS_inotify_init1,
    SYS_inotify_add_watch, SYS_inotify_rm_watch,
    // Memory.
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_mremap, SYS_madvise, SYS_msync, SYS_mincore, SYS_mlock, SYS_mlock2,
    SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_membarrier, SYS_mbind, SYS_get_mempolicy,
    SYS_set_mempolicy, SYS_pkey_alloc, SYS_pkey_free, SYS_pkey_mprotect, SYS_mseal,
    // Signals.
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigsuspend,
    SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_sigaltstack, SYS_kill, SYS_tkill, SYS_tgkill, SYS_signalfd4,
    SYS_pidfd_open, SYS_pidfd_send_signal,
    // Waiting.
    SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_futex, SYS_futex_waitv, SYS_set_robust_list,
    SYS_get_robust_list, SYS_restart_syscall, SYS_nanosleep, SYS_clock_nanosleep,
    // Processes and threads.
    SYS_clone, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_getpid, SYS_getppid,
    SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getgroups, SYS_getresuid, SYS_getresgid,
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_getpgid,
    SYS_setpgid, SYS_setsid, SYS_getsid, SYS_set_tid_address, SYS_rseq, SYS_prctl, SYS_capget, SYS_personality, SYS_seccomp,
    SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self, SYS_sched_yield,
    SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam, SYS_sched_setparam, SYS_sched_getscheduler,
    SYS_sched_setscheduler, SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_rr_get_interval,
    SYS_sched_getattr, SYS_getcpu, SYS_getpriority, SYS_setpriority, SYS_getrusage, SYS_prlimit64, SYS_times,
    // The system.
    SYS_uname, SYS_sysinfo, SYS_getrandom, SYS_gettimeofday, SYS_clock_gettime, SYS_clock_getres, SYS_getitimer,
    SYS_setitimer, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete,
    // Sockets, where there are any.
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_getsockname,
    SYS_getpeername, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown,
    SYS_setsockopt, SYS_getsockopt,
];

#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const KNOWN_HERE: &[i64] = &[
    SYS_arch_prctl, SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access, SYS_poll, SYS_select, SYS_pipe, SYS_dup2,
    SYS_alarm, SYS_pause, SYS_fork, SYS_vfork, SYS_getdents, SYS_rename, SYS_renameat, SYS_mkdir, SYS_rmdir, SYS_link,
    SYS_unlink, SYS_symlink, SYS_readlink, SYS_chmod, SYS_getpgrp, SYS_time, SYS_utime, SYS_utimes, SYS_futimesat,
    SYS_epoll_create, SYS_epoll_wait, SYS_eventfd, SYS_signalfd, SYS_inotify_init, SYS_mknod, SYS_getrlimit,
    SYS_setrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
const KNOWN_HERE: &[i64] = &[SYS_renameat];
