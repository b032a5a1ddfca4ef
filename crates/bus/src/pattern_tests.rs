//! Which patterns there are, and what they stand for.

use super::*;

#[test]
fn a_pattern_stands_for_these_topics_and_not_for_those() {
    let table = [
        ("user.message", "user.message", true),
        ("user.message", "user.messages", false),
        ("user.message", "user", false),
        ("user.message", "user.message.extra", false),
        ("reminder.*", "reminder.due", true),
        ("reminder.*", "reminder", false),
        ("reminder.*", "reminder.due.soon", false),
        ("*.due", "reminder.due", true),
        ("*.due", "due", false),
        ("a.*.c", "a.b.c", true),
        ("a.*.c", "a.b.d", false),
        ("system.>", "system.user.notify", true),
        ("system.>", "system.dead_letter", true),
        ("system.>", "system", false),
        ("system.>", "systems.user", false),
        ("system.*.>", "system.user", false),
        ("system.*.>", "system.user.notify", true),
        (">", "anything", true),
        (">", "any.thing.at.all", true),
        ("*", "one", true),
        ("*", "one.two", false),
    ];
    for (pattern, topic, expected) in table {
        let matches = Pattern::parse(pattern).unwrap().matches(&topic.into());
        assert_eq!(matches, expected, "{pattern} and {topic}");
    }
}

#[test]
fn a_pattern_that_could_mean_anything_is_refused() {
    for text in [
        "",
        ".",
        "a..b",
        ".a",
        "a.",
        "a b",
        "a.>.b",
        ">.a",
        "a*.b",
        "a.b>",
        "a.**",
        "tab\t",
        &"x".repeat(300),
    ] {
        let problem = Pattern::parse(text).unwrap_err();
        assert_eq!(problem.code, Code::TopicInvalid, "{text:?}: {problem}");
    }
}

#[test]
fn a_topic_is_words_without_wildcards() {
    for topic in crate::topics::ALL.iter().chain(&["a", "a.b", "größe.ändert", "a-b_c.d/e:f"]) {
        check_topic(&Topic::from(*topic)).unwrap();
    }
    for topic in ["", "a.", "a.*", "a.>", ">", "a b"] {
        assert_eq!(check_topic(&Topic::from(topic)).unwrap_err().code, Code::TopicInvalid, "{topic:?}");
    }
}
