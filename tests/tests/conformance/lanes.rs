//! The lanes that must agree. Another lane is another implementation of [`ConformingLane`] and one line in [`all`].

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::host_call::Capability;
use holdfast_contract::ids::Generation;
use holdfast_contract::manifest::{Grants, Manifest, Profile, parse};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::{Bundle, Lane, Vault};
use holdfast_lane_native::NativeLane;
use holdfast_lane_plugin::{PluginLane, PluginPlaces};
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_policy::Policy;
use holdfast_testkit::LabBuilder;
use holdfast_testkit::wasm::{MapVault, bundle, lane};

use super::{native, plugins};

/// The manifest that every lane's extension has; a case may add lines to it.
pub const MANIFEST: &str = include_str!("../../conformance/guest/manifest.yaml");

/// A lane with the conformance extension in it.
pub trait ConformingLane {
    /// Its name, as cases write it.
    fn name(&self) -> &'static str;

    /// Whether a strict replay calls it again; where it does not, the recorded answers stand for it.
    fn runs_again(&self) -> bool {
        true
    }

    /// What it is granted where grants do not matter: what it needs to be loaded.
    fn least(&self) -> Grants {
        Grants::default()
    }

    /// Puts the extension, as this manifest sets it up, into a lab.
    fn install(&self, lab: LabBuilder, manifest: &str, grants: Grants) -> (LabBuilder, Installed);

    /// The lane itself and the reference that loads the extension, for calls without a runtime.
    fn alone(&self, manifest: &str, grants: Grants) -> (Arc<dyn Lane>, ExtensionRef);
}

/// An extension in a lab.
pub struct Installed {
    /// Its digest, which is the lane's own.
    pub digest: Digest,
    /// Its bundle, where it has one.
    pub bundle: Option<Vec<u8>>,
}

impl Installed {
    fn of(vault: &MapVault, digest: Digest) -> Self {
        let bundle = vault.bundle(digest).unwrap();
        Self { digest, bundle: Some(canonical(&bundle).unwrap()) }
    }
}

/// Every interface that can be granted.
pub fn every_interface() -> Vec<String> {
    Capability::grantable().map(str::to_owned).collect()
}

/// The lanes that run under every profile. The wasm lane has a build of the extension without the imports that need a grant.
pub fn of_every_profile() -> Vec<Box<dyn ConformingLane>> {
    vec![
        Box::new(Native),
        Box::new(Wasm::build()),
        Box::new(Programs::new("process", ProcessLane::new)),
        Box::new(Programs::new("python", ProcessLane::python)),
    ]
}

/// The lanes that run under `trusted` alone.
pub fn of_trusted() -> Vec<Box<dyn ConformingLane>> {
    vec![
        Box::new(Plugins::new(
            "plugin in Rust",
            plugins::in_rust("tests/conformance/plugin-rust", "conformance_plugin"),
        )),
        Box::new(Plugins::new("plugin in C", plugins::in_c("tests/conformance/plugin-c/plugin.c"))),
    ]
}

/// Every lane, and the one for packs.
pub fn with_packs() -> Vec<Box<dyn ConformingLane>> {
    let packs: Box<dyn ConformingLane> = Box::new(Programs::new("node", ProcessLane::node));
    all().into_iter().chain([packs]).collect()
}

/// Every lane.
pub fn all() -> Vec<Box<dyn ConformingLane>> {
    of_every_profile().into_iter().chain(of_trusted()).collect()
}

fn reference(found: &FoundExtension) -> ExtensionRef {
    let FoundExtension { id, version, digest, .. } = found.clone();
    ExtensionRef { id, version, digest, generation: Generation(1) }
}

struct Native;

impl Native {
    fn manifest(text: &str) -> Manifest {
        parse(Path::new("manifest.yaml"), text).unwrap().manifest
    }
}

impl ConformingLane for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn install(&self, lab: LabBuilder, manifest: &str, grants: Grants) -> (LabBuilder, Installed) {
        // The program's own code has no bundle: nothing but interfaces and secrets can be granted to it.
        let interfaces: Vec<&str> = grants.interfaces.iter().map(String::as_str).collect();
        let secrets: Vec<&str> = grants.secrets.iter().map(String::as_str).collect();
        let extension =
            native::extension(&Self::manifest(manifest)).interfaces(&interfaces).secrets(&secrets);
        let digest = extension.to_found().digest;
        (lab.extension(extension), Installed { digest, bundle: None })
    }

    fn alone(&self, manifest: &str, _: Grants) -> (Arc<dyn Lane>, ExtensionRef) {
        let lane = NativeLane::default();
        let found = lane.add(native::extension(&Self::manifest(manifest)));
        (Arc::new(lane), reference(&found))
    }
}

struct Wasm {
    component: Vec<u8>,
    /// The same without the imports that need a grant.
    ungranted: Vec<u8>,
    vault: Arc<MapVault>,
    lane: Arc<dyn Lane>,
}

impl Wasm {
    /// Builds the guest from its source.
    fn build() -> Self {
        let vault = Arc::new(MapVault::default());
        let lane = lane(&vault);
        Self { component: built(""), ungranted: built("#define UNGRANTED\n"), vault, lane }
    }

    fn found(&self, manifest: &str, grants: Grants) -> FoundExtension {
        let component = if grants.interfaces.is_empty() { &self.ungranted } else { &self.component };
        self.vault.add_granted(manifest, component.clone(), &SandboxOptions::small(), grants)
    }
}

/// The guest with these lines before its own.
fn built(lines: &str) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/guest");
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(source).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let main = folder.path().join("main.c");
    let code = std::fs::read_to_string(&main).unwrap();
    std::fs::write(main, format!("{lines}{code}")).unwrap();
    let built = holdfast_authoring::build(folder.path(), &mut |_| {});
    let built =
        built.unwrap_or_else(|problem| panic!("{problem}\n  `./scripts/setup zig` installs the compiler"));
    std::fs::read(built.component).unwrap()
}

impl ConformingLane for Wasm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn least(&self) -> Grants {
        let (network, environment) = (vec!["127.0.0.1:9".to_owned()], vec!["LANG".to_owned()]);
        Grants { interfaces: every_interface(), network, environment, ..Grants::default() }
    }

    fn install(&self, lab: LabBuilder, manifest: &str, grants: Grants) -> (LabBuilder, Installed) {
        let found = self.found(manifest, grants);
        let installed = Installed::of(&self.vault, found.digest);
        (lab.lane(self.lane.clone(), [found]), installed)
    }

    fn alone(&self, manifest: &str, grants: Grants) -> (Arc<dyn Lane>, ExtensionRef) {
        (self.lane.clone(), reference(&self.found(manifest, grants)))
    }
}

/// What the Python guests share.
const DIRECTIVES: &[u8] = include_bytes!("../../conformance/process/directives.py");

/// A process: a program in Python that knows nothing but the protocol, a Python class, or a module for Node.
struct Programs {
    name: &'static str,
    vault: Arc<MapVault>,
    lane: Arc<dyn Lane>,
    _folder: tempfile::TempDir,
}

impl Programs {
    fn new(name: &'static str, lane: fn(Arc<dyn Vault>, Places) -> ProcessLane) -> Self {
        let (vault, folder) = (Arc::new(MapVault::default()), tempfile::tempdir().unwrap());
        let places = Places::within(folder.path());
        let lane = Arc::new(lane(vault.clone(), places));
        Self { name, vault, lane, _folder: folder }
    }

    fn found(&self, manifest: &str, grants: Grants) -> FoundExtension {
        let started = |how: &str| manifest.replace("entrypoint: conformance.wasm", how);
        let directives = ("directives.py", DIRECTIVES.to_vec());
        if self.name == "python" {
            let main = include_bytes!("../../conformance/class/main.py").to_vec();
            let bundle = Bundle {
                entrypoint: "main:Conformance".to_owned(),
                grants,
                ..bundle(&started("entrypoint: main:Conformance"), "python")
            };
            return self.vault.keep(bundle, [("main.py", main), directives]);
        }
        if self.name == "node" {
            let main = include_bytes!("../../conformance/node/main.mjs").to_vec();
            let directives = include_bytes!("../../conformance/node/directives.mjs").to_vec();
            let files = [("main.mjs", main), ("directives.mjs", directives)];
            let manifest = started("entrypoint: main.mjs");
            let bundle = Bundle { entrypoint: "main.mjs".to_owned(), grants, ..bundle(&manifest, "node") };
            return self.vault.keep(bundle, files);
        }
        let guest = include_bytes!("../../conformance/process/guest.py").to_vec();
        let bundle = Bundle { grants, ..bundle(&started("command: [python3, guest.py]"), "process") };
        self.vault.keep(bundle, [("guest.py", guest), directives])
    }
}

impl ConformingLane for Programs {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runs_again(&self) -> bool {
        false
    }

    fn install(&self, lab: LabBuilder, manifest: &str, grants: Grants) -> (LabBuilder, Installed) {
        let found = self.found(manifest, grants);
        let installed = Installed::of(&self.vault, found.digest);
        (lab.lane(self.lane.clone(), [found]), installed)
    }

    fn alone(&self, manifest: &str, grants: Grants) -> (Arc<dyn Lane>, ExtensionRef) {
        (self.lane.clone(), reference(&self.found(manifest, grants)))
    }
}

/// A dynamic library, under the profile that loads it.
struct Plugins {
    name: &'static str,
    library: Vec<u8>,
    vault: Arc<MapVault>,
    lane: Arc<dyn Lane>,
    _folder: tempfile::TempDir,
}

impl Plugins {
    fn new(name: &'static str, library: Vec<u8>) -> Self {
        let (vault, folder) = (Arc::new(MapVault::default()), tempfile::tempdir().unwrap());
        let places = PluginPlaces::within(folder.path());
        let trusted = || Policy::profile(Profile::Trusted).allows_native_plugins();
        let lane = Arc::new(PluginLane::new(vault.clone(), places, Arc::new(trusted)));
        Self { name, library, vault, lane, _folder: folder }
    }

    fn found(&self, manifest: &str, grants: Grants) -> FoundExtension {
        let manifest = manifest.replace("entrypoint: conformance.wasm", "entrypoint: conformance.so");
        let entrypoint = "conformance.so".to_owned();
        let bundle = Bundle { entrypoint, grants, ..bundle(&manifest, "plugin") };
        self.vault.keep(bundle, [("conformance.so", self.library.clone())])
    }
}

impl ConformingLane for Plugins {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runs_again(&self) -> bool {
        false
    }

    fn install(&self, lab: LabBuilder, manifest: &str, grants: Grants) -> (LabBuilder, Installed) {
        let found = self.found(manifest, grants);
        let installed = Installed::of(&self.vault, found.digest);
        (lab.lane(self.lane.clone(), [found]), installed)
    }

    fn alone(&self, manifest: &str, grants: Grants) -> (Arc<dyn Lane>, ExtensionRef) {
        (self.lane.clone(), reference(&self.found(manifest, grants)))
    }
}
