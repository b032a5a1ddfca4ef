//! Which process of this machine listens on a port, for the message that the port is in use.

use std::fs;
use std::path::Path;

use holdfast_contract::manifest::ListenPort;
use holdfast_untrusted_files::read_text;

/// The longest table of sockets and the longest name of a process that are read.
const MAX_TABLE_BYTES: u64 = 8 << 20;
const MAX_NAME_BYTES: u64 = 4 << 10;

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The process that listens on a port, with its name, as far as this user may see it.
pub(crate) fn of(port: ListenPort) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    let tables = tables.filter_map(|file| read_text(Path::new(file), MAX_TABLE_BYTES).ok());
    let sockets: Vec<String> = tables.flat_map(|table| sockets(&table, port.number())).collect();
    let has_one = |process: &Path| {
        let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbered = processes.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((number, entry.path()))
    });
    let (number, path) = numbered.find(|(_, path)| has_one(path))?;
    let name = read_text(&path.join("comm"), MAX_NAME_BYTES).unwrap_or_default();
    Some(format!("process {number} ({})", name.trim()))
}

/// The sockets of a table that listen on a port, as links to them read.
fn sockets(table: &str, port: u16) -> Vec<String> {
    let ending = format!(":{port:04X}");
    let socket = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
        let inode = fields.nth(5)?;
        (local.ends_with(&ending) && state == LISTENS).then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(socket).collect()
}
