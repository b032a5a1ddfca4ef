//! The init process of a program's namespace: a loop that reaps children and exits when the program does, which ends everything
//! else in the namespace. It is a few instructions in a file of their own in memory, so that a program costs no second interpreter, and so
//! that nothing of this process's memory stays behind in it.
//!
//! This module holds `unsafe`: it reads the bytes between two labels that the assembler below has set. They are constant data of
//! this program, the second label follows the first, and nothing writes to them.

#![allow(unsafe_code, reason = "the argument is above")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::MemfdFlags;

// Waits for any child. The program is always the second process of its namespace. Its exit status is passed on, as a shell does: its
// code, or 128 and the signal.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .rodata.holdfast_init,\"a\"",
    ".globl holdfast_init_begin",
    ".globl holdfast_init_end",
    "holdfast_init_begin:",
    "sub rsp, 16",
    "2:",
    "mov eax, 61", // wait4(-1, stack, 0, 0)
    "mov rdi, -1",
    "mov rsi, rsp",
    "xor edx, edx",
    "xor r10d, r10d",
    "syscall",
    "cmp rax, 2",
    "je 3f",
    "cmp rax, -4", // interrupted
    "je 2b",
    "test rax, rax",
    "jns 2b",
    "mov edi, 125",
    "jmp 5f",
    "3:",
    "mov edi, dword ptr [rsp]",
    "mov eax, edi",
    "and eax, 0x7f",
    "jnz 4f",
    "shr edi, 8",
    "and edi, 0xff",
    "jmp 5f",
    "4:",
    "lea edi, [rax + 128]",
    "5:",
    "mov eax, 231", // exit_group
    "syscall",
    "holdfast_init_end:",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .rodata.holdfast_init,\"a\"",
    ".globl holdfast_init_begin",
    ".globl holdfast_init_end",
    ".balign 4",
    "holdfast_init_begin:",
    "sub sp, sp, #16",
    "2:",
    "mov x8, #260", // wait4(-1, stack, 0, 0)
    "mov x0, #-1",
    "mov x1, sp",
    "mov x2, #0",
    "mov x3, #0",
    "svc #0",
    "cmp x0, #2",
    "b.eq 3f",
    "cmn x0, #4", // interrupted
    "b.eq 2b",
    "tbz x0, #63, 2b",
    "mov x0, #125",
    "b 5f",
    "3:",
    "ldr w1, [sp]",
    "ands w2, w1, #0x7f",
    "b.ne 4f",
    "lsr w0, w1, #8",
    "and w0, w0, #0xff",
    "b 5f",
    "4:",
    "add w0, w2, #128",
    "5:",
    "mov x8, #94", // exit_group
    "svc #0",
    "holdfast_init_end:",
    ".popsection",
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn instructions() -> &'static [u8] {
    unsafe extern "C" {
        static holdfast_init_begin: u8;
        static holdfast_init_end: u8;
    }
    let (begin, end) = (&raw const holdfast_init_begin, &raw const holdfast_init_end);
    // SAFETY: both labels are in one section of constant data, the second after the first.
    unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) }
}

/// On other architectures there are no namespaces.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn instructions() -> &'static [u8] {
    &[]
}

/// The address of the file in memory.
const BASE: u64 = 0x0040_0000;
/// The length of the headers before the instructions: the file's header, and one for its only part.
const HEADERS: u64 = 64 + 56;

/// The instructions as an executable file.
fn file() -> Vec<u8> {
    let machine: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let code = instructions();
    let length = HEADERS + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // An executable, for this machine, of the only version there is.
    file.extend([2u16.to_le_bytes(), machine.to_le_bytes()].concat());
    file.extend(1u32.to_le_bytes());
    // The entry point, the offset of the program header, and no section table.
    file.extend([BASE + HEADERS, 64, 0].map(u64::to_le_bytes).concat());
    file.extend(0u32.to_le_bytes());
    file.extend([64u16, 56, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
    // One part: loaded, readable and executable, the whole file.
    file.extend([1u32, 5].map(u32::to_le_bytes).concat());
    file.extend([0, BASE, BASE, length, length, 4096].map(u64::to_le_bytes).concat());
    file.extend(code);
    file
}

/// The file, ready to be run; nothing where this machine does not run files in memory.
pub(crate) fn ready() -> Option<BorrowedFd<'static>> {
    static READY: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let made = READY.get_or_init(|| {
        if instructions().is_empty() {
            return None;
        }
        let make = |flags| rustix::fs::memfd_create("holdfast-init", flags);
        // Kernels before 6.3 do not know that a file in memory may have to say that it runs.
        let made =
            make(MemfdFlags::CLOEXEC | MemfdFlags::EXEC).or_else(|_| make(MemfdFlags::CLOEXEC)).ok()?;
        let (file, mut written) = (file(), 0);
        while written < file.len() {
            written += rustix::io::write(&made, file.get(written..)?).ok()?;
        }
        Some(made)
    });
    made.as_ref().map(AsFd::as_fd)
}
