//! The stable error codes, and how an error is printed: `error[HF-1001]: what` or `warning[HF-1004]: what`, where, and
//! `help: what to do`.
//!
//! [`Problem`] is for a person at a surface; [`Fault`] is the short form that goes into frames. The catalogue in
//! `docs/reference/errors.md` is generated from [`Code::ALL`].

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};

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

            /// What the code means.
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
    ManifestUnreadable = "1001", "The manifest cannot be read", "Check that the file exists, is valid UTF-8 and is readable by your user.";
    ManifestSyntax = "1002", "The manifest is not valid YAML", "Fix the line shown; wrong indentation and unclosed quotes are the usual causes.";
    ManifestType = "1003", "A manifest field has the wrong type", "Give the field a value of the type shown; `holdfast schema manifest` lists all fields and types.";
    ManifestUnknownField = "1004", "Unknown field in the manifest", "Remove the field, or use the suggested one.";
    ManifestDuplicateKey = "1005", "Duplicate key in the manifest", "The last value counts; remove the others.";
    ManifestMissingField = "1006", "A required manifest field is missing", "Add the field shown.";
    ManifestValue = "1007", "Invalid value in the manifest", "Use one of the values shown.";
    ManifestTooLarge = "1008", "The manifest is too large", "A manifest has at most 256 KiB; keep data in the extension's own folder.";
    NotAvailable = "1009", "Not available in this version", "Remove it; the changelog says when it becomes available.";
    SettingsInvalid = "1101", "The settings are invalid", "Fix the field shown; `holdfast schema settings` prints what is allowed.";
    SettingsUnreadable = "1102", "The settings cannot be read", "Check that the file is valid UTF-8 and is readable by your user.";
    SettingsUnknownField = "1103", "Unknown field in the settings", "Remove the field, or use the suggested one.";
    SettingsDuplicateKey = "1104", "Duplicate key in the settings", "The last value counts; remove the others.";
    SettingsTooLarge = "1105", "The settings are too large", "Settings have at most 1 MiB; keep data in the workspace or in an extension's own folder.";
    SettingUnused = "1106", "A setting is for something that is not installed", "Correct the id in `config/settings.yaml`, or remove the entry.";
    PolicyInvalid = "1201", "The policy is invalid", "Fix the rule shown; `holdfast schema policy` prints what is allowed.";
    PolicyExample = "1202", "A policy rule contradicts its own example", "Change the rule or the example until they agree; a rule is loaded only when all its examples hold.";
    EnvironmentInvalid = "1301", "The .env file is invalid", "Write each line as `NAME=value`, and put a value with spaces or special characters in single quotes.";
    EnvironmentExposed = "1302", "Other users can read the .env file", "Remove their access: `chmod 600 .env`.";
    PromptInvalid = "1401", "A prompt is invalid", "Fix the line shown; `holdfast docs home` lists what a prompt may use.";
    PromptUnknown = "1402", "There is no such prompt", "Name a file in `prompts/`, without its extension.";
    HomeUnavailable = "1501", "The home cannot be used", "Check the folder's permissions, or name another home with --home.";
    HomeOwned = "1502", "Another process owns the home", "Connect to it through its control socket, or stop it: `holdfast down`.";
    WorkspaceOverlap = "1503", "The workspace and the home overlap", "Name a folder outside the home with `workspace:` in `config/settings.yaml`.";
    WorkspaceRefused = "1504", "The folder cannot be a workspace", "Name a folder that neither contains the home nor lies inside it, and that is not the root of the disk.";
    WorkspaceMissing = "1505", "The session has no workspace", "Start the chat in a project's folder, or name a folder with `workspace:` in `config/settings.yaml`.";
    ProfilePinned = "1506", "The profile cannot be changed here", "Leave `--profile` out, or start a new session with it.";
    OwnerSilent = "1507", "The process that owns the home does not answer", "It may be stopped or overloaded: `kill -CONT PID` lets a stopped process go on, `kill PID` ends it. What was acknowledged is on disk.";
    HomeIrregular = "1508", "Something in the home is of the wrong kind", "Move it away; what belongs there is made where it is needed.";
    SecretName = "1601", "Invalid secret name", "Use letters, digits and `_`, starting with a letter or `_`; write an extension's own secret as `extension.NAME`.";
    SecretReadOnly = "1602", "The secret store is read-only", "Name a store that can be written, or set the environment variable where the program is started.";
    SecretsExposed = "1603", "Other users can access a file with secrets", "Remove their access: run `chmod 600` on the file shown.";
    SecretsUnreadable = "1604", "The secrets cannot be read or written", "Check that the file shown is a regular file that you own, and that the disk has space.";
    SecretsDamaged = "1605", "The encrypted secrets are damaged", "Restore `secrets.age` from a backup, or move it away and set the secrets again; nothing was overwritten.";
    SecretsKey = "1606", "The secrets cannot be decrypted with this key", "Restore the `secrets.key` or the passphrase that they were encrypted with; nothing was overwritten.";
    SecretsBusy = "1607", "Another process is writing the secrets", "Try again in a moment; if no process is writing, stop the one that holds the lock.";
    KeyringUnavailable = "1608", "The system keyring is not available", "Unlock or start the keyring, or keep secrets in `secrets.age` instead.";
    SecretMissing = "1609", "There is no such secret", "Run `holdfast setup ID`, which asks for what an extension needs.";
    StoreUnavailable = "2001", "The log cannot be opened", "Check the folder's permissions and that the path is right.";
    StoreNewer = "2002", "The log was written by a newer version", "Use that version or a later one; this version has changed nothing.";
    StoreFull = "2003", "The disk is full", "Free some space and try again; acknowledged frames are safe, and nothing was partly written.";
    StoreWrite = "2004", "The log could not be written", "Check the disk. Acknowledged frames are safe; the session stopped at its last durable frame.";
    StoreCorrupt = "2005", "The log is damaged", "Run `holdfast log verify` to see where, and restore from a backup.";
    StoreGap = "2006", "A frame does not follow the stream's last one", "Resume the session; another writer owns the stream, or an earlier write failed.";
    StoreMissing = "2007", "No such stream, frame or blob", "Run `holdfast log list` to see the streams.";
    StoreErased = "2008", "The content was erased", "Erased content cannot be restored; its tombstone shows when and why it was erased.";
    StoreMigration = "2009", "The log could not be migrated to the current format", "Restore the backup shown, which holds the log as it was, and report this.";
    StoreLocked = "2010", "Another process owns the home", "Stop it, or connect to it through its control socket.";
    BackupInside = "2011", "The backup would be inside the home", "Name a file outside of the home, such as `holdfast backup ~/holdfast.tar.zst`; nothing was written.";
    BackupInvalid = "2012", "The backup cannot be restored", "Nothing was changed. A backup has plain files and folders, each once; use one that `holdfast backup` has written.";
    BackupDamaged = "2013", "The backup is damaged", "Nothing was changed. Copy the backup again from where it was stored, or use another one.";
    BackupIncomplete = "2014", "A file is not in the backup", "Everything else was copied. Give your user access to the file, or delete it, and make another backup.";
    StoreCut = "2015", "Frames that were acknowledged are missing from the log", "Restore a backup, or put the database's `-wal` file back before anything else is written; `holdfast docs operations` says how to go on without the frames.";
    StoreFileLimit = "2016", "A file reached its size limit", "Raise the limit on file sizes: `ulimit -f unlimited`, or `LimitFSIZE=infinity` in the service. Acknowledged frames are safe.";
    TurnBusy = "3001", "A turn is already running in this session", "Wait for it to end, or cancel it.";
    TurnUnexpected = "3002", "An input does not fit the session's state", "Nothing to do: the input came too late or twice, and was not recorded.";
    TurnLimit = "3003", "A limit was reached", "Raise the limit where the message says that it is set, or ask for less in one turn.";
    TurnCancelled = "3004", "The turn was cancelled", "Nothing to do; side effects that had begun may have happened.";
    ChildDepth = "3005", "Agents are nested too deeply", "Raise `depth_cap`, or let the agent do the task itself.";
    SessionEnded = "3006", "The session has ended", "Start a new one, or fork this one.";
    SessionFork = "3007", "The session cannot be forked", "Name a session that has started, and an id that is not in use.";
    BudgetSpent = "3008", "The daily limit is used up", "Wait until midnight, or raise the limit under `caps` in `config/policy.yaml`.";
    PriceUnknown = "3009", "The price of a model is unknown, and money is limited", "Set `price_in` and `price_out` of the model, in dollars per million tokens, under `models` in `config/settings.yaml` (0 for a model that is free), or remove the limit on money.";
    SessionId = "3010", "Invalid session id", "Choose an id of 1 to 128 characters that can be seen, or leave it out.";
    ToolUnknown = "3101", "There is no such tool", "Run `holdfast tools` to list the tools; if one is missing, `holdfast ext list` shows whether its extension loaded.";
    ToolArguments = "3102", "The arguments do not fit the tool's schema", "Correct the arguments shown and call again.";
    ToolDenied = "3103", "The call was denied", "To allow such calls, add a rule to `config/policy.yaml`, choose another `--profile`, or run it in a terminal, where you are asked; `holdfast policy explain TOOL` shows which rule decides.";
    ToolTimeout = "3104", "The tool timed out", "Raise its `timeout_ms`, or ask for less in one call.";
    ToolFailed = "3105", "The tool failed", "Read the message, which comes from the tool, and correct the call.";
    ToolInterrupted = "3106", "The tool was interrupted and its outcome is unknown", "Check whether it took effect before you call it again.";
    ToolResult = "3107", "The tool's result does not fit its output schema", "Report it to the extension's author.";
    ToolCancelled = "3108", "The call was cancelled", "If the tool has side effects, check whether they happened.";
    PathRefused = "3109", "The path is refused", "Name a regular file inside the workspace, or inside a folder that the extension is granted; the message says why this path is refused.";
    Unconfined = "3110", "Commands cannot be confined on this machine", "Nothing was run. `holdfast docs builtin-tools` lists what the operating system's kernel must support.";
    ConfinementPartial = "3111", "A confinement layer is missing on this machine", "`holdfast docs confinement` lists what the operating system's kernel must support; the profile `safe` runs no program without all of it.";
    ToolSuspended = "3112", "The tool is suspended: its circuit breaker is open after repeated failures", "Call it again after the pause shown; `holdfast ext doctor` shows the failures.";
    ToolBusy = "3113", "Timeout while waiting for a free slot to run the tool", "Ask for fewer calls at a time, or raise the tool's `concurrency` or the limits under `calls:` in the settings.";
    ResultUnknown = "3114", "There is no such result", "Name a call of this session whose result was truncated, and an offset within it.";
    FileMissing = "3115", "There is no such file", "Check the path; `file.list` lists a folder.";
    HookTimeout = "3201", "A hook timed out", "Raise its `timeout_ms` or fix it; a gate that times out denies.";
    HookFault = "3202", "A hook failed", "Run `holdfast ext doctor` to see the fault and fix the extension; a gate that fails denies.";
    HookNonsense = "3203", "A hook returned an answer that is invalid at its hook point", "Return one of the decisions that the hook point accepts; a gate may allow, deny or ask.";
    GuardBlocked = "3204", "A guardrail blocked the text", "Change the text, or the guardrail that the reason names.";
    GateUnavailable = "3205", "A gate or guardrail is not up: what it judges is denied", "Run `holdfast ext doctor ID` to see why it is down and `holdfast ext restart ID` to start it; it is no longer expected once it is disabled or removed.";
    HookSideEffect = "3206", "A hook made a host call that hooks may not make", "Hooks, context providers and guardrails change nothing outside of their session and do no I/O. Do it in a tool, a service or a subscriber, and let the hook read its result.";
    ExtensionDependency = "4001", "A dependency of an extension is missing or failed", "Install or fix the dependency shown.";
    ExtensionCycle = "4002", "Extensions depend on each other in a cycle", "Remove one of the dependencies shown.";
    ExtensionFault = "4003", "An extension failed", "Fix what the message reports in the extension's code or settings, then run `holdfast ext restart ID`.";
    ExtensionUnhealthy = "4004", "An extension reported that it is unhealthy", "It was stopped. Fix what the message reports; `holdfast ext restart ID` starts it again.";
    ExtensionQuarantined = "4006", "An extension is quarantined: the process died while its code was running", "Fix or remove it; `holdfast ext restart ID` tries it once more.";
    CrashLoop = "4007", "The process is in a crash loop", "Run `holdfast ext doctor` and read the log to see what it did last.";
    ToolReserved = "4008", "The name of a tool is reserved for a built-in extension", "Give the tool another name, or give this name to the extension: `overrides: { tool: { NAME: { extension: ID } } }` in `config/settings.yaml`.";
    ToolDuplicate = "4009", "Several extensions register a tool of one name", "Rename one of them, or choose the one to use: `overrides: { tool: { NAME: { extension: ID } } }` in `config/settings.yaml`.";
    ExtensionUnreadable = "4010", "An extension cannot be read", "Make its folder and files readable again. What served goes on; a gate that does not serve denies until it does.";
    OverrideUnknown = "4011", "An override names nothing that is registered", "Correct the id under `overrides` in `config/settings.yaml`, or remove the entry; `holdfast tools` and `holdfast ext list` show what there is.";
    ExtensionUnknown = "4005", "There is no such extension", "Run `holdfast ext list` to see what is installed.";
    ProcessKilled = "4012", "An extension's process was killed while it started", "Something outside of it killed the process, for example a lack of memory, or it did not answer in time because the machine is busy. It is started again after a pause; `holdfast ext restart ID` does so at once.";
    ComponentInvalid = "4101", "The file is not a valid component", "Build it with `holdfast ext build`; `holdfast ext check` shows the details.";
    ComponentVersion = "4102", "The component was built for another version of the interface", "Build it again with this program's `holdfast ext build`.";
    ComponentImport = "4103", "The extension uses an interface of the host that is not granted", "Grant it with the command shown, or remove the import or the call.";
    ComponentExport = "4104", "The component exports something that does not fit the interface", "Build it again with `holdfast ext build`; `wit/` has the signatures.";
    ComponentTrap = "4105", "The component trapped", "Find the place with `holdfast ext test`; the message is the WASM engine's.";
    FuelExhausted = "4106", "The call exceeded its fuel limit", "Ask for less in one call, or raise `budgets.fuel` under `wasm:` in the settings.";
    ComponentLate = "4107", "The call timed out and was stopped", "Ask for less in one call, or raise its `timeout_ms`.";
    MemoryExhausted = "4108", "The call reached a limit of memory, tables or instances", "Ask for less in one call, or raise the limit shown under `wasm:` in the settings.";
    StackExhausted = "4109", "Stack overflow in the component", "Look for infinite recursion; the limit is `stack` under `wasm:` in the settings.";
    HostCallsExhausted = "4110", "The call exceeded its limit of host calls", "Look for a loop that calls the host, logs or publishes; the limits are under `wasm:` in the settings.";
    AnswerTooLarge = "4111", "The answer is too large", "Return less; the limit is `budgets.answer_bytes` under `wasm:` in the settings.";
    SlotsExhausted = "4112", "The instance pool is exhausted", "Raise the limit shown under `wasm:` in the settings; the extension is not at fault.";
    ExtensionGone = "4113", "The code of an extension is not available", "Install the extension again; its generation was collected, or its files were removed.";
    ComponentCostly = "4114", "Compiling the component takes too much time or memory", "Build it with optimisations, or split it: a function with very many variables and branches is the usual cause.";
    BuildFailed = "4201", "The extension could not be built", "Fix what the compiler's message reports, and build again.";
    BuildTool = "4202", "A build tool is missing", "Install it as the message says, and run the command again.";
    PackagesFailed = "4203", "The packages of an extension could not be installed", "Fix the requirement that the installer's message names, or check the network.";
    PackagesRefused = "4204", "A requirement of an extension is refused", "Name packages of the index, with versions if needed; paths, URLs and options are not accepted.";
    InterpreterMissing = "4205", "The interpreter that an extension needs is not installed", "Install it on the `PATH`, and start again.";
    ListenDenied = "4211", "An extension may not listen on a port", "`holdfast ext grant ID --listen PORT` grants a port from 1024 of the loopback to a program or a Python file.";
    PortUnavailable = "4212", "A port that an extension listens on is in use", "Stop what uses the port, or set another one for the extension; then run `holdfast ext restart ID`.";
    PluginRefused = "4401", "Native plugins are loaded under the profile `trusted` only", "Read its code: nothing confines a plugin. If you trust it like this program, set `profile: trusted` in `config/policy.yaml`; otherwise build it as a component or a program.";
    PluginStuck = "4402", "A native plugin does not return from a call", "Code in this process cannot be stopped: restart the program (`holdfast restart`), and fix the plugin so that it heeds `cancel`.";
    RemoteUnavailable = "4411", "A remote is not available", "Check that the other Holdfast is up and serves at the address shown, then run `holdfast ext restart ID`.";
    RemoteRefused = "4412", "A remote was refused, or refused this home", "Check the address and the token on both sides; `holdfast docs remote-tools` says what is needed.";
    RemoteChanged = "4413", "A remote offers other definitions than those that were accepted", "Look at what has changed on the other side; accept it as the message says, then run `holdfast ext restart ID`.";
    ScheduleCron = "4301", "Invalid cron expression", "Write five fields, minute, hour, day, month and weekday: `0 3 * * *` is every day at three.";
    ScheduleNever = "4302", "A schedule is never due", "Check the day and the month: no such date exists.";
    ScheduleInterval = "4303", "Invalid interval", "Write `every 15m`, `every 1h30m` or `PT15M`.";
    ScheduleMoment = "4304", "Invalid date and time", "Write `2027-01-31T09:00:00Z`, or `2027-01-31T09:00` for the time in the schedule's zone.";
    ZoneUnknown = "4305", "There is no such time zone", "Use a name of the time zone database, such as `Europe/Vienna` or `UTC`.";
    ScheduleLimit = "4306", "An extension has too many schedules, or they are due too often", "Use fewer schedules or longer intervals; one task can do several things.";
    ScheduleUnknown = "4307", "There is no such schedule", "Run `holdfast schedule list` to see the schedules.";
    McpServerFailed = "4421", "An MCP server does not answer", "Read the reason; `holdfast mcp test NAME` starts the server and shows what it says.";
    McpChanged = "4422", "The definition of an MCP tool has changed since it was approved", "Read what changed with `holdfast mcp tools NAME`; `holdfast mcp approve NAME` approves it.";
    McpProtocol = "4423", "An MCP server violated the protocol", "Report it to the server's author; the connection was closed, and the next call opens another.";
    McpLogin = "4424", "An MCP server requires a login", "Store a token with `holdfast secret set NAME` and send it: `headers: { Authorization: 'Bearer ${NAME}' }`.";
    McpUnknown = "4425", "There is no such MCP server", "Run `holdfast mcp list` to see the servers.";
    McpImport = "4426", "The file with MCP servers cannot be imported", "Name a JSON file with an object `mcpServers`.";
    PackFailed = "4431", "A pack could not be loaded", "Read the reason; `holdfast ext restart ID` tries again once it is fixed.";
    KindUnconsumed = "4432", "Nothing consumes what an extension registers", "Nothing to do if the rest of the extension is what you use; `holdfast docs packs` lists the kinds.";
    PackUnresponsive = "4433", "A pack keeps its process busy", "Its code does not return to the event loop: report it to its author. The process was stopped, and is started again.";
    ModelFailed = "5001", "The model did not answer", "Check the provider's status and your key; the attempts are in the log.";
    ModelUnknown = "5002", "There is no such model", "Run `holdfast model list` to see what is configured.";
    ModelKey = "5003", "The provider rejected the key", "Check that the key shown is set, complete and still valid.";
    ModelRateLimit = "5004", "The provider's rate limit was reached", "Wait as long as the message says, or use another model; the request is retried automatically while attempts remain.";
    ModelUnreachable = "5005", "The provider cannot be reached", "Check the network and the model's `base_url`; for a local server, check that it runs.";
    ModelInterrupted = "5006", "The connection was lost during the answer", "Wait: the request is retried automatically while attempts remain.";
    ModelRefused = "5007", "The provider rejected the request", "Read the provider's message; a conversation that is too long and an option that the model does not support are the usual causes.";
    ProviderUnknown = "5008", "There is no such provider", "Use one of the providers shown; `holdfast docs models` describes them.";
    ProviderSettings = "5009", "The settings of a model are invalid", "Fix the setting shown; `holdfast docs models` lists them all.";
    ScriptInvalid = "5010", "A model's script is invalid", "Fix the line shown; `holdfast docs models` shows what a script may contain.";
    TapeUnreadable = "5011", "A tape cannot be read or written", "Check the file shown; record it again if it is damaged.";
    TapeMissing = "5012", "The request is not on the tape", "Record the tape again, or undo what changed the request; the nearest difference is shown.";
    ModelFile = "5013", "A model that is a file cannot be named here", "Name it in `config/settings.yaml`, with `--model`, or with `/model` in the chat of the terminal.";
    ModelAnswerSize = "5014", "The model's answer is too long", "Ask for less at once, or use another model; a server that does not stop is faulty.";
    ReplayDiverged = "6001", "The replay differs from the record", "Compare the two sides shown; the extension or the kernel changed its behaviour.";
    ReplayKernel = "6002", "The session was recorded by another version of the kernel", "Replay it with that version; until 1.0 recorded sessions do not carry over.";
    ReplayMissing = "6003", "The replay lacks something that the session needs", "Restore the generation or blob shown; it is not in the store.";
    VerifyFailed = "6004", "The log does not verify", "Look at the frames shown; SECURITY.md says what the findings prove.";
    ConnectionLost = "7001", "Disconnected from the process that owns the home", "Run the command again; it becomes the owner if there is no other.";
    ConnectionVersion = "7002", "The process that owns the home has another version", "Stop it with `holdfast down`, and run the command again.";
    TopicInvalid = "8001", "Invalid topic", "Write words with dots between them, such as `reminder.due`. In a pattern `*` matches one word, and `>` at the end matches all the rest.";
    SubscriberBehind = "8002", "A subscriber's queue is full", "Publish again later. If it stays full, look at its faults with `holdfast bus status`, and remove or restart its extension. What became a dead letter is tried again with `holdfast bus dead retry --all`.";
    BusClosed = "8003", "The bus is closed", "Nothing was published; start again and publish then.";
    HandlerLate = "8004", "A subscriber timed out", "It is retried. Raise its `deadline`, or let it do less for each event.";
    HandlerInterrupted = "8005", "A subscriber was interrupted, and its outcome is unknown", "Nothing to do: it is retried, with `repeat` set.";
    HandlerBroke = "8006", "A subscriber panicked", "Fix what the message reports; it is retried.";
    SubscriptionInvalid = "8007", "Invalid subscription", "Give it a unique name, and patterns, attempts, deadline and concurrency as described in `holdfast docs bus`.";
    DeadLetterMissing = "8008", "There is no such dead letter", "Run `holdfast bus dead list`; it may have been retried or discarded.";
    EventPayload = "8009", "The payload does not fit the event's topic", "Use the payload that `holdfast docs bus` describes for the topic.";
    EventRefused = "8010", "The extension may not publish this event", "Publish under another topic; a channel publishes its own users' messages only, and some topics are reserved.";
    ChannelUnknown = "8011", "There is no such channel", "Run `holdfast ext list` to see what is installed; `channels.default` in `config/settings.yaml` names the channel that reaches you.";
    SessionUnmade = "8012", "No session can be created for this", "Start `holdfast up` or a chat; this program creates sessions only for its own surface.";
    SubscriberDown = "8013", "The extension that an event is for is not up", "The event waits for it: `holdfast ext doctor ID` shows why it is down, `holdfast ext restart ID` starts it.";
    TopicUnknown = "8014", "No event of this topic is stored", "Run `holdfast bus list` to see the topics that have events.";
    HostCallRate = "8015", "An extension makes too many host calls", "Let it wait between calls. `calls.host_rate` in `config/settings.yaml` sets how many each extension may make.";
    UsageInvalid = "9001", "Invalid command", "Run `holdfast help` for usage.";
    CommandUnknown = "9002", "There is no such slash command", "Type `/help` for the list.";
    AttachmentInvalid = "9003", "The file cannot be attached", "Attach a supported file within the size limits; see `holdfast docs attachments`.";
    Internal = "9999", "Internal error", "Please report it, with the log.";
}

impl Code {
    /// Whether the code reports a crash of an extension's code, as opposed to a refusal that it returned or a lack of resources of the
    /// host. Repeated crashes lead to a rollback or a stop of the extension.
    pub fn is_crash(self) -> bool {
        matches!(
            self,
            Self::ExtensionFault
                | Self::ProcessKilled
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

/// A failure as recorded in a frame.
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

    /// A panic as a fault with this code: the payload that unwinding carries, where it is a text.
    pub fn panicked(code: Code, payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::new(code, format!("panicked: {}", text.unwrap_or("no message")))
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

/// Whether a problem stops the operation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It does not stop the operation.
    Warning,
    /// It stops the operation.
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

/// A failure as it is shown to a person: code, what, where, what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// Whether it stops the operation.
    pub severity: Severity,
    /// What happened.
    pub what: String,
    /// Where, if the cause is in a file.
    #[serde(rename = "where")]
    pub location: Option<Box<Location>>,
    /// What to do.
    pub help: String,
    /// Further problems found by the same check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Problem>,
}

/// How many existing names the help of an error lists.
const MAX_NAMES_LISTED: usize = 30;

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

    /// A warning with the code's usual help.
    pub fn warning(code: Code, what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(code, what) }
    }

    /// An error that concerns a whole file or folder.
    pub fn in_file(code: Code, file: &Path, what: impl Into<String>) -> Self {
        Self::new(code, what).at(Location { file: file.to_owned(), ..Location::default() })
    }

    /// An error about a name that does not exist: the help has the most similar one of those that do, and lists them. `empty` is the
    /// help if the list is empty.
    pub fn unknown(code: Code, kind: &str, name: &str, existing: &[&str], empty: &str) -> Self {
        let problem = Self::new(code, format!("there is no {kind} `{name}`"));
        let listed = existing.iter().take(MAX_NAMES_LISTED).copied().collect::<Vec<_>>().join(", ");
        let more = if existing.len() > MAX_NAMES_LISTED { ", …" } else { "" };
        match (existing.is_empty(), holdfast_yaml::nearest(name, existing.iter().copied())) {
            (true, _) => problem.help(empty),
            (false, Some(near)) => problem.help(format!("Did you mean `{near}`? There are: {listed}{more}.")),
            (false, None) => problem.help(format!("There are: {listed}{more}.")),
        }
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

    /// The same, with more specific help than the code's.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The short form for a frame.
    pub fn to_fault(&self) -> Fault {
        Fault::new(self.code, self.what.clone())
    }

    /// The same with the place of it and of every further problem, for a user who cannot see the problem itself.
    pub fn to_located_fault(&self) -> Fault {
        let placed = |problem: &Self| match &problem.location {
            Some(location) => format!("{location}: {}", problem.what),
            None => problem.what.clone(),
        };
        let all = std::iter::once(self).chain(&self.more).map(placed).collect::<Vec<_>>();
        Fault::new(self.code, all.join("; "))
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
