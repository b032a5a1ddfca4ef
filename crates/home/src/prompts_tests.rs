//! Prompts: the built-in one, the user's own, and what goes wrong in them.

use holdfast_contract::problem::Code;

use crate::testing::{Scene, scene, write};
use crate::{ORCHESTRATOR, PromptContext, PromptTool, Prompts};

fn context() -> PromptContext {
    PromptContext {
        agent: "Ada".into(),
        date: Some("Friday, 3 May 2030".into()),
        tools: vec![PromptTool { name: "read_file".into(), description: "Reads <a> file.".into() }],
        capabilities: vec!["memory".into(), "a calendar".into()],
        channels: vec!["chat".into(), "mail".into()],
    }
}

fn with(files: &[(&str, &[u8])]) -> Scene {
    let scene = scene();
    for (name, text) in files {
        write(scene.home.prompts().join(name), text);
    }
    scene
}

#[test]
fn the_built_in_prompt_says_what_there_is() {
    let prompts = Prompts::load(&scene().home).unwrap();
    let text = prompts.render(ORCHESTRATOR, &context()).unwrap();
    for part in
        ["You are Ada,", "This conversation began on Friday, 3 May 2030.\n", "reached on: chat, mail.\n"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let bare = prompts
        .render(ORCHESTRATOR, &PromptContext { agent: "Ada".into(), ..PromptContext::default() })
        .unwrap();
    assert!(!bare.contains("began") && !bare.contains("reached"), "{bare}");
    assert!(bare.starts_with("You are Ada") && !bare.contains("\n\n\n"), "{bare}");
    assert_eq!(prompts.render(ORCHESTRATOR, &context()).unwrap(), text);
    // What is told of tools comes with each request; five hundred of them are not written down here.
    assert!(text.len() < 3_000 && !text.contains("read_file"), "{text}");
}

#[test]
fn a_prompt_under_its_former_name_still_works() {
    let rendered = |files: &[(&str, &[u8])]| {
        let prompts = Prompts::load(&with(files).home).unwrap();
        prompts.render(ORCHESTRATOR, &context()).unwrap()
    };
    assert_eq!(rendered(&[("main.jinja2", b"I am {{ agent }}.")]), "I am Ada.");
    assert_eq!(rendered(&[("main.jinja2", b"old"), ("orchestrator.jinja2", b"new")]), "new");
    // What was written when the home was made, and nobody has changed since, does not hold back the new one.
    let former = include_bytes!("../templates/former.jinja2");
    assert!(rendered(&[("main.jinja2", former)]).contains("find_tools"));
}

#[test]
fn the_users_prompts_come_first_and_may_include_each_other() {
    let scene = with(&[
        ("orchestrator.jinja2", b"{% include \"who.jinja2\" %}!"),
        ("who.jinja2", b"\xef\xbb\xbfI am {{ agent }}"),
        ("notes.txt", b"{{ no prompt"),
    ]);
    let prompts = Prompts::load(&scene.home).unwrap();
    assert_eq!(prompts.names().collect::<Vec<_>>(), ["orchestrator", "who"]);
    assert_eq!(prompts.render(ORCHESTRATOR, &context()).unwrap(), "I am Ada!");
}

#[test]
fn what_goes_wrong_has_its_place() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "one\n{{ agnet }}\n",
            "orchestrator.jinja2:2:1",
            "A prompt knows `agent`, `date`, `channels`, `tools` and `capabilities`.",
        ),
        ("{{ tools[0].nmae }}", "orchestrator.jinja2:1:1", "A prompt knows"),
        ("\n\n{{ agent | shout }}", "orchestrator.jinja2:3:1", "unknown filter"),
        (
            "{% for a in range(9000) %}{% for b in range(9000) %}.{% endfor %}{% endfor %}",
            "orchestrator.jinja2:1:1",
            "too many steps",
        ),
        ("ok\n{% include 'part.jinja2' %}", "part.jinja2:2:1", "A prompt knows"),
        ("{% include '/etc/passwd' %}", "orchestrator.jinja2:1:1", "template not found"),
    ];
    for (text, place, expected) in cases {
        let scene = with(&[("orchestrator.jinja2", text.as_bytes()), ("part.jinja2", b"\n{{ nothing }}")]);
        let prompts = Prompts::load(&scene.home);
        let problem =
            prompts.and_then(|prompts| prompts.render(ORCHESTRATOR, &context())).unwrap_err().to_string();
        assert!(problem.starts_with("error[HF-1401]: the prompt cannot be used:"), "{problem}");
        assert!(problem.contains(place) && problem.contains(expected), "{text}\n{problem}");
    }
}

#[test]
fn all_that_cannot_be_read_is_reported_at_once() {
    let scene = with(&[
        ("a.jinja2", b"{% if %}"),
        ("b.jinja2", b"\xff"),
        ("c.jinja2", b"fine"),
        ("d.jinja2", b"\n{{ x"),
    ]);
    let problem = Prompts::load(&scene.home).unwrap_err().to_string();
    for part in ["a.jinja2:1:1", "b.jinja2:1:1", "d.jinja2:2:1"] {
        assert!(problem.contains(part), "{part}\n{problem}");
    }
    assert_eq!(problem.matches("error[HF-1401]").count(), 3, "{problem}");
}

#[test]
fn a_prompt_that_there_is_not() {
    let prompts = Prompts::load(&scene().home).unwrap();
    for (name, help) in
        [("orchestator", "Did you mean `orchestrator`?"), ("../../etc/passwd", Code::PromptUnknown.help())]
    {
        let problem = prompts.render(name, &context()).unwrap_err();
        assert_eq!((problem.code, problem.help.as_str()), (Code::PromptUnknown, help));
    }
}
