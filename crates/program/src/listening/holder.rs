//! Which process of this machine listens on a port, for the message that the port is in use.

use std::fs;
use std::path::Path;

use holdfast_contract::manifest::ListenPort;

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The process that listens on a port, with its name, as far as this user may see it.
pub(crate) fn of(port: ListenPort) -> Option<String> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|file| fs::read_to_string(file).ok());
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
    let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
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
