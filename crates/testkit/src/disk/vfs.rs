//! The one place where SQLite's C interface meets the simulated disk: a VFS per disk, and the methods of its open files.
//!
//! # Why this is sound
//!
//! - A registered `sqlite3_vfs`, its name and its [`Slot`] are leaked on purpose: they are never freed, moved or unregistered, so
//!   every pointer that SQLite keeps to them stays valid. Slots are used again, so there are only as many as disks live at once.
//! - SQLite allocates `szOsFile` bytes for each open file, suitably aligned for pointers. [`open`] fills them with an [`OpenFile`]
//!   before it sets `pMethods`; SQLite calls a file's methods only while that is set, never after `xClose`, and never two
//!   at once for one file. [`close`] takes the value out again and drops it.
//! - An open file owns a reference to its disk, so the disk, and the shared memory that SQLite has mapped, outlive it. Mapped
//!   regions are freed when their last user has unmapped them (`xShmUnmap`), after which SQLite holds no pointer to them. They are atomics, so
//!   writes through the shared pointer are allowed, and no Rust code looks into them.
//! - Buffers that SQLite passes are valid for the length it passes with them, and not touched by anyone else during the call. A read
//!   buffer is filled with zeros before a reference to it is made.
//! - A panic cannot cross into C: it aborts at the `extern "C"` boundary.
#![allow(unsafe_code, reason = "SQLite's VFS is a C interface; the argument stands above")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rusqlite::ffi;

use super::Shared;
use super::journal::{FileId, SECTOR};
use super::locks::{HandleId, Level, Refusal, SharedMemoryLock};
use super::random::Random;

/// A registered VFS. It serves one disk at a time.
pub(super) struct Slot {
    name: String,
    disk: Mutex<Weak<Shared>>,
}

impl Slot {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn point_to(&self, disk: &Arc<Shared>) {
        *self.disk.lock() = Arc::downgrade(disk);
    }

    fn disk(&self) -> Result<Arc<Shared>, Refusal> {
        self.disk.lock().upgrade().ok_or(ffi::SQLITE_CANTOPEN)
    }
}

struct Slots {
    free: Vec<&'static Slot>,
    made: usize,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots { free: Vec::new(), made: 0 });

/// A slot that no disk uses.
pub(super) fn take() -> &'static Slot {
    let mut slots = SLOTS.lock();
    slots.free.pop().unwrap_or_else(|| {
        slots.made += 1;
        register(format!("holdfast-disk-{}", slots.made))
    })
}

/// Returns a slot whose disk is gone, and with it every file that was open through it.
pub(super) fn give_back(slot: &'static Slot) {
    SLOTS.lock().free.push(slot);
}

fn register(name: String) -> &'static Slot {
    let c_name = CString::new(name.as_str()).expect("a name without NUL").into_raw();
    let slot: &'static Slot = Box::leak(Box::new(Slot { name, disk: Mutex::default() }));
    let vfs = Box::into_raw(Box::new(ffi::sqlite3_vfs {
        iVersion: 1,
        szOsFile: size_of::<OpenFile>() as c_int,
        mxPathname: 1024,
        pNext: std::ptr::null_mut(),
        zName: c_name,
        pAppData: std::ptr::from_ref(slot).cast_mut().cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: None,
        xCurrentTimeInt64: None,
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }));
    // SAFETY: the structure is complete and never freed.
    let answer = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
    assert_eq!(answer, ffi::SQLITE_OK, "SQLite takes a VFS");
    slot
}

/// What SQLite allocates for an open file; begins with what SQLite knows of it.
#[repr(C)]
struct OpenFile {
    base: ffi::sqlite3_file,
    handle: Handle,
}

struct Handle {
    disk: Arc<Shared>,
    file: FileId,
    id: HandleId,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

fn answer(result: Result<(), Refusal>) -> c_int {
    result.err().unwrap_or(ffi::SQLITE_OK)
}

/// # Safety
/// The pointer is a VFS of [`register`].
unsafe fn slot_of(vfs: *mut ffi::sqlite3_vfs) -> &'static Slot {
    // SAFETY: `register` put the leaked slot there.
    unsafe { &*(*vfs).pAppData.cast::<Slot>() }
}

/// # Safety
/// The pointer is a file of [`open`] that is not yet closed; the reference is not kept beyond the call.
unsafe fn handle_of<'call>(file: *mut ffi::sqlite3_file) -> &'call Handle {
    // SAFETY: `open` put an `OpenFile` there.
    unsafe { &(*file.cast::<OpenFile>()).handle }
}

/// # Safety
/// The pointer is null or a C string that lives through the call.
unsafe fn text_of<'call>(text: *const c_char) -> Option<&'call str> {
    // SAFETY: checked for null; the caller vouches for the rest.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }).and_then(|text| text.to_str().ok())
}

fn unsigned(number: i64) -> Result<u64, Refusal> {
    u64::try_from(number).map_err(|_| ffi::SQLITE_MISUSE)
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: `file` points to `szOsFile` bytes that are ours to fill; SQLite wants `pMethods` set even if opening fails.
    unsafe { (*file).pMethods = std::ptr::null() };
    // SAFETY: SQLite passes one of our VFSs.
    let disk = match unsafe { slot_of(vfs) }.disk() {
        Ok(disk) => disk,
        Err(refusal) => return refusal,
    };
    // SAFETY: SQLite passes null or a C string.
    let opened = disk.lock().open(unsafe { text_of(name) }, flags);
    match opened {
        Err(refusal) => refusal,
        Ok((number, id)) => {
            let handle = Handle { disk, file: number, id };
            let opened = OpenFile { base: ffi::sqlite3_file { pMethods: &METHODS }, handle };
            // SAFETY: as above: the memory is ours, large enough and aligned; nothing in it needs dropping.
            unsafe { std::ptr::write(file.cast::<OpenFile>(), opened) };
            if !out_flags.is_null() {
                // SAFETY: not null, so SQLite wants an answer there.
                unsafe { *out_flags = flags };
            }
            ffi::SQLITE_OK
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: `open` put the value there, and SQLite calls nothing on this file afterwards, so it is taken out once.
    let OpenFile { handle, .. } = unsafe { std::ptr::read(file.cast::<OpenFile>()) };
    // SAFETY: the memory is still there; this marks the file as closed.
    unsafe { (*file).pMethods = std::ptr::null() };
    handle.disk.lock().close(handle.file, handle.id);
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    // SAFETY: SQLite passes one of our VFSs and a C string.
    let (slot, name) = unsafe { (slot_of(vfs), text_of(name)) };
    let name = name.ok_or(ffi::SQLITE_IOERR_DELETE);
    answer(name.and_then(|name| slot.disk()?.lock().delete(name, sync_directory != 0)))
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _question: c_int,
    exists: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes one of our VFSs and a C string.
    let (slot, name) = unsafe { (slot_of(vfs), text_of(name)) };
    let found = match slot.disk() {
        Ok(disk) => name.is_some_and(|name| disk.lock().exists(name)),
        Err(refusal) => return refusal,
    };
    // SAFETY: SQLite wants its answer there.
    unsafe { *exists = c_int::from(found) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    full: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if name.len() > usize::try_from(room).unwrap_or(0) {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: the target has room for `room` bytes, and the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr().cast(), full, name.len()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, room: c_int, target: *mut c_char) -> c_int {
    let noise = Random::seeded(now().as_nanos() as u64).noise(usize::try_from(room).unwrap_or(0));
    // SAFETY: the target has room for `room` bytes.
    unsafe { std::ptr::copy_nonoverlapping(noise.as_ptr().cast(), target, noise.len()) };
    room
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    std::thread::sleep(Duration::from_micros(u64::try_from(microseconds).unwrap_or(0)));
    microseconds
}

unsafe extern "C" fn current_time(_vfs: *mut ffi::sqlite3_vfs, target: *mut f64) -> c_int {
    const UNIX_EPOCH_AS_JULIAN_DAY: f64 = 2_440_587.5;
    // SAFETY: SQLite wants its answer there.
    unsafe { *target = UNIX_EPOCH_AS_JULIAN_DAY + now().as_secs_f64() / 86_400.0 };
    ffi::SQLITE_OK
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: SQLite passes an open file and a buffer of that length, which is zeroed before it is referred to.
    let (handle, buffer) = unsafe {
        std::ptr::write_bytes(buffer.cast::<u8>(), 0, length);
        (handle_of(file), std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length))
    };
    answer(unsigned(offset).and_then(|offset| handle.disk.lock().read(handle.file, offset, buffer)))
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes an open file and that many bytes.
    let (handle, bytes) = unsafe {
        let length = usize::try_from(length).unwrap_or(0);
        (handle_of(file), std::slice::from_raw_parts(bytes.cast::<u8>(), length))
    };
    answer(unsigned(offset).and_then(|offset| handle.disk.lock().write(handle.file, offset, bytes)))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes an open file.
    let handle = unsafe { handle_of(file) };
    answer(unsigned(size).map(|size| handle.disk.lock().truncate(handle.file, size)))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    let handle = unsafe { handle_of(file) };
    let delay = handle.disk.lock().sync_delay;
    if !delay.is_zero() {
        std::thread::sleep(delay);
    }
    answer(handle.disk.lock().sync(handle.file))
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes an open file and wants its answer there.
    unsafe {
        let handle = handle_of(file);
        *size = i64::try_from(handle.disk.lock().size(handle.file)).unwrap_or(i64::MAX);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    let handle = unsafe { handle_of(file) };
    answer(handle.disk.lock().file(handle.file).lock.raise(handle.id, Level::from_sqlite(level)))
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    let handle = unsafe { handle_of(file) };
    handle.disk.lock().file(handle.file).lock.lower(handle.id, Level::from_sqlite(level));
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, reserved: *mut c_int) -> c_int {
    // SAFETY: SQLite passes an open file and wants its answer there.
    unsafe {
        let handle = handle_of(file);
        *reserved = c_int::from(handle.disk.lock().file(handle.file).lock.is_reserved());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    _file: *mut ffi::sqlite3_file,
    _operation: c_int,
    _argument: *mut c_void,
) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    SECTOR as c_int
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    index: c_int,
    size: c_int,
    extend: c_int,
    target: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes an open file.
    let handle = unsafe { handle_of(file) };
    let (index, size) = (usize::try_from(index).unwrap_or(0), usize::try_from(size).unwrap_or(0));
    let region = handle.disk.lock().file(handle.file).memory.map(handle.id, index, size, extend != 0);
    // SAFETY: SQLite wants its answer there. The disk keeps the region until this handle and all others have unmapped it.
    unsafe { *target = region.map_or(std::ptr::null_mut(), |region| region.as_ptr().cast_mut().cast()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite passes an open file.
    let handle = unsafe { handle_of(file) };
    let (first, count) = (usize::try_from(first).unwrap_or(0), usize::try_from(count).unwrap_or(0));
    let request = SharedMemoryLock::from_sqlite(flags);
    answer(request.and_then(|request| {
        handle.disk.lock().file(handle.file).memory.lock(handle.id, first, count, request)
    }))
}

unsafe extern "C" fn shm_barrier(_file: *mut ffi::sqlite3_file) {
    fence(Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    let handle = unsafe { handle_of(file) };
    handle.disk.lock().file(handle.file).memory.unmap(handle.id);
    ffi::SQLITE_OK
}
