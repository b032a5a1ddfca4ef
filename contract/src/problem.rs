//! What can go wrong, under codes that stay: `error[HF-1001]: what` or `warning[HF-1004]: what`, where, and `help: what to do`.
//!
//! [`Problem`] is for a person at a surface; [`Fault`] is the short form that goes into frames. The catalogue in
//! `docs/reference/errors.md` is generated from [`Code::ALL`].

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal, $help:literal;)+) => {
        /// A stable error code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $name,)+
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// The code as it is printed.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => concat!("HF-", $number),)+ }
            }

            /// What the code stands for.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)+ }
            }

            /// What usually helps.
            pub fn help(self) -> &'static str {
                match self { $(Code::$name => $help,)+ }
            }
        }
    };
}

codes! {
    ManifestUnreadable = "1001", "The manifest cannot be read", "Check that the file exists, is valid UTF-8 and can be read by you.";
    ManifestSyntax = "1002", "The manifest is not valid YAML", "Mend the line that is named; indentation and unclosed quotes are the usual causes.";
    ManifestType = "1003", "A field of the manifest has the wrong type", "Give the field a value of the type that is named; `docs/reference/manifest.md` lists them all.";
    ManifestUnknownField = "1004", "The manifest has a field that nobody reads", "Remove the field, or use the one that is suggested.";
    ManifestDuplicateKey = "1005", "A key stands twice in the manifest", "The last value counts; remove the others.";
    ManifestMissingField = "1006", "The manifest lacks a required field", "Add the field that is named.";
    ManifestValue = "1007", "A field of the manifest has a value that cannot be", "Use one of the values that are named.";
    ManifestTooLarge = "1008", "The manifest is too large", "A manifest has at most 256 KiB; keep data in the extension's own folder.";
    SettingsInvalid = "1101", "The settings cannot be used", "Mend the field that is named; `holdfast schema settings` prints what is allowed.";
    SettingsUnreadable = "1102", "The settings cannot be read", "Check that the file is valid UTF-8 and can be read by you.";
    SettingsUnknownField = "1103", "The settings have a field that nobody reads", "Remove the field, or use the one that is suggested.";
    SettingsDuplicateKey = "1104", "A key stands twice in the settings", "The last value counts; remove the others.";
    SettingsTooLarge = "1105", "The settings are too large", "Settings have at most 1 MiB; keep data in the workspace or in an extension's own folder.";
    PolicyInvalid = "1201", "The policy cannot be used", "Mend the rule that is named; `holdfast schema policy` prints what is allowed.";
    PolicyExample = "1202", "A policy rule contradicts its own example", "Change the rule or the example until they agree; a rule is loaded only when all its examples hold.";
    EnvironmentInvalid = "1301", "The .env file cannot be used", "Each line is `NAME=value`; a value with spaces or signs stands in single quotes.";
    EnvironmentExposed = "1302", "The .env file can be read by others", "Take the others' access away: `chmod 600 .env`.";
    PromptInvalid = "1401", "A prompt cannot be used", "Mend the line that is named; `docs/home.md` lists what a prompt may use.";
    PromptUnknown = "1402", "There is no such prompt", "Name a file in `prompts/`, without its ending.";
    HomeUnavailable = "1501", "The home cannot be used", "Check the folder's permissions, or name another home with --home.";
    HomeOwned = "1502", "Another process owns the home", "Attach to it through its control socket, or stop it: `holdfast down`.";
    WorkspaceOverlap = "1503", "The workspace and the home overlap", "Name a folder beside the home with `workspace:` in `config/settings.yaml`.";
    WorkspaceRefused = "1504", "The folder cannot be a workspace", "Name a folder that neither holds the home folder nor lies in it, and that is not the root of the disk.";
    SecretName = "1601", "The name cannot be a secret's", "A name has letters, digits and `_`, and begins with a letter or `_`; an extension's own is written `extension.NAME`.";
    SecretReadOnly = "1602", "Secrets cannot be written there", "Name a store that takes secrets, or set the variable where the program is started.";
    SecretsExposed = "1603", "A file with secrets can be reached by others", "Take the others' access away: `chmod 600` for the file that is named.";
    SecretsUnreadable = "1604", "The secrets cannot be read or written", "Check that the file that is named is a plain file of yours, and that the disk has room.";
    SecretsDamaged = "1605", "The encrypted secrets are damaged", "Restore `secrets.age` from a backup, or move it away and set the secrets anew; nothing was overwritten.";
    SecretsKey = "1606", "The secrets cannot be opened with this key", "Put back the `secrets.key` or the passphrase that they were written with; nothing was overwritten.";
    SecretsBusy = "1607", "Another process is writing the secrets", "Try again in a moment; if nobody is writing, end the process that holds the lock.";
    KeyringUnavailable = "1608", "The system's keyring cannot be reached", "Unlock or start the keyring, or keep secrets in `secrets.age` instead.";
    SecretMissing = "1609", "There is no such secret", "`holdfast setup` asks for what an extension needs.";
    StoreUnavailable = "2001", "The log cannot be opened", "Check the folder's permissions and that the path is right.";
    StoreNewer = "2002", "The log was written by a newer version", "Use that version or a later one; this one has changed nothing.";
    StoreFull = "2003", "The disk is full", "Free some space and try again; what was acknowledged is safe, nothing was half-written.";
    StoreWrite = "2004", "The log could not be written", "Check the disk; what was acknowledged is safe. The session stopped at its last durable frame.";
    StoreCorrupt = "2005", "The log is damaged", "Run `holdfast log verify` to see where, and restore from a backup.";
    StoreGap = "2006", "A frame does not follow the stream's last one", "Another writer owns the stream, or an earlier write failed; resume the session.";
    StoreMissing = "2007", "No such stream, frame or blob", "`holdfast log list` shows what there is.";
    StoreErased = "2008", "The content was erased", "Erased content cannot come back; its tombstone shows when and why it went.";
    StoreMigration = "2009", "The log could not be brought to the current format", "The backup that is named holds it as it was; restore it and report this.";
    StoreLocked = "2010", "Another process owns the home", "Stop it, or attach to it through its control socket.";
    TurnBusy = "3001", "A turn is already running in this session", "Wait for it to end, or cancel it.";
    TurnUnexpected = "3002", "An input does not fit the session's state", "This is a fact that came too late or twice; it was not recorded.";
    TurnLimit = "3003", "A limit was reached", "Raise the limit where the message says that it is set, or ask for less at once.";
    TurnCancelled = "3004", "The turn was cancelled", "Nothing to do; side effects that had begun may have happened.";
    ChildDepth = "3005", "Agents are nested too deeply", "Raise `depth_cap`, or let the agent do the task itself.";
    SessionEnded = "3006", "The session has ended", "Start a new one, or fork this one.";
    SessionFork = "3007", "The session cannot be forked", "Name a session that has begun, and an id that is free.";
    BudgetSpent = "3008", "What may be used in a day is used up", "Wait until midnight, or raise what is allowed under `caps` in `config/policy.yaml`.";
    ToolUnknown = "3101", "There is no such tool", "`holdfast tools` lists the tools; the extension may be disabled or gone.";
    ToolArguments = "3102", "The arguments do not fit the tool's schema", "Correct what is named and call again.";
    ToolDenied = "3103", "The call was denied", "The reason names the gate or rule; `holdfast policy explain` says more.";
    ToolTimeout = "3104", "The tool did not answer in time", "Raise its `timeout_ms`, or ask for less at once.";
    ToolFailed = "3105", "The tool failed", "The message is the tool's own.";
    ToolInterrupted = "3106", "The tool was interrupted and its outcome is unknown", "Check whether it took effect before calling it again.";
    ToolResult = "3107", "The tool's result does not fit its output schema", "Report it to the extension's author.";
    ToolCancelled = "3108", "The call was cancelled", "If the tool has side effects, check whether they happened.";
    PathRefused = "3109", "The path is refused", "Name an ordinary file inside the workspace; the message says why this one is refused.";
    Unconfined = "3110", "Commands cannot be confined on this machine", "Nothing was run. `docs/builtin-tools.md` says what the kernel must offer.";
    ConfinementPartial = "3111", "A layer of confinement is missing on this machine", "`docs/confinement.md` says what the kernel must offer; the profile `safe` runs no program without all of it.";
    ToolSuspended = "3112", "The tool is left alone for a while because it kept breaking down", "Call it again after the pause that is named; `holdfast ext doctor` shows what went wrong.";
    ToolBusy = "3113", "The tool had no place free in time", "Ask for less at once, or raise its `concurrency`, or the places under `calls:` in the settings.";
    ResultUnknown = "3114", "There is no such result", "Name a call of this session whose result was cut, and a place within it.";
    HookTimeout = "3201", "A hook did not answer in time", "A gate that does not answer denies; raise its `timeout_ms` or mend it.";
    HookFault = "3202", "A hook failed", "A gate that fails denies; `holdfast ext doctor` shows the fault.";
    HookNonsense = "3203", "A hook gave an answer that does not fit its point", "A gate may allow, deny or ask; see `docs/reference/hooks.md`.";
    GuardBlocked = "3204", "A guardrail blocked the text", "The reason names the guardrail.";
    ExtensionDependency = "4001", "An extension depends on one that is missing or failed", "Install or mend the dependency that is named.";
    ExtensionCycle = "4002", "Extensions depend on each other in a circle", "Remove one of the dependencies that are named.";
    ExtensionFault = "4003", "An extension failed", "`holdfast ext doctor ID` shows the phase and the message.";
    ExtensionUnhealthy = "4004", "An extension reported that it is not well", "`holdfast ext doctor ID` shows more; it was stopped.";
    ExtensionQuarantined = "4006", "An extension is kept down because the process died while it was starting", "Mend or remove it; `holdfast ext restart ID` tries it once more.";
    CrashLoop = "4007", "The process keeps dying", "`holdfast ext doctor` and the log say what it did last.";
    ExtensionUnknown = "4005", "There is no such extension", "`holdfast ext list` shows what is installed.";
    ComponentInvalid = "4101", "The file is no component that can be run", "Build it with `holdfast ext build`, which makes components; `holdfast ext check` says more.";
    ComponentVersion = "4102", "The component was built for another version of the interface", "Build it again with this program's `holdfast ext build`.";
    ComponentImport = "4103", "The component imports something that it does not get", "Grant it with the command that is named, or build the component without the import.";
    ComponentExport = "4104", "The component exports something that does not fit the interface", "Build it again with `holdfast ext build`; `wit/` has the signatures.";
    ComponentTrap = "4105", "The component trapped", "The message is the engine's; `holdfast ext test` helps to find the place.";
    FuelExhausted = "4106", "The call used up its fuel", "Ask for less at once, or raise `budgets.fuel` under `wasm:` in the settings.";
    ComponentLate = "4107", "The call took too long and was stopped", "Ask for less at once, or raise its `timeout_ms`.";
    MemoryExhausted = "4108", "The call reached a limit of memory, tables or instances", "Ask for less at once, or raise the limit that is named under `wasm:` in the settings.";
    StackExhausted = "4109", "The call used up its stack", "Look for a recursion without end; the limit is `stack` under `wasm:` in the settings.";
    HostCallsExhausted = "4110", "The call asked too much of the host", "Look for a loop that asks the host, logs or publishes; the limits are under `wasm:` in the settings.";
    AnswerTooLarge = "4111", "The answer is too large", "Return less; the limit is `budgets.answer_bytes` under `wasm:` in the settings.";
    SlotsExhausted = "4112", "The host has no room for another instance", "Raise the limit that is named under `wasm:` in the settings; this is not the extension's fault.";
    ExtensionGone = "4113", "The code of an extension is not at hand", "Its generation was collected, or its files were removed; install the extension again.";
    BuildFailed = "4201", "The extension could not be built", "The message is the compiler's own.";
    BuildTool = "4202", "A tool that builds extensions is missing", "Install it as the message says, and run the command again.";
    PackagesFailed = "4203", "The packages of an extension could not be installed", "The message is the installer's own; mend the requirement that it names, or check the network.";
    PackagesRefused = "4204", "A requirement of an extension is refused", "Name packages of the index, with versions if you like; paths, addresses and options are not taken.";
    InterpreterMissing = "4205", "The interpreter that an extension needs is not on this machine", "Install it, so that its name is found on the `PATH`, and start again.";
    ScheduleCron = "4301", "A cron expression cannot be used", "Write five fields, minute, hour, day, month and weekday: `0 3 * * *` is every day at three.";
    ScheduleNever = "4302", "A schedule is never due", "Check the day and the month: no such date ever comes.";
    ScheduleInterval = "4303", "An interval cannot be used", "Write `every 15m`, `every 1h30m` or `PT15M`.";
    ScheduleMoment = "4304", "A moment cannot be used", "Write `2027-01-31T09:00:00Z`, or `2027-01-31T09:00` for the time in the schedule's zone.";
    ZoneUnknown = "4305", "There is no such time zone", "Use a name of the time zone database, such as `Europe/Vienna` or `UTC`.";
    ModelFailed = "5001", "The model did not answer", "Check the provider's status and your key; the attempts are in the log.";
    ModelUnknown = "5002", "There is no such model", "`holdfast model list` shows what is configured.";
    ModelKey = "5003", "The provider does not accept the key", "Check the key that is named: is it set, whole, and still valid?";
    ModelRateLimit = "5004", "The provider asks to slow down", "Wait as long as the message says, or use another model; the request is made again by itself while attempts are left.";
    ModelUnreachable = "5005", "The provider cannot be reached", "Check the network and the model's `base_url`; for a local server, that it runs.";
    ModelInterrupted = "5006", "The answer broke off", "The connection was lost in the middle of the answer; the request is made again by itself while attempts are left.";
    ModelRefused = "5007", "The provider refused the request", "The message is the provider's own; a too long conversation or an option that the model does not know are the usual causes.";
    ProviderUnknown = "5008", "There is no such provider", "Use one of the providers that are named; `docs/models.md` says more about them.";
    ProviderSettings = "5009", "The settings of a model cannot be used", "Mend the setting that is named; `docs/models.md` lists them all.";
    ScriptInvalid = "5010", "A model's script cannot be used", "Mend the line that is named; `docs/models.md` shows what a script may say.";
    TapeUnreadable = "5011", "A tape cannot be read or written", "Check the file that is named; record it anew if it is damaged.";
    TapeMissing = "5012", "The request is not on the tape", "Record the tape anew, or undo what changed the request; the nearest difference is named.";
    ReplayDiverged = "6001", "The replay differs from the record", "Both sides are shown; the extension or the kernel changed its behaviour.";
    ReplayKernel = "6002", "The session was recorded by another version of the kernel", "Replay it with that version; until 1.0 recorded sessions do not carry over.";
    ReplayMissing = "6003", "The replay lacks something the session needs", "The generation or blob that is named is not in the store.";
    VerifyFailed = "6004", "The log does not verify", "The findings name each frame; SECURITY.md says what they prove.";
    ConnectionLost = "7001", "The process that owns the home cannot be reached", "Run the command again; it becomes the owner if nobody else is.";
    ConnectionVersion = "7002", "The process that owns the home is of another version", "Stop it, and run the command again.";
    TopicInvalid = "8001", "The topic cannot be used", "A topic is words with dots between, such as `reminder.due`. In a pattern `*` stands for one word, and `>` at the end for all the rest.";
    SubscriberBehind = "8002", "A subscriber is too far behind", "Publish again later. If it stays behind, look at its faults with the bus's status, give it more `concurrency`, or raise its `backlog`.";
    BusClosed = "8003", "The bus has been closed", "Nothing was published; start again and publish then.";
    HandlerLate = "8004", "A subscriber did not finish in time", "It is tried again. Raise its `deadline`, or let it do less at once.";
    HandlerInterrupted = "8005", "A subscriber was interrupted, and its outcome is unknown", "It is tried again, and told that this is a repeat.";
    HandlerBroke = "8006", "A subscriber broke down", "The message is its own panic; it is tried again.";
    SubscriptionInvalid = "8007", "A subscription cannot be used", "Give it a name of its own, and patterns, attempts, deadline and concurrency as `docs/bus.md` has them.";
    DeadLetterMissing = "8008", "There is no such dead letter", "List the dead letters; it may have been retried or discarded meanwhile.";
    EventPayload = "8009", "An event does not say what its topic's events say", "`docs/bus.md` has the payloads of the program's own topics.";
    EventRefused = "8010", "The event may not be published by this extension", "A channel brings its own users' messages only, and some topics are the program's own.";
    ChannelUnknown = "8011", "There is no such channel", "`holdfast ext list` shows what is installed. `channels.default` in `config/settings.yaml` names the one that reaches you.";
    SessionUnmade = "8012", "No session can be opened for this", "The program that runs here opens sessions only for its surfaces.";
    UsageInvalid = "9001", "The command cannot be understood", "`holdfast help` shows how it is used.";
    CommandUnknown = "9002", "There is no such slash command", "`/help` shows what can be typed.";
    AttachmentInvalid = "9003", "The file cannot be attached", "docs/attachments.md says what can be, and how large it may be.";
    Internal = "9999", "Something that cannot happen happened", "Please report it, with the log.";
}

impl Code {
    /// Whether it says that an extension's code broke down, not that it gave an answer that is a refusal, nor that the host had
    /// no room for it. So many of these, and the extension gives way.
    pub fn is_a_crash(self) -> bool {
        matches!(
            self,
            Self::ExtensionFault
                | Self::HookTimeout
                | Self::HookNonsense
                | Self::ComponentTrap
                | Self::FuelExhausted
                | Self::ComponentLate
                | Self::MemoryExhausted
                | Self::StackExhausted
                | Self::HostCallsExhausted
                | Self::AnswerTooLarge
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let code = Code::ALL.iter().find(|code| code.as_str() == text);
        code.copied().ok_or_else(|| serde::de::Error::custom(format!("unknown error code `{text}`")))
    }
}

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let all: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        schemars::json_schema!({ "type": "string", "enum": all })
    }
}

/// A failure as it stands in a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The stable code.
    pub code: Code,
    /// What happened, in one sentence.
    pub message: String,
}

impl Fault {
    /// A fault with this code and message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// Where in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 where only the file is known.
    pub line: u32,
    /// The column, from 1; 0 where only the line is known.
    pub column: u32,
    /// The field, written `agent.limits.max_turns`.
    pub field: Option<String>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column.max(1))?;
        }
        match &self.field {
            Some(field) => write!(f, " ({field})"),
            None => Ok(()),
        }
    }
}

/// Whether a problem stops what was asked for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It goes on all the same.
    Warning,
    /// It does not.
    #[default]
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A failure as a person meets it: code, what, where, what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// Whether it stops what was asked for.
    pub severity: Severity,
    /// What happened.
    pub what: String,
    /// Where, if a file is to blame.
    #[serde(rename = "where")]
    pub location: Option<Box<Location>>,
    /// What to do.
    pub help: String,
    /// What was found wrong in the same go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Problem>,
}

impl Problem {
    /// An error with the code's usual help.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        let severity = Severity::Error;
        Self {
            code,
            severity,
            what: what.into(),
            location: None,
            help: code.help().to_owned(),
            more: Vec::new(),
        }
    }

    /// The same for what does not stop anything.
    pub fn warning(code: Code, what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(code, what) }
    }

    /// Several problems as one, which is printed as all of them.
    pub fn all(problems: impl IntoIterator<Item = Problem>) -> Option<Self> {
        let mut problems = problems.into_iter();
        let mut first = problems.next()?;
        first.more.extend(problems);
        Some(first)
    }

    /// The same, with another severity.
    pub fn with(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same, with a place.
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(Box::new(location));
        self
    }

    /// The same, with better help than the code's.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The short form for a frame.
    pub fn to_fault(&self) -> Fault {
        Fault::new(self.code, self.what.clone())
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code, fault.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.code, self.what)?;
        if let Some(location) = &self.location {
            write!(f, "\n  --> {location}")?;
        }
        write!(f, "\n  help: {}", self.help)?;
        self.more.iter().try_for_each(|problem| write!(f, "\n{problem}"))
    }
}
