//! `holdfast import mcp FILE`: the servers of a JSON file with `mcpServers`, as other programs have it, added to the settings. Values that
//! look like keys go to the secret store, and `${NAME}` stands in their place.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_app::ApplicationConfig;
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::{McpServerSettings, Settings};
use holdfast_runtime::secrets::{SecretName, Secrets};
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::output::{Output, report};

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// What the names of variables with keys contain.
const KEY_WORDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION"];
/// How the values of well-known keys begin.
const KEY_PREFIXES: &[&str] =
    &["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xox", "AKIA", "AIza", "eyJ", "pk_", "rk_"];

/// What is imported of a file.
#[derive(Default)]
struct ImportedServers {
    servers: BTreeMap<String, McpServerSettings>,
    /// The secrets by the names that stand in their places.
    secrets: BTreeMap<String, String>,
    warnings: Vec<Problem>,
}

pub(super) fn import(
    output: &Output,
    plan: &ApplicationConfig,
    file: &Path,
    dry: bool,
) -> Result<Exit, Problem> {
    let invalid = |what: String| Problem::in_file(Code::McpImport, file, what);
    let bytes = holdfast_untrusted_files::read(file, MAX_FILE_BYTES)
        .map_err(|error| invalid(format!("the file cannot be read: {error}")))?;
    let json: Value =
        serde_json::from_slice(&bytes).map_err(|error| invalid(format!("the file is not JSON: {error}")))?;
    let mut imported = read(&json).map_err(invalid)?;
    imported.warnings.iter().for_each(report);
    let settings = Settings::load(&plan.home)?.settings;
    let there = &settings.mcp.servers;
    let other =
        imported.servers.iter().find(|(name, server)| there.get(*name).is_some_and(|it| it != *server));
    if let Some((name, _)) = other {
        let what = format!("the settings have another MCP server `{name}` already");
        return Err(invalid(what).help("Rename or remove one of them; nothing was imported."));
    }
    let present: Vec<String> =
        imported.servers.extract_if(.., |name, _| there.contains_key(name)).map(|(name, _)| name).collect();
    imported.secrets.retain(|name, _| imported.servers.values().any(|server| uses(server, name)));
    if !dry && !imported.servers.is_empty() {
        plan.home.ensure()?;
        if !imported.secrets.is_empty() {
            let store = holdfast_app::secrets(&plan.home, &settings, plan.environment)?;
            imported.secrets.iter().try_for_each(|(name, value)| keep(&store, name, value))?;
        }
        plan.home.add_mcp_servers(&imported.servers)?;
    }
    let names: Vec<&String> = imported.servers.keys().collect();
    let secrets: Vec<&String> = imported.secrets.keys().collect();
    if output.json {
        let document = serde_json::json!({ "servers": names, "secrets": secrets, "present": present });
        output.document(&document)?;
        return Ok(Exit::Done);
    }
    let becomes = if dry { "would be" } else { "is" };
    for name in names {
        output.line(format!("{name} {becomes} in the settings"))?;
    }
    for name in secrets {
        output.line(format!("{name} {becomes} in the secret store"))?;
    }
    for name in present {
        output.line(format!("{name} was in the settings before"))?;
    }
    Ok(Exit::Done)
}

/// Whether a secret stands in one of the values of a server.
fn uses(server: &McpServerSettings, secret: &str) -> bool {
    let reference = format!("${{{secret}}}");
    let mut values = server.args.iter().chain(server.env.values()).chain(server.headers.values());
    values.any(|value| value.contains(&reference))
}

fn keep(store: &Secrets, name: &str, value: &str) -> Result<(), Problem> {
    store.keep(&name.parse::<SecretName>()?, &value.to_owned().into()).map(drop)
}

/// The servers of a file: below `mcpServers` or `servers`, or the whole of it.
fn read(json: &Value) -> Result<ImportedServers, String> {
    let listed = json.get("mcpServers").or_else(|| json.get("servers")).unwrap_or(json);
    let listed = listed.as_object().ok_or("there is no object `mcpServers` in it")?;
    let mut imported = ImportedServers::default();
    for (name, server) in listed {
        let fields = server.as_object().ok_or_else(|| format!("`{name}` is not an object"))?;
        let own = imported.name(name);
        let server = imported.server(&own, fields)?;
        imported.servers.insert(own, server);
    }
    if imported.servers.is_empty() {
        return Err("there are no servers in it".to_owned());
    }
    Ok(imported)
}

impl ImportedServers {
    /// A name that a server may have in the settings, and no other server has.
    fn name(&self, name: &str) -> String {
        let letter =
            |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        let plain: String = name.chars().map(letter).take(28).collect();
        let plain = plain.trim_matches('-');
        let plain = if plain.starts_with(|it: char| it.is_ascii_lowercase()) {
            plain.to_owned()
        } else {
            format!("s-{plain}")
        };
        let mut free =
            (1..).map(|number| if number == 1 { plain.clone() } else { format!("{plain}-{number}") });
        free.find(|name| !self.servers.contains_key(name)).unwrap_or(plain)
    }

    fn server(&mut self, name: &str, fields: &Map<String, Value>) -> Result<McpServerSettings, String> {
        let text = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
        let mut server =
            McpServerSettings { command: text("command"), url: text("url"), ..Default::default() };
        if server.url.is_some() {
            server.command = None;
        }
        server.enabled = fields.get("disabled").and_then(Value::as_bool) != Some(true);
        let args = fields.get("args").and_then(Value::as_array).into_iter().flatten();
        let args: Vec<String> = args.filter_map(Value::as_str).map(str::to_owned).collect();
        for (number, argument) in args.into_iter().enumerate() {
            server.args.push(self.value(name, &format!("ARG_{number}"), &argument));
        }
        for (variable, value) in pairs(fields.get("env")) {
            server.env.insert(variable.clone(), self.value(name, &variable, &value));
        }
        for (header, value) in pairs(fields.get("headers")) {
            server.headers.insert(header.clone(), self.value(name, &header, &value));
        }
        if server.command.is_none() && server.url.is_none() {
            return Err(format!("`{name}` has neither `command` nor `url`"));
        }
        if text("type").as_deref() == Some("sse") {
            let what = format!("`{name}` names the transport `sse`; it is reached by streamable HTTP");
            self.warnings.push(Problem::warning(Code::McpImport, what));
        }
        for field in fields.keys().filter(|field| !KNOWN.contains(&field.as_str())) {
            let what = format!("`{field}` of `{name}` is not taken over");
            self.warnings.push(Problem::warning(Code::McpImport, what));
        }
        Ok(server)
    }

    /// A value as it stands in the settings: `${NAME}` where it was a key.
    fn value(&mut self, server: &str, name: &str, value: &str) -> String {
        let value = value.replace("${env:", "${");
        if value.contains("${") {
            return value;
        }
        let (before, key) = match value.split_once(' ') {
            Some((scheme @ ("Bearer" | "Basic" | "Token"), key)) => (format!("{scheme} "), key.to_owned()),
            _ => (String::new(), value.clone()),
        };
        if !looks_like_key(name, &key) {
            return value;
        }
        let letter =
            |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
        let secret: String = format!("MCP_{server}_{name}").chars().map(letter).collect();
        self.secrets.insert(secret.clone(), key);
        format!("{before}${{{secret}}}")
    }
}

/// The fields that are taken over or need not be.
const KNOWN: &[&str] = &["command", "args", "env", "url", "headers", "type", "disabled"];

fn pairs(value: Option<&Value>) -> Vec<(String, String)> {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    fields.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Whether a value is a key, by its name or by itself.
fn looks_like_key(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let named = KEY_WORDS.iter().any(|word| name.contains(word)) && value.len() >= 6;
    let known = KEY_PREFIXES.iter().any(|prefix| value.starts_with(prefix)) && value.len() >= 16;
    let one_word = value.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | '-'));
    let mixed =
        value.chars().any(|it| it.is_ascii_digit()) && value.chars().any(|it| it.is_ascii_alphabetic());
    let random = value.len() >= 32 && one_word && mixed && !value.contains("--");
    named || known || random
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_become_secrets_and_references_stay() {
        let file = json!({ "mcpServers": { "GitHub Tools": {
            "command": "npx", "args": ["-y", "server"],
            "env": { "GITHUB_TOKEN": "ghp_0123456789abcdefghij", "LEVEL": "3", "OTHER": "${env:HOME_KEY}" },
        }, "remote": { "type": "http", "url": "https://mcp.example.com/", "headers": { "Authorization": "Bearer abcdef123456" } } } });
        let imported = read(&file).unwrap();
        let github = &imported.servers["github-tools"];
        assert_eq!(github.args, ["-y", "server"]);
        assert_eq!(github.env["GITHUB_TOKEN"], "${MCP_GITHUB_TOOLS_GITHUB_TOKEN}");
        assert_eq!((github.env["LEVEL"].as_str(), github.env["OTHER"].as_str()), ("3", "${HOME_KEY}"));
        assert_eq!(imported.servers["remote"].headers["Authorization"], "Bearer ${MCP_REMOTE_AUTHORIZATION}");
        assert_eq!(imported.secrets["MCP_GITHUB_TOOLS_GITHUB_TOKEN"], "ghp_0123456789abcdefghij");
        assert_eq!(imported.secrets["MCP_REMOTE_AUTHORIZATION"], "abcdef123456");
    }

    #[test]
    fn what_is_no_file_of_servers_is_refused() {
        for (file, expected) in [
            (json!([]), "no object"),
            (json!({ "mcpServers": {} }), "no servers"),
            (json!({ "mcpServers": { "a": {} } }), "neither `command` nor `url`"),
            (json!({ "mcpServers": { "a": 1 } }), "not an object"),
        ] {
            assert!(read(&file).err().unwrap().contains(expected), "{file}");
        }
    }
}
