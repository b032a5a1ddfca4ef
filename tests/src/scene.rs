//! A home with extensions in its folder, and an application on it.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_app::{Application, ApplicationConfig, BuiltIns, recorded_lanes};
use holdfast_home::Home;
use holdfast_kernel::ExtensionView;
use holdfast_replay::{Mode, ReplayVerdict, replay};
use holdfast_runtime::{SilentSurface, TurnReport};
use holdfast_testkit::wasm::manifest;

/// After this a test gives up. It only has to be longer than the slowest machine needs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A home in a folder of its own, and a folder elsewhere to start in.
pub struct Scene {
    /// Holds the home and the folder elsewhere.
    pub folder: tempfile::TempDir,
}

impl Scene {
    /// A home without extensions, under the profile `full-auto`.
    #[expect(clippy::new_without_default, reason = "it creates folders")]
    pub fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(scene.folder.path().join("home/config")).unwrap();
        fs::write(scene.folder.path().join("home/config/policy.yaml"), "profile: full-auto\n").unwrap();
        fs::create_dir_all(scene.folder.path().join("elsewhere")).unwrap();
        scene
    }

    /// The configuration of an application on this home.
    pub fn plan(&self) -> ApplicationConfig {
        ApplicationConfig {
            home: Home::locate(Some(self.folder.path().join("home")), &|_| None).unwrap(),
            profile: None,
            built_ins: |_| BuiltIns::default(),
            environment: |_| None,
            current: self.folder.path().join("elsewhere"),
            progress: |_, _| {},
            log: None,
            log_level: None,
        }
    }

    /// Starts an application on this home.
    pub async fn open(&self) -> Application {
        Application::open(&self.plan(), Arc::new(SilentSurface)).await.unwrap()
    }

    /// The folder of an extension.
    pub fn extension(&self, id: &str) -> std::path::PathBuf {
        self.folder.path().join("home/extensions").join(id)
    }

    /// Writes an extension as a careful tool does: the component beside its place, and then into it.
    pub fn write(&self, id: &str, component: &[u8]) {
        let folder = self.extension(id);
        fs::create_dir_all(&folder).unwrap();
        let beside = folder.join(".new");
        fs::write(&beside, component).unwrap();
        fs::rename(beside, folder.join(format!("{id}.wasm"))).unwrap();
        if !folder.join("manifest.yaml").exists() {
            fs::write(folder.join("manifest.yaml"), manifest(id, "")).unwrap();
        }
    }
}

/// Waits for the generation that serves to be this one.
pub async fn serves(application: &Application, id: &str, generation: u64) {
    let what = format!("generation {generation} of `{id}`");
    until(application, &what, |all| {
        let it = all.iter().find(|it| it.id.as_str() == id);
        it.and_then(|it| it.active.as_ref()).is_some_and(|active| active.generation.0 == generation)
    })
    .await;
}

/// Waits until this holds of the extensions.
pub async fn until(application: &Application, what: &str, holds: impl Fn(&[ExtensionView]) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let all = application.runtime.extensions().await.unwrap();
        if holds(&all) {
            return;
        }
        assert!(Instant::now() < deadline, "{what} did not come about: {all:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Calls a tool in a session of its own.
pub async fn call(application: &Application, session: &str, tool: &str) -> TurnReport {
    let new = application.session(session.into(), "test", Some("direct".into())).unwrap();
    let handle = application.runtime.open(new).unwrap();
    handle.say("test", format!("/{tool} {{}}").as_str()).await.unwrap()
}

/// What the user was told.
pub fn said(report: &TurnReport) -> String {
    report.answer.as_ref().map(|answer| answer.to_text()).unwrap_or_default()
}

/// A strict replay, on the code that was recorded.
pub fn again(scene: &Scene, application: &Application, session: &str) -> ReplayVerdict {
    application.runtime.store().flush().unwrap();
    let lanes = recorded_lanes(&scene.plan(), application.runtime.store()).unwrap();
    replay(application.runtime.store(), &session.into(), Mode::Strict, &lanes).unwrap()
}
