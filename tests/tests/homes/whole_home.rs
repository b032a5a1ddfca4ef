//! A home of two hundred extensions in three lanes, some of them broken: what can come up does, in order, and goes in the reverse.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use holdfast_app::{Application, ApplicationConfig, BuiltIns};
use holdfast_contract::body::Body;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::{ExtensionState, LifecycleCommand};
use holdfast_contract::wire::{Lane, Later};
use holdfast_lane_native::{Lifecycle, NativeExtension, NativeLane, now};
use holdfast_runtime::SilentSurface;
use holdfast_runtime::diagnosis::recent_faults;
use holdfast_testkit::wasm::{Does, manifest, tool};
use holdfast_tests::scene::Scene;

const NATIVE: usize = 60;
const SANDBOXED: usize = 90;
const DECLARED: usize = 40;

/// A life that goes well, or fails to start.
struct Life {
    starts: bool,
}

impl Lifecycle for Life {
    fn start(&self) -> Later<Result<(), Fault>> {
        let failed = || Fault::new(Code::ExtensionFault, "the port is taken");
        now(if self.starts { Ok(()) } else { Err(failed()) })
    }
}

/// Sixty native extensions, most of which depend on two earlier or later ones; one cannot start.
fn native(_: &holdfast_app::BuiltInContext<'_>) -> BuiltIns {
    let lane = NativeLane::default();
    let mut extensions = Vec::new();
    for number in 0..NATIVE {
        // Against the order of their names, so that names do not bring it about.
        let needs: Vec<String> = [number + 1, number + 7]
            .iter()
            .filter(|it| **it < NATIVE)
            .map(|it| format!("n{it:02}"))
            .collect();
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        let extension = NativeExtension::new(&format!("n{number:02}"), "1.0.0").depends_on(&needs);
        extensions.push(lane.add(extension.lifecycle(Life { starts: true })));
    }
    extensions
        .push(lane.add(NativeExtension::new("broken-start", "1.0.0").lifecycle(Life { starts: false })));
    BuiltIns { lanes: vec![Arc::new(lane) as Arc<dyn Lane>], extensions, ..BuiltIns::default() }
}

fn write(scene: &Scene, id: &str, manifest: &str, component: Option<&[u8]>) {
    let folder = scene.extension(id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    if let Some(component) = component {
        fs::write(folder.join(format!("{id}.wasm")), component).unwrap();
    }
}

/// Writes what is broken, each in its own way, with the code that must be told; and those who depend on it.
fn write_broken(scene: &Scene) -> BTreeMap<&'static str, Code> {
    let good = tool("echo", &Does::Says("one"));
    write(scene, "broken-syntax", "id: [broken-syntax\n", Some(&good));
    write(scene, "broken-field", "id: broken-field\n", Some(&good));
    write(scene, "broken-id", &manifest("another", ""), Some(&good));
    write(scene, "broken-code", &manifest("broken-code", ""), Some(&good[..good.len() / 2]));
    write(scene, "broken-missing", &manifest("broken-missing", "entrypoint: gone.wasm\n"), None);
    write(scene, "broken-needs", &manifest("broken-needs", "depends_on: [nobody]\n"), Some(&good));
    write(scene, "broken-circle", &manifest("broken-circle", "depends_on: [circle-mate]\n"), Some(&good));
    write(scene, "circle-mate", &manifest("circle-mate", "depends_on: [broken-circle]\n"), Some(&good));
    write(scene, "broken-lane", &manifest("broken-lane", "entrypoint: index.js\n"), None);
    fs::write(scene.extension("broken-lane").join("index.js"), "export default {};\n").unwrap();
    write(scene, "broken-value", &manifest("broken-value", "depends_on: { one: two }\n"), Some(&good));
    write(
        scene,
        "waits",
        &manifest("waits", "depends_on: [broken-start]\n"),
        Some(&tool("w", &Does::Says("w"))),
    );
    let agent = "id: helper\nname: Helper\ndepends_on: [waits]\nagent: { instructions: Help. }\n";
    write(scene, "helper", agent, None);
    BTreeMap::from([
        ("broken-syntax", Code::ManifestSyntax),
        ("broken-field", Code::ManifestMissingField),
        ("broken-id", Code::ManifestValue),
        ("broken-code", Code::ComponentInvalid),
        ("broken-missing", Code::ManifestValue),
        ("broken-needs", Code::ExtensionDependency),
        ("broken-circle", Code::ExtensionCycle),
        ("circle-mate", Code::ExtensionCycle),
        ("broken-lane", Code::ExtensionFault),
        ("broken-value", Code::ManifestType),
        ("broken-start", Code::ExtensionFault),
        ("waits", Code::ExtensionDependency),
        ("helper", Code::ExtensionDependency),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_come_up_does_in_order_and_goes_in_the_reverse() {
    let scene = Scene::new();
    for number in 0..SANDBOXED {
        let (id, needs) = (format!("s{number:02}"), format!("depends_on: [n{:02}]\n", number % NATIVE));
        let component = tool(&format!("echo{number}"), &Does::Says("one"));
        write(&scene, &id, &manifest(&id, &needs), Some(&component));
    }
    for number in 0..DECLARED {
        let (id, needs) = (format!("d{number:02}"), format!("s{number:02}"));
        let text = format!("id: {id}\nname: {id}\ndepends_on: [{needs}]\nagent: {{ instructions: Help. }}\n");
        write(&scene, &id, &text, None);
    }
    let broken = write_broken(&scene);
    let plan = ApplicationConfig { built_ins: native, ..scene.plan() };
    let application = Application::open(&plan, Arc::new(SilentSurface)).await.unwrap();
    application.runtime.settled().await.unwrap();

    let all = application.runtime.extensions().await.unwrap();
    let up = all.iter().filter(|it| it.active.is_some()).count();
    let down: Vec<_> = all.iter().filter(|it| it.active.is_none()).collect();
    assert_eq!(up, NATIVE + SANDBOXED + DECLARED, "{down:#?}");
    let told: BTreeMap<&str, Code> =
        down.iter().map(|it| (it.id.as_str(), it.fault.as_ref().unwrap().code)).collect();
    assert_eq!(told, broken, "{down:#?}");
    let message =
        |id: &str| down.iter().find(|it| it.id.as_str() == id).unwrap().fault.clone().unwrap().message;
    assert!(
        message("waits").contains("`broken-start`, which failed: the port is taken"),
        "{}",
        message("waits")
    );
    assert!(message("helper").contains("`waits`, which failed"), "{}", message("helper"));

    application.runtime.store().flush().unwrap();
    let faults = recent_faults(application.runtime.store(), None, 5).unwrap();
    for id in broken.keys() {
        let of_it: Vec<_> = faults.iter().filter(|fault| fault.extension.as_str() == *id).collect();
        assert!(!of_it.is_empty() && of_it.iter().all(|fault| !fault.fix.is_empty()), "{id}: {of_it:#?}");
    }
    let start = faults.iter().find(|fault| fault.extension.as_str() == "broken-start").unwrap();
    assert_eq!((start.phase.as_str(), start.code), ("start", "HF-4003"));

    application.runtime.stop("the test is over").await.unwrap();
    let store = application.runtime.store();
    let frames = store.frames(&StreamId::system(), Seq(0)..).unwrap();
    let bodies: Vec<Body> = frames.iter().map(|frame| store.body(frame).unwrap()).collect();
    let found = |body: &Body| match body {
        Body::ExtensionsFound(fact) => fact.found.clone(),
        _ => Vec::new(),
    };
    let needs: BTreeMap<String, Vec<String>> = bodies
        .iter()
        .flat_map(found)
        .map(|it| (it.id.to_string(), it.depends_on.iter().map(ToString::to_string).collect()))
        .collect();
    let mut risen: Vec<String> = Vec::new();
    let mut stopped: Vec<String> = Vec::new();
    for body in &bodies {
        match body {
            Body::ExtensionStateChanged(it) if it.state == ExtensionState::Active => {
                assert!(
                    needs[it.id.as_str()].iter().all(|need| risen.contains(need)),
                    "{} came too early",
                    it.id
                );
                risen.push(it.id.to_string());
            }
            Body::ExtensionCommanded(it) if it.command == LifecycleCommand::Stop => {
                stopped.push(it.extension.id.to_string());
            }
            _ => {}
        }
    }
    assert_eq!(risen.len(), NATIVE + SANDBOXED + DECLARED);
    let mut with_lives: Vec<String> = risen.into_iter().filter(|id| id.starts_with('n')).collect();
    with_lives.reverse();
    stopped.retain(|id| id.starts_with('n'));
    assert_eq!(stopped, with_lives, "in the exact reverse");
}
