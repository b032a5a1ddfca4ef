//! The topics that the program itself uses. The bus treats them like any other.

/// A user said something on a channel.
pub const USER_MESSAGE: &str = "user.message";
/// Something is to be shown to the user.
pub const USER_NOTIFY: &str = "system.user.notify";
/// Something is to be shown to the user in the next chat of the terminal.
pub const USER_TERMINAL: &str = "system.user.terminal";
/// An agent is to do something, and the user is told the answer.
pub const AGENT_TASK: &str = "system.agent.task";
/// An agent is to do something; the answer is not shown.
pub const AGENT_BACKGROUND: &str = "system.agent.background";
/// An extension failed.
pub const EXTENSION_ERROR: &str = "system.extension.error";
/// An extension's state changed.
pub const EXTENSION_STATE: &str = "system.extension.state";
/// An event became a dead letter. No such notice is published for a notice.
pub const DEAD_LETTER: &str = "system.dead_letter";

/// Every one of them.
pub const ALL: &[&str] = &[
    USER_MESSAGE,
    USER_NOTIFY,
    USER_TERMINAL,
    AGENT_TASK,
    AGENT_BACKGROUND,
    EXTENSION_ERROR,
    EXTENSION_STATE,
    DEAD_LETTER,
];
