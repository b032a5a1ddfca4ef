//! Is everything fine with the home, and if not, what to do: what `holdfast doctor` shows about it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use holdfast_contract::problem::Problem;
use rustix::fs::statvfs;
use serde::Serialize;

use crate::environment;
use crate::files::OTHERS;
use crate::home::Home;
use crate::owner::socket::{MAX_SOCKET_PATH_BYTES, fits};
use crate::prompts::Prompts;
use crate::settings::Settings;

/// Less free space than this is not fine.
const LEAST_FREE: u64 = 256 * 1024 * 1024;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// Whether it is fine.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do, if it is not fine.
    pub help: Option<String>,
}

impl Check {
    fn fine(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, ok: true, detail: detail.into(), help: None }
    }

    fn bad(name: &'static str, detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self { name, ok: false, detail: detail.into(), help: Some(help.into()) }
    }

    fn of(name: &'static str, problem: &Problem) -> Self {
        let place = problem.location.as_ref().map(|location| format!(" ({location})")).unwrap_or_default();
        let more = match problem.more.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Self::bad(name, format!("{}{place}{more}", problem.what), problem.help.clone())
    }
}

impl Home {
    /// Looks at everything, and leaves nothing behind.
    pub fn examine(&self) -> Vec<Check> {
        let mut checks = vec![self.existence()];
        if !self.exists() {
            return checks;
        }
        checks.extend([
            self.link(),
            self.writing(),
            private("folder", self.root(), "700"),
            self.env_permissions(),
            self.settings_check(),
            self.policy_check(),
            self.prompts_check(),
            self.workspace_check(),
            self.space(),
            self.socket_check(),
        ]);
        checks
    }

    fn existence(&self) -> Check {
        let shown = self.root().display();
        match fs::metadata(self.root()) {
            Ok(found) if found.is_dir() => Check::fine("home", format!("{shown}")),
            Ok(_) => Check::bad(
                "home",
                format!("{shown} is a file"),
                "Move it away, or name another home with --home.",
            ),
            Err(_) => Check::bad("home", format!("{shown} does not exist"), "Make it: `holdfast init`."),
        }
    }

    fn link(&self) -> Check {
        let target = self.canonical();
        if fs::symlink_metadata(self.root()).is_ok_and(|found| found.is_symlink()) {
            Check::fine("link", format!("the home is a link to {}", target.display()))
        } else {
            Check::fine("link", "the home is a folder of its own")
        }
    }

    fn writing(&self) -> Check {
        let path = self.root().join(format!(".examined.{}", std::process::id()));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let _ = fs::remove_file(&path);
        match made {
            Ok(_) => Check::fine("writing", "the home can be written to"),
            Err(error) => Check::bad(
                "writing",
                format!("the home cannot be written to: {error}"),
                format!("Look at `ls -ld {}` and at how it is mounted.", self.root().display()),
            ),
        }
    }

    fn env_permissions(&self) -> Check {
        let path = self.env_file();
        match environment::exposed(&path) {
            Some(problem) => Check::of("secrets", &problem),
            None if path.exists() => Check::fine("secrets", ".env can be read by you alone"),
            None => Check::fine("secrets", "there is no .env"),
        }
    }

    fn settings_check(&self) -> Check {
        match Settings::load(self) {
            Err(problem) => Check::of("settings", &problem),
            Ok(loaded) => match loaded.warnings.first() {
                Some(warning) => Check::of("settings", warning),
                None if loaded.source.is_none() => {
                    Check::fine("settings", "there is no settings file, so the defaults apply")
                }
                None => Check::fine("settings", "config/settings.yaml can be used"),
            },
        }
    }

    fn policy_check(&self) -> Check {
        match self.policy(None) {
            Err(problem) => Check::of("policy", &problem),
            Ok(policy) => {
                let profile = serde_json::to_value(policy.profile_name()).unwrap_or_default();
                let rules = policy.rules().len();
                Check::fine(
                    "policy",
                    format!("profile {}, {rules} rules", profile.as_str().unwrap_or_default()),
                )
            }
        }
    }

    fn prompts_check(&self) -> Check {
        match Prompts::load(self) {
            Err(problem) => Check::of("prompts", &problem),
            Ok(prompts) => Check::fine("prompts", prompts.names().collect::<Vec<_>>().join(", ")),
        }
    }

    fn workspace_check(&self) -> Check {
        let current = std::env::current_dir().unwrap_or_default();
        let loaded = Settings::load(self).unwrap_or_default();
        match loaded.workspace(self, &current) {
            Ok(folder) => Check::fine("workspace", folder.display().to_string()),
            Err(problem) => Check::of("workspace", &problem),
        }
    }

    fn space(&self) -> Check {
        match statvfs(self.root()) {
            Err(error) => {
                Check::bad("space", format!("the free space is not known: {error}"), "Look at `df`.")
            }
            Ok(found) => {
                let free = found.f_bavail.saturating_mul(found.f_frsize);
                let detail = format!("{} MiB are free", free / (1024 * 1024));
                if free >= LEAST_FREE {
                    Check::fine("space", detail)
                } else {
                    Check::bad("space", detail, "Free some space; the log needs room to grow.")
                }
            }
        }
    }

    fn socket_check(&self) -> Check {
        let socket = self.control_socket();
        let detail = if fits(&self.usual_socket()) {
            "the control socket is in the home".to_owned()
        } else {
            format!("the home's path is long, so the control socket is {}", socket.display())
        };
        if fits(&socket) {
            Check::fine("socket", detail)
        } else {
            Check::bad(
                "socket",
                format!("{} has more than {MAX_SOCKET_PATH_BYTES} bytes", socket.display()),
                "Set XDG_RUNTIME_DIR to a folder with a short path.",
            )
        }
    }
}

fn private(name: &'static str, path: &Path, mode: &str) -> Check {
    let found = fs::metadata(path).map_or(0, |found| found.permissions().mode() & 0o777);
    let detail = format!("{} has mode {found:03o}", path.display());
    match found & OTHERS {
        0 => Check::fine(name, detail),
        _ => Check::bad(
            name,
            format!("{detail}: others can look into it"),
            format!("`chmod {mode} {}`", path.display()),
        ),
    }
}
