//! Grants: what an extension may reach, as what its manifest requests and what the user's policy gives have in common.
//!
//! [`effective_grant`] takes the two together, and [`Reach`] answers the questions of a host function: this host, this
//! file, this secret? Everything here is lexical. Symbolic links, name resolution and redirects are handled by the code that opens the file
//! or the connection.

mod held;
mod host;
mod tree;

use std::collections::BTreeSet;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{Access, FileGrant, Grants, Manifest};
use holdfast_contract::tool::EffectClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::held::HeldInterfaces;
pub(crate) use self::host::Host;
pub(crate) use self::tree::Tree;

/// What the user gives to one extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The extension.
    pub extension: ExtensionId,
    /// What the grant is tied to. Content that changed must be granted again.
    pub tied_to: Tie,
    /// What is given, in the words of a manifest's `grants`. A name may end in `*`.
    pub give: Grants,
}

/// What a grant is tied to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Tie {
    /// The content with this digest.
    Digest(Digest),
    /// Any code in this folder, an absolute path; for an extension under development.
    Path(String),
}

/// What both the manifest requests and the user gives. A text that cannot be understood gives nothing.
pub fn effective_grant(requested: &Grants, given: &Grants) -> Grants {
    Grants {
        network: meet(&requested.network, &given.network, |one, other| {
            Some(Host::parse(one).ok()?.meet(&Host::parse(other).ok()?)?.to_string())
        }),
        listen: meet(&requested.listen, &given.listen, |one, other| (one == other).then_some(*one)),
        files: meet_files(&requested.files, &given.files),
        secrets: meet(&requested.secrets, &given.secrets, |one, other| meet_names(one, other)),
        environment: meet(&requested.environment, &given.environment, |one, other| meet_names(one, other)),
        extensions: meet(&requested.extensions, &given.extensions, |one, other| {
            meet_names(one.as_str(), other.as_str()).map(ExtensionId::from)
        }),
        interfaces: meet(&requested.interfaces, &given.interfaces, |one, other| meet_names(one, other)),
    }
}

/// What an extension with this manifest gets of what the user gives. A manifest without `grants` says nothing about what the extension
/// needs, so that the hosts, ports and secrets that the user names are what it gets, as for a single file.
pub fn granted_to(manifest: &Manifest, given: &Grants) -> Grants {
    let granted = effective_grant(&manifest.requests(), given);
    if !manifest.grants.is_empty() {
        return granted;
    }
    let named = Grants {
        network: given.network.clone(),
        listen: given.listen.clone(),
        secrets: given.secrets.clone(),
        ..Grants::default()
    };
    join(&granted, &effective_grant(&named, &named))
}

/// Whether two paths name the same folder.
pub(crate) fn same_folder(one: &str, other: &str) -> bool {
    Tree::parse(one).is_ok_and(|one| Tree::parse(other).is_ok_and(|other| one == other))
}

/// Both grants together.
pub(crate) fn join(one: &Grants, other: &Grants) -> Grants {
    fn both<T: Clone + Ord>(one: &[T], other: &[T]) -> Vec<T> {
        one.iter().chain(other).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }
    Grants {
        network: both(&one.network, &other.network),
        listen: both(&one.listen, &other.listen),
        files: both(&one.files, &other.files),
        secrets: both(&one.secrets, &other.secrets),
        environment: both(&one.environment, &other.environment),
        extensions: both(&one.extensions, &other.extensions),
        interfaces: both(&one.interfaces, &other.interfaces),
    }
}

/// The same grants with `~` and relative paths made absolute, so that they can be compared with absolute ones.
pub fn rooted(grants: &Grants, home: &str, working_folder: &str) -> Grants {
    let files = grants.files.iter().filter_map(|file| {
        let path = Tree::parse(&file.path).ok()?.rooted(home, working_folder)?.to_string();
        Some(FileGrant { path, access: file.access })
    });
    Grants { files: files.collect(), ..grants.clone() }
}

/// The effect classes that these grants allow, regardless of what tools declare.
pub(crate) fn implied_effects(grants: &Grants) -> Vec<EffectClass> {
    let mut effects = Vec::new();
    if grants.files.iter().any(|file| file.access == Access::Write) {
        effects.push(EffectClass::Write);
    }
    if reaches(&grants.interfaces, "process") {
        effects.push(EffectClass::Exec);
    }
    if !grants.network.is_empty() || !grants.listen.is_empty() || reaches(&grants.interfaces, "http") {
        effects.push(EffectClass::Network);
    }
    if !grants.secrets.is_empty() {
        effects.push(EffectClass::Unknown);
    }
    effects
}

fn meet<T: Ord>(ones: &[T], others: &[T], both: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| both(one, other)).collect::<BTreeSet<T>>().into_iter().collect()
}

fn meet_files(requested: &[FileGrant], given: &[FileGrant]) -> Vec<FileGrant> {
    let met: Vec<(Tree, Access)> = meet(requested, given, |one, other| {
        let tree = Tree::parse(&one.path).ok()?.meet(Tree::parse(&other.path).ok()?)?;
        Some(FileGrant { path: tree.to_string(), access: one.access.min(other.access) })
    })
    .into_iter()
    .filter_map(|file| Some((Tree::parse(&file.path).ok()?, file.access)))
    .collect();
    let covered = |(tree, access): &(Tree, Access)| {
        met.iter()
            .any(|(wider, more)| wider.contains(tree) && more >= access && (wider, more) != (tree, access))
    };
    let kept = met.iter().filter(|file| !covered(file));
    kept.map(|(tree, access)| FileGrant { path: tree.to_string(), access: *access }).collect()
}

/// A name is itself, or with a `*` at its end everything that begins so.
fn meet_names(one: &str, other: &str) -> Option<String> {
    if covers(one, other) {
        return Some(other.to_owned());
    }
    covers(other, one).then(|| one.to_owned())
}

/// Whether a name pattern matches everything that another one does.
fn covers(wider: &str, narrower: &str) -> bool {
    match wider.strip_suffix('*') {
        Some(beginning) => narrower.starts_with(beginning),
        None => wider == narrower,
    }
}

fn reaches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| covers(pattern, name))
}

/// An effective grant, parsed for lookups.
#[derive(Clone, Debug, Default)]
pub struct GrantedAccess {
    hosts: Vec<Host>,
    files: Vec<(Tree, Access)>,
    names: Grants,
}

impl GrantedAccess {
    /// What these grants reach. A text that cannot be understood reaches nothing.
    pub fn of(grants: &Grants) -> Self {
        Self {
            hosts: grants.network.iter().filter_map(|host| Host::parse(host).ok()).collect(),
            files: grants
                .files
                .iter()
                .filter_map(|file| Some((Tree::parse(&file.path).ok()?, file.access)))
                .collect(),
            names: Grants { network: Vec::new(), listen: Vec::new(), files: Vec::new(), ..grants.clone() },
        }
    }

    /// Whether a connection to this host and port may be made. The host is a name or an address, without a port.
    pub fn host(&self, host: &str, port: u16) -> bool {
        self.hosts.iter().any(|pattern| pattern.admits(host, port))
    }

    /// Whether a connection to this host and port may be made because the host is named, not because a pattern fits.
    pub fn names_host(&self, host: &str, port: u16) -> bool {
        self.hosts.iter().any(|pattern| pattern.is_exact() && pattern.admits(host, port))
    }

    /// Whether a file or folder may be read. What may be written may be read.
    pub fn read(&self, path: &str) -> bool {
        self.file(path, Access::Read)
    }

    /// Whether a file or folder may be changed, created or removed.
    pub fn write(&self, path: &str) -> bool {
        self.file(path, Access::Write)
    }

    fn file(&self, path: &str, access: Access) -> bool {
        Tree::parse(path).is_ok_and(|path| {
            self.files.iter().any(|(tree, granted)| *granted >= access && tree.contains(&path))
        })
    }

    /// The granted folder or file that a path is in, for this access; the widest where there are several.
    pub fn file_root(&self, path: &str, access: Access) -> Option<String> {
        let path = Tree::parse(path).ok()?;
        let roots = self.files.iter().filter(|(tree, granted)| *granted >= access && tree.contains(&path));
        roots.map(|(tree, _)| tree.to_string()).min_by_key(String::len)
    }

    /// Whether a secret may be used.
    pub fn secret(&self, name: &str) -> bool {
        reaches(&self.names.secrets, name)
    }

    /// Whether an environment variable may be seen.
    pub fn environment(&self, name: &str) -> bool {
        reaches(&self.names.environment, name)
    }

    /// Whether another extension may be called.
    pub fn extension(&self, id: &ExtensionId) -> bool {
        self.names.extensions.iter().any(|pattern| covers(pattern.as_str(), id.as_str()))
    }

    /// Whether an interface of the host is linked.
    pub fn interface(&self, name: &str) -> bool {
        reaches(&self.names.interfaces, name)
    }
}
