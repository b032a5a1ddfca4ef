//! The lanes that must agree. Another lane is another implementation of [`ConformingLane`] and one line in [`all`].

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::Generation;
use holdfast_contract::manifest::{Grants, Manifest, Profile, parse};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::{Lane, Vault};
use holdfast_lane_native::NativeLane;
use holdfast_lane_plugin::{PluginLane, PluginPlaces};
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_policy::Policy;
use holdfast_testkit::LabBuilder;
use holdfast_testkit::wasm::{MapVault, lane};

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

    /// Puts the extension, as this manifest sets it up, into a lab. Gives the extension's digest, which is the lane's own.
    fn install(&self, lab: LabBuilder, manifest: &str) -> (LabBuilder, Digest);

    /// The lane itself and the reference that loads the extension, for calls without a runtime.
    fn alone(&self, manifest: &str) -> (Arc<dyn Lane>, ExtensionRef);
}

/// Every lane.
pub fn all() -> Vec<Box<dyn ConformingLane>> {
    vec![
        Box::new(Native),
        Box::new(Wasm::build()),
        Box::new(Programs::new("process", ProcessLane::new)),
        Box::new(Programs::new("python", ProcessLane::python)),
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

    fn install(&self, lab: LabBuilder, manifest: &str) -> (LabBuilder, Digest) {
        let extension = native::extension(&Self::manifest(manifest));
        let digest = extension.to_found().digest;
        (lab.extension(extension), digest)
    }

    fn alone(&self, manifest: &str) -> (Arc<dyn Lane>, ExtensionRef) {
        let lane = NativeLane::default();
        let found = lane.add(native::extension(&Self::manifest(manifest)));
        (Arc::new(lane), reference(&found))
    }
}

struct Wasm {
    component: Vec<u8>,
    vault: Arc<MapVault>,
    lane: Arc<dyn Lane>,
}

impl Wasm {
    /// Builds the guest from its source.
    fn build() -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/guest");
        let folder = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(source).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        let built = holdfast_authoring::build(folder.path(), &mut |_| {});
        let built = built
            .unwrap_or_else(|problem| panic!("{problem}\n  `./scripts/setup zig` installs the compiler"));
        let component = std::fs::read(built.component).unwrap();
        let vault = Arc::new(MapVault::default());
        let lane = lane(&vault);
        Self { component, vault, lane }
    }

    fn found(&self, manifest: &str) -> FoundExtension {
        let grants = Grants { interfaces: vec!["ui".to_owned()], ..Grants::default() };
        self.vault.add_granted(manifest, self.component.clone(), &SandboxOptions::small(), grants)
    }
}

impl ConformingLane for Wasm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn install(&self, lab: LabBuilder, manifest: &str) -> (LabBuilder, Digest) {
        let found = self.found(manifest);
        let digest = found.digest;
        (lab.lane(self.lane.clone(), [found]), digest)
    }

    fn alone(&self, manifest: &str) -> (Arc<dyn Lane>, ExtensionRef) {
        (self.lane.clone(), reference(&self.found(manifest)))
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

    fn found(&self, manifest: &str) -> FoundExtension {
        let started = |how: &str| manifest.replace("entrypoint: conformance.wasm", how);
        let directives = ("directives.py", DIRECTIVES.to_vec());
        if self.name == "python" {
            let main = include_bytes!("../../conformance/class/main.py").to_vec();
            let files = [("main.py", main), directives];
            return self.vault.add_python(
                &started("entrypoint: main:Conformance"),
                "main:Conformance",
                files,
            );
        }
        if self.name == "node" {
            let main = include_bytes!("../../conformance/node/main.mjs").to_vec();
            let directives = include_bytes!("../../conformance/node/directives.mjs").to_vec();
            let files = [("main.mjs", main), ("directives.mjs", directives)];
            return self.vault.add_node(&started("entrypoint: main.mjs"), "main.mjs", files);
        }
        let guest = include_bytes!("../../conformance/process/guest.py").to_vec();
        let files = [("guest.py", guest), directives];
        self.vault.add_files(&started("command: [python3, guest.py]"), "process", files)
    }
}

impl ConformingLane for Programs {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runs_again(&self) -> bool {
        false
    }

    fn install(&self, lab: LabBuilder, manifest: &str) -> (LabBuilder, Digest) {
        let found = self.found(manifest);
        let digest = found.digest;
        (lab.lane(self.lane.clone(), [found]), digest)
    }

    fn alone(&self, manifest: &str) -> (Arc<dyn Lane>, ExtensionRef) {
        (self.lane.clone(), reference(&self.found(manifest)))
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

    fn found(&self, manifest: &str) -> FoundExtension {
        let manifest = manifest.replace("entrypoint: conformance.wasm", "entrypoint: conformance.so");
        self.vault.add_plugin(&manifest, "conformance.so", self.library.clone())
    }
}

impl ConformingLane for Plugins {
    fn name(&self) -> &'static str {
        self.name
    }

    fn runs_again(&self) -> bool {
        false
    }

    fn install(&self, lab: LabBuilder, manifest: &str) -> (LabBuilder, Digest) {
        let found = self.found(manifest);
        let digest = found.digest;
        (lab.lane(self.lane.clone(), [found]), digest)
    }

    fn alone(&self, manifest: &str) -> (Arc<dyn Lane>, ExtensionRef) {
        (self.lane.clone(), reference(&self.found(manifest)))
    }
}
