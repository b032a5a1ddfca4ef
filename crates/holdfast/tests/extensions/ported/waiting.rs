//! What an extension needs of the user while nobody talks to it: a host that it was not granted, and its setup.

use std::fs;

use serde_json::{Value, json};

use super::{EAGER, class, scene, server, state};
use crate::shared::{Owner, Scene, until};

fn waiting(scene: &Scene) -> Vec<Value> {
    let listed = scene.run(&["questions", "list", "--json"]).ok().lines();
    listed.into_iter().filter(|it| it["extension"] == "eager").collect()
}

fn asked_about(scene: &Scene, port: u16) -> Option<Value> {
    let about = format!("127.0.0.1:{port},");
    waiting(scene).into_iter().find(|it| it["question"].to_string().contains(&about))
}

#[test]
fn a_use_outside_a_turn_raises_a_question_that_can_be_answered_later() {
    let scene = scene();
    let port = server();
    class(&scene, "eager", &format!("config: {{ first: {port} }}\n"), EAGER);
    let owner = Owner::begin(&scene);
    let data = scene.home().join("data/eager");
    until("it was refused", || data.join("refused").exists());
    until("three questions wait", || waiting(&scene).len() == 3);
    let id = |port: u16| asked_about(&scene, port).unwrap()["id"].as_str().unwrap().to_owned();
    scene.run(&["questions", "answer", &id(port), "perhaps"]).fails(2, "HF-9001");
    scene.run(&["questions", "answer", &id(port + 1), "no"]).ok();
    let always = id(port);
    assert!(always.starts_with("system/"), "{always}");
    scene.run(&["questions", "answer", &always, "always"]).ok();
    assert!(scene.policy_text().contains(&format!("127.0.0.1:{port}")), "{}", scene.policy_text());
    until("it works with the grant", || data.join("got").exists());
    // Its second life has asked for all hosts again by now.
    let left = waiting(&scene);
    assert!(left.len() == 1 && asked_about(&scene, port + 2).is_some(), "one question each: {left:?}");
    scene.run(&["questions", "answer", &always, "always"]).fails(2, "HF-2007");
    drop(owner);
    scene.verifies();
}

/// A class that notes how often it is asked whether it is set up, and whether it is well.
const COUNTS: &str = "
class It:
    async def initialize(self, context):
        self.context = context
    def note(self, name):
        with open(self.context.data_dir / name, 'a') as file:
            file.write('x')
    def health_check(self):
        self.note('healthy')
        return True
    def get_setup_schema(self):
        return [{'name': 'colour'}]
    async def on_setup_complete(self):
        self.note('complete')
        return True, 'all is well'
";

#[test]
fn each_extension_is_asked_about_its_setup_once() {
    let scene = scene();
    let ids: Vec<String> = (1..=4).map(|number| format!("counts{number}")).collect();
    ids.iter().for_each(|id| class(&scene, id, "", COUNTS));
    scene.settings("models: { default: offline }\nhealth: { every_seconds: 1 }\n");
    let _owner = Owner::begin(&scene);
    let noted = |id: &str, name: &str| {
        fs::read_to_string(scene.home().join("data").join(id).join(name)).unwrap_or_default().len()
    };
    until("all are asked twice", || ids.iter().all(|id| noted(id, "healthy") >= 2));
    for id in &ids {
        assert_eq!(noted(id, "complete"), 1, "{id}");
    }
    // What changes of one of them concerns no other.
    scene.run(&["ext", "reload", "counts1"]).ok();
    let healthy = noted("counts2", "healthy");
    until("all are asked again", || ids.iter().all(|id| noted(id, "healthy") > healthy + 2));
    assert_eq!((noted("counts1", "complete"), noted("counts2", "complete")), (2, 1));
}

#[test]
fn a_setup_that_hangs_holds_up_no_turn_of_others() {
    let scene = scene();
    let hangs = COUNTS.replace("return True, 'all is well'", "import asyncio; await asyncio.Event().wait()");
    class(&scene, "hangs", "", &hangs);
    class(
        &scene,
        "works",
        "",
        "class It:\n    def get_tools(self):\n        def ping() -> str: return 'pong'\n        return [ping]\n",
    );
    let _owner = Owner::begin(&scene);
    until("it is active", || state(&scene, "hangs")["state"] == "ACTIVE");
    let began = std::time::Instant::now();
    assert!(super::call(&scene, "ping", &json!({})).contains("pong"));
    assert!(began.elapsed().as_secs() < 25, "it waits for no setup: {:?}", began.elapsed());
}
