//! Work that is done by processes of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::helper::{Helper, HelperLimits};

const LIMITS: HelperLimits =
    HelperLimits { memory_bytes: 1 << 30, timeout: Duration::from_secs(60), output_bytes: 1 << 10 };

// Finding M6: each piece of work may use gigabytes, and the extensions of a home decide how many pieces there are.
#[test]
fn a_few_processes_do_the_same_work_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("helper");
    // One folder for each place: a process that finds none was one too many. No file may grow, and folders may be made.
    let script = format!(
        "#!/bin/sh\ncd {}\nfor place in a b; do\n\
         \x20 if mkdir \"$2-$place\" 2>/dev/null; then sleep 0.2; rmdir \"$2-$place\"; echo fine; exit; fi\n\
         done\necho crowded\n",
        folder.path().display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let helper = Helper { program };
    let told: Vec<String> = std::thread::scope(|scope| {
        let run = |work: &'static str| {
            let helper = &helper;
            scope.spawn(move || String::from_utf8(helper.run(work, Vec::new(), &LIMITS).unwrap()).unwrap())
        };
        let running: Vec<_> = ["compile", "render"].into_iter().flat_map(|work| [work; 6]).map(run).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(told, vec!["fine\n"; 12]);
}
