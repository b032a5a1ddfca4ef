use super::*;

// Finding H6.
#[test]
fn no_wildcard_includes_a_topic_of_the_program() {
    let wide = [
        ">",
        "*.*",
        "*.message",
        "user.*",
        "user.>",
        "*.out.>",
        "*.out.telegram",
        "channel.>",
        "channel.*.*",
        "channel.*.telegram",
        "channel.out.>",
        "channel.out.*.x",
        "system.*",
        "system.>",
        "system.extension.*",
        "system.*.task",
        "*.agent.task",
        "*.>",
        "*.due",
    ];
    for pattern in wide {
        assert_eq!(TopicRule::to_subscribe(pattern), TopicRule::TooWide, "{pattern}");
    }
}

#[test]
fn a_topic_of_the_program_needs_its_capability() {
    let needs = [
        ("user.message", Capability::UserMessages),
        ("channel.out.telegram", Capability::Answers),
        ("channel.out.*", Capability::Answers),
        ("channel.out.a.b", Capability::Answers),
        ("system.user.notify", Capability::SystemEvents),
        ("system.agent.task", Capability::SystemEvents),
        ("system.extension.error", Capability::SystemEvents),
        ("system.dead_letter", Capability::SystemEvents),
    ];
    for (pattern, capability) in needs {
        assert_eq!(TopicRule::to_subscribe(pattern), TopicRule::Needs(capability), "{pattern}");
    }
}

#[test]
fn other_topics_are_open() {
    let open = [
        "*",
        "user",
        "users.message",
        "user.message.read",
        "user.typing",
        "channel",
        "channel.out",
        "channel.in.x",
        "system",
        "systems.x",
        "reminder.due",
        "reminder.*",
        "shop.>",
    ];
    for topic in open {
        assert_eq!(TopicRule::to_subscribe(topic), TopicRule::Open, "{topic}");
        assert_eq!(TopicRule::to_publish(topic), TopicRule::Open, "{topic}");
    }
}

#[test]
fn an_extension_publishes_what_it_may_ask_for() {
    assert_eq!(TopicRule::to_publish("user.message"), TopicRule::Channel);
    assert_eq!(TopicRule::to_publish("system.agent.task"), TopicRule::Needs(Capability::Agents));
    assert_eq!(TopicRule::to_publish("system.agent.background"), TopicRule::Needs(Capability::Agents));
    assert_eq!(TopicRule::to_publish("system.user.notify"), TopicRule::Needs(Capability::Channels));
    for topic in [
        "channel.out.chat",
        "system.dead_letter",
        "system.extension.state",
        "system.anything",
        "system.agent.x",
    ] {
        assert_eq!(TopicRule::to_publish(topic), TopicRule::Program, "{topic}");
    }
}
