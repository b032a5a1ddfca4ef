//! Signs that a text wants something of a model, each with a weight. None is proof; together they are likely.

use crate::base64;
use crate::hidden::MARK;

/// What a text looks like.
pub struct Judged {
    /// How likely it holds instructions: the sum of its signs' weights.
    pub score: u64,
    /// What was found.
    pub signs: Vec<&'static str>,
}

struct Sign {
    what: &'static str,
    weight: u64,
    /// Each list has a word or phrase in the text, in this order, with no more than so many words between.
    rows: &'static [&'static [&'static str]],
    within: usize,
    /// With which letters the first list's phrases begin: most words of most texts begin with others.
    initials: u32,
    /// Whether a `not` or `never` before it makes it harmless advice.
    positive: bool,
}

const fn sign(what: &'static str, weight: u64, within: usize, rows: &'static [&'static [&'static str]]) -> Sign {
    let mut initials = 0;
    let mut at = 0;
    while at < rows[0].len() {
        initials |= initial(rows[0][at]);
        at += 1;
    }
    Sign { what, weight, rows, within, initials, positive: false }
}

/// The letter that a word begins with, as a bit; one bit for all that are not Latin.
const fn initial(word: &str) -> u32 {
    match word.as_bytes() {
        [first @ b'a'..=b'z', ..] => 1 << (*first - b'a'),
        _ => 1 << 26,
    }
}

const GIVE_UP: &[&str] = &[
    "ignore", "ignoring", "disregard", "forget", "override", "bypass", "discard", "skip", "neglect", "do not follow", "don t follow",
    "stop following", "pay no attention to", "do not obey", "are void", "no longer follow",
];
const EARLIER: &[&str] = &[
    "previous", "prior", "above", "earlier", "preceding", "existing", "original", "your", "all", "any", "system", "initial", "former",
    "these", "foregoing", "safety", "other",
];
const ORDERS: &[&str] = &[
    "instructions", "instruction", "prompt", "prompts", "rules", "guidelines", "directions", "directives", "commands", "guardrails",
    "constraints", "programming", "restrictions", "policies", "orders", "system message",
];
const TELL: &[&str] = &[
    "send", "post", "upload", "forward", "email", "mail", "exfiltrate", "leak", "transmit", "reveal", "print", "output", "repeat",
    "disclose", "share", "include", "append", "submit", "encode", "paste", "list", "read", "copy",
];
const PRIVATE: &[&str] = &[
    "system prompt", "api key", "api keys", "passwords", "password", "credentials", "secrets", "private key", "ssh key", "ssh keys",
    "environment variables", "env file", "conversation history", "chat history", "access token", "access tokens", "id rsa",
    "initial instructions", "your instructions", "hidden instructions", "user s messages", "session token", "seed phrase",
    "contents of env", "entire conversation", "user s email", "user s emails", "customer list", "memory file",
];
const MODEL: &[&str] = &[
    "ai", "ai assistant", "ai agent", "ai model", "ai models", "ai agents", "ai assistants", "assistant", "language model", "language models", "llm", "llms",
    "chatbot", "ai system", "ai systems", "automated agent", "the model", "gpt", "claude", "gemini", "copilot", "bot reading this",
];
const DUTY: &[&str] = &["must", "should", "shall", "you are required", "are required", "need to", "have to", "please", "you will", "are instructed", "is instructed", "mandatory"];
const USER: &[&str] = &["the user", "the human", "the owner", "your user", "your operator", "the operator"];

const SIGNS: &[Sign] = &[
    sign("it says to ignore instructions", 5, 5, &[GIVE_UP, EARLIER, ORDERS]),
    sign("it says to forget everything", 5, 2, &[
        &["forget", "ignore", "disregard", "erase"],
        &["everything above", "everything before", "everything you were told", "everything you have been told", "all of the above", "everything else",
          "what you were told", "what you have been told", "everything you know", "your training", "the above text"],
    ]),
    sign("it gives new instructions", 3, 3, &[
        &["new", "updated", "revised", "real", "actual", "important", "additional", "secret", "override", "priority", "following"],
        &["instructions for the", "instructions for you", "instruction for the", "instructions to the ai", "instructions from the developer",
          "system instructions", "system instruction", "system prompt", "instruction from the system", "instructions supersede", "task for you", "directive for"],
    ]),
    sign("it speaks for the system", 4, 2, &[
        &["system override", "admin override", "administrator override", "developer mode enabled", "developer mode is on", "enter developer mode", "debug mode enabled", "maintenance mode enabled", "root access granted",
          "begin system prompt", "end system prompt", "end of user input", "end of document new task", "jailbreak mode", "you are jailbroken", "god mode", "unrestricted mode",
          "do anything now", "sudo mode", "system message from"],
    ]),
    sign("it gives the model another role", 3, 3, &[
        &["you are now", "from now on you", "pretend to be", "pretend you are", "pretend that you", "act as though you", "act as if you", "roleplay as", "your new role", "your new task",
          "your new goal", "your only goal", "your new objective", "you will now act", "assume the role", "switch to"],
        &["an", "a", "the", "no", "unrestricted", "dan", "is", "are", "have", "evil", "free", "without", "respond", "of", "must", "will"],
        &["assistant", "ai", "model", "restrictions", "rules", "filters", "dan", "hacker", "unrestricted", "unfiltered", "limits", "attacker", "pirate", "bot", "agent",
          "guidelines", "only", "transfer", "exfiltrate", "persona", "developer", "admin", "mode"],
    ]),
    sign("it is addressed to the model", 2, 4, &[MODEL, DUTY]),
    sign("it is addressed to the model", 2, 3, &[
        &["attention", "note to", "message to", "message for", "note for", "dear", "hey", "if you are", "if you re", "to any", "to all", "instructions for", "hello", "important for", "as an", "hi"],
        MODEL,
    ]),
    Sign { positive: true, ..sign("it asks for what is private", 4, 8, &[TELL, PRIVATE]) },
    sign("it wants the user not to know", 4, 3, &[
        &["do not", "don t", "never", "without"],
        &["tell", "telling", "mention", "mentioning", "inform", "informing", "alert", "alerting", "notify", "notifying", "reveal", "ask", "asking", "warn", "warning", "show", "let"],
        USER,
    ]),
    sign("it wants the user not to know", 4, 3, &[
        &["do not", "don t", "never"],
        &["mention", "reveal", "disclose", "report"],
        &["this instruction", "these instructions", "this message", "this request", "this step", "this to"],
    ]),
    sign("it wants a tool called", 3, 6, &[
        &["call", "use", "invoke", "run", "execute", "trigger"],
        &["tool", "function", "shell tool", "send email tool", "tool call", "mcp", "plugin"],
        &["to send", "to delete", "to upload", "to fetch", "to post", "to transfer", "with the", "with arguments", "immediately", "before answering", "before responding",
          "before you", "now", "with path", "with url", "to read", "to write", "and send", "to download", "with command", "silently", "to email"],
    ]),
    sign("it wants something done first", 3, 4, &[
        &["before answering", "before responding", "before you answer", "before you respond", "before doing anything", "before continuing", "before summarizing",
          "instead of summarizing", "instead of answering", "when summarizing", "in your response", "in your answer", "in your reply", "in your summary", "as your answer", "your final answer", "respond only with", "reply only with", "answer only with"],
        &["you must", "must", "first", "always", "include", "say", "output", "call", "send", "visit", "tell", "run", "recommend", "state", "add", "write", "execute", "is", "the"],
    ]),
    sign("it wants a command run", 3, 4, &[
        &["curl", "wget", "bash c", "powershell", "rm rf", "nc e", "sh c", "eval"],
        &["http", "https", "etc passwd", "base64 d", "ssh", "id rsa", "env", "home", "dev tcp"],
        &["you must", "the agent", "ai", "assistant", "without", "silently", "immediately", "for you", "d", "data", "bash", "sh"],
    ]),
    sign("it moves money or access", 3, 6, &[
        &["transfer", "wire", "grant", "approve", "add", "change", "send"],
        &["to account", "to this wallet", "to the wallet", "to wallet", "admin access", "collaborator", "the beneficiary", "write access", "the payment", "all funds", "bitcoin to"],
        &["immediately", "without", "automatically", "do not", "you must", "the assistant", "the agent", "now", "ai"],
    ]),
    // The same in other languages, in the words that are used.
    sign("it says to ignore instructions", 5, 4, &[
        &["ignoriere", "ignorieren sie", "vergiss", "vergessen sie", "missachte", "missachten sie"],
        &["anweisungen", "anweisung", "regeln", "vorgaben", "befehle", "was dir gesagt wurde"],
    ]),
    sign("it says to ignore instructions", 5, 4, &[
        &["ignorez", "ignore", "ignora", "ignorar", "ignore as", "oubliez", "oublie", "olvida", "olvide", "dimentica", "ignori", "desconsidere", "esqueça", "negeer", "vergeet", "zignoruj"],
        &["instructions précédentes", "consignes", "instrucciones", "istruzioni", "instruções", "instructies", "instrukcje", "reglas anteriores", "regole precedenti"],
    ]),
    sign("it says to ignore instructions", 5, 4, &[
        &["игнорируй", "игнорируйте", "забудь", "забудьте", "ігноруй"],
        &["инструкции", "указания", "правила", "інструкції"],
    ]),
];

/// What is written without spaces, or is not made of words.
const MARKS: &[(&str, &str, u64)] = &[
    ("it has the marks of a conversation", "<|im_start|>", 4),
    ("it has the marks of a conversation", "<|im_end|>", 4),
    ("it has the marks of a conversation", "<|system|>", 4),
    ("it has the marks of a conversation", "<|endoftext|>", 3),
    ("it has the marks of a conversation", "<|start_header_id|>", 4),
    ("it has the marks of a conversation", "[inst]", 4),
    ("it has the marks of a conversation", "<<sys>>", 4),
    ("it has the marks of a conversation", "<system>", 4),
    ("it has the marks of a conversation", "</system>", 4),
    ("it has the marks of a conversation", "<system-reminder>", 4),
    ("it has the marks of a conversation", "<system_prompt>", 4),
    ("it has the marks of a conversation", "### system:", 4),
    ("it has the marks of a conversation", "### system prompt", 4),
    ("it has the marks of a conversation", "### system message", 4),
    ("it has the marks of a conversation", "### new instruction", 4),
    ("it has the marks of a conversation", "[system message]", 4),
    ("it has the marks of a conversation", "[/inst]", 4),
    ("it has the marks of a conversation", "</tool_result>", 4),
    ("it has the marks of a conversation", "<function_calls>", 4),
    ("it has the marks of a conversation", "<tool_call>", 4),
    ("it has the marks of a conversation", "<important>", 3),
    ("it had something hidden in it", MARK, 4),
    ("it says to ignore instructions", "忽略之前", 5),
    ("it says to ignore instructions", "忽略以上", 5),
    ("it says to ignore instructions", "忽略所有", 5),
    ("it says to ignore instructions", "无视之前", 5),
    ("it says to ignore instructions", "指示を無視", 5),
    ("it says to ignore instructions", "命令を無視", 5),
    ("it says to ignore instructions", "지시를 무시", 5),
    ("it says to ignore instructions", "تجاهل التعليمات", 5),
    ("it says to ignore instructions", "تجاهل جميع التعليمات", 5),
];

/// Judges a text.
pub fn judge(text: &str) -> Judged {
    let mut judged = Judged { score: 0, signs: Vec::new() };
    look(text, &mut judged);
    // What is wrapped counts more than what is in the open: nobody wraps it by accident.
    for inside in base64::readable(text) {
        let mut within = Judged { score: 0, signs: Vec::new() };
        look(&inside, &mut within);
        if within.score > 0 {
            add(&mut judged, "it has instructions in base64", within.score + 2);
        }
    }
    judged
}

fn add(judged: &mut Judged, what: &'static str, weight: u64) {
    judged.score += weight;
    if !judged.signs.contains(&what) {
        judged.signs.push(what);
    }
}

fn look(text: &str, judged: &mut Judged) {
    let small = text.to_lowercase();
    let folded: String = small.chars().filter_map(fold).collect();
    let words: Vec<&str> = folded.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    for sign in SIGNS {
        if stands(&words, sign) {
            add(judged, sign.what, sign.weight);
        }
    }
    let mut marked = 0;
    for (what, mark, weight) in MARKS {
        if marked < 8 && small.contains(mark) {
            marked += weight;
            add(judged, what, *weight);
        }
    }
    if speaks_as_a_role(&small) {
        add(judged, "it speaks as the system", 3);
    }
    if carries_out(&small) {
        add(judged, "it has an image whose address carries something out", 4);
    }
}

/// A letter that only looks like a Latin one as that, and nothing for one without width.
fn fold(letter: char) -> Option<char> {
    Some(match letter {
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => return None,
        '\u{ff41}'..='\u{ff5a}' => char::from(b'a' + (u32::from(letter) - 0xff41) as u8),
        '\u{1d41a}'..='\u{1d433}' => char::from(b'a' + (u32::from(letter) - 0x1d41a) as u8),
        letter => letter,
    })
}

/// Whether the rows of a sign stand in the text, in order and near each other.
fn stands(words: &[&str], sign: &Sign) -> bool {
    let Some((first, rest)) = sign.rows.split_first() else { return false };
    let denied = |at: usize| matches!(at.checked_sub(1).map(|before| words[before]), Some("not" | "never" | "t"));
    let begins = |at: &usize| initial(words[*at]) & sign.initials != 0 && !(sign.positive && denied(*at));
    let mut places = (0..words.len()).filter(begins);
    places.any(|at| match_any(words, at, first).is_some_and(|end| follow(words, end, rest, sign.within)))
}

fn follow(words: &[&str], from: usize, rows: &[&[&str]], within: usize) -> bool {
    let Some((row, rest)) = rows.split_first() else { return true };
    let last = words.len().min(from + within + 1);
    (from..last).any(|at| match_any(words, at, row).is_some_and(|end| follow(words, end, rest, within)))
}

/// Where one of these phrases ends that begins at this word.
fn match_any(words: &[&str], at: usize, phrases: &[&str]) -> Option<usize> {
    phrases.iter().find_map(|phrase| {
        let mut end = at;
        for word in phrase.split(' ') {
            if words.get(end) != Some(&word) {
                return None;
            }
            end += 1;
        }
        Some(end)
    })
}

/// Whether a line speaks as the system or the developer, not as one of the parts of a file of settings.
fn speaks_as_a_role(small: &str) -> bool {
    small.lines().any(|line| {
        let line = line.trim_start_matches(['#', '*', '>', ' ', '[', '-']);
        let said = ["system:", "developer:", "system]", "admin:"].iter().find_map(|role| line.strip_prefix(role));
        said.is_some_and(|said| said.split_whitespace().count() >= 4 && said.starts_with([' ', '*', ':']))
    })
}

/// Whether there is an image, or a link, whose address has room for what a model knows.
fn carries_out(small: &str) -> bool {
    small.match_indices("](http").any(|(at, _)| {
        let address = &small[at + 2..];
        let address = &address[..address.find([')', ' ', '\n']).unwrap_or(address.len())];
        let Some((_, query)) = address.split_once('?') else { return false };
        let holes = ["{", "%7b", "<", "[", "$", "secret", "prompt", "conversation", "history", "api_key", "data=base64", "user_input", "payload=", "leak"];
        holes.iter().any(|hole| query.contains(hole))
    })
}
