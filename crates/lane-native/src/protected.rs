//! Names of files and folders in a workspace that run programs on the user's machine when git, an editor, a shell or CI reads them. What
//! is done about them is decided by the tools.

use std::path::Path;

/// The names of such files, and of such folders with everything in them. In lower case.
pub const PROTECTED_NAMES: &[&str] = &[
    ".git",
    ".envrc",
    ".vscode",
    ".idea",
    ".github",
    ".gitlab-ci.yml",
    ".husky",
    ".devcontainer",
    ".hg",
    ".circleci",
    ".zed",
    ".cursor",
];

/// The protected name in a path, in any case: some file systems do not tell them apart.
pub fn protected_name(path: &Path) -> Option<&'static str> {
    let names = path.iter().map(|name| name.to_string_lossy().to_lowercase());
    names.into_iter().find_map(|name| PROTECTED_NAMES.iter().copied().find(|protected| name == *protected))
}
