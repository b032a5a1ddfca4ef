//! Names of files and folders in a workspace that run programs on the user's machine when git, an editor, a shell, a package manager or
//! CI reads them. What is done about them is decided by the tools.

use std::path::Path;

/// The names of such files, and of such folders with everything in them, as they are written. A `*` stands for any end or beginning.
pub const PROTECTED_NAMES: &[&str] = &[
    // Version control, and what runs at a commit.
    ".git",
    "*.git",
    ".gitmodules",
    ".hg",
    ".svn",
    ".jj",
    ".husky",
    ".pre-commit*",
    "lefthook*",
    ".lefthook*",
    // What a shell, ssh or git reads at its start, where the workspace is a user's own folder.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".ssh",
    ".gitconfig",
    // Shells and tools that read a folder's file when it is entered.
    ".envrc",
    ".direnv",
    ".autoenv*",
    ".mise*",
    "mise.*",
    ".rtx.toml",
    ".rvmrc",
    ".tool-versions",
    // Editors.
    ".vscode",
    "*.code-workspace",
    ".vs",
    ".idea",
    ".devcontainer*",
    ".zed",
    ".helix",
    ".fleet",
    "*.sublime-project",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".exrc",
    ".dir-locals.el",
    // Agents: their settings, and the instructions that they follow.
    ".mcp.json",
    ".cursor*",
    ".aider*",
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    ".windsurf*",
    ".continue*",
    ".cline*",
    ".roo",
    ".roomodes",
    ".roorules*",
    ".kiro",
    ".junie",
    ".amazonq",
    ".goosehints",
    "AGENTS.*",
    "CLAUDE.*",
    "GEMINI.*",
    // CI.
    ".github",
    ".gitlab-ci*",
    ".gitea",
    ".forgejo",
    ".circleci",
    ".travis.yml",
    ".drone.*",
    ".woodpecker*",
    ".buildkite",
    "Jenkinsfile*",
    "azure-pipelines*",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    ".appveyor.yml",
    // Package managers whose settings name programs.
    ".cargo",
    ".npmrc",
    ".yarnrc*",
    ".pnpmfile.cjs",
];

/// The entries that make a folder a git repository without the name `.git`: git reads its configuration.
pub const BARE_REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];

/// The protected name in a path, in any case: some file systems do not tell them apart.
pub fn protected_name(path: &Path) -> Option<&'static str> {
    let mut names = path.iter().map(|name| name.to_string_lossy().to_lowercase());
    names.find_map(|name| PROTECTED_NAMES.iter().copied().find(|protected| is_named(&name, protected)))
}

/// The part of a protected name that is in every path with it.
pub fn protected_part(protected: &str) -> &str {
    protected.trim_matches('*')
}

fn is_named(name: &str, protected: &str) -> bool {
    let protected = protected.to_lowercase();
    match (protected.strip_prefix('*'), protected.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == protected,
    }
}
