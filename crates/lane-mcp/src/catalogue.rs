//! How what a server offers is registered: under names that shadow nothing, with descriptions that are bounded and free of characters
//! that a person would not see.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::exports::{Exports, Named};
use holdfast_contract::ids::ToolName;
use holdfast_contract::tool::ToolSpec;
use serde_json::{Value, json};

use crate::listing::{Listing, ToolDefinition};
use crate::options::McpOptions;

/// The longest name of a tool that every model provider accepts.
const MAX_NAME_CHARS: usize = 64;
/// The longest description of a tool, in characters.
const MAX_DESCRIPTION_CHARS: usize = 4_000;
/// The largest schema of a tool's arguments, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// Between the name of a server and that of its tool. No built-in tool has it in its name.
const SEPARATOR: &str = "__";
/// The tools that every server with resources has besides its own.
const READ_RESOURCE: &str = "read_resource";
const LIST_RESOURCES: &str = "list_resources";

/// What a registered tool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolTarget {
    /// A tool of the server, by its name there, and whether it promises a structured result.
    Tool { name: String, structured: bool },
    /// Reads a resource.
    ReadResource,
    /// Lists the resources.
    ListResources,
}

/// What a server registers.
#[derive(Default)]
pub(crate) struct Catalogue {
    /// What the names of its tools and commands begin with.
    prefix: String,
    pub tools: BTreeMap<ToolName, ToolTarget>,
    specs: Vec<ToolSpec>,
    /// The prompts by the names of their commands.
    pub prompts: BTreeMap<String, String>,
    commands: Vec<Named>,
}

impl Catalogue {
    /// What is registered of a listing.
    pub(crate) fn new(prefix: &str, listing: &Listing, options: &McpOptions) -> Self {
        let mut catalogue = Self { prefix: prefix.to_owned(), ..Self::default() };
        if listing.resources {
            catalogue.add_resources();
        }
        for tool in listing.tools.iter().filter(|tool| options.offers(&tool.name)) {
            catalogue.add_tool(tool);
        }
        for prompt in &listing.prompts {
            let name = catalogue.command_name(&prompt.name);
            let takes = prompt.arguments.iter().map(|argument| format!("{argument}=…"));
            let takes = takes.collect::<Vec<_>>().join(" ");
            let description = format!("{} {takes}", shown(&prompt.description, MAX_DESCRIPTION_CHARS));
            catalogue.commands.push(Named { name: name.clone(), description: description.trim().to_owned() });
            catalogue.prompts.insert(name, prompt.name.clone());
        }
        catalogue
    }

    fn add_tool(&mut self, tool: &ToolDefinition) {
        let schema = bounded_schema(&tool.input_schema);
        let structured = tool.output_schema.is_some();
        let spec = ToolSpec {
            name: self.tool_name(&tool.name),
            description: description(tool),
            input_schema: Content::new(schema),
            output_schema: tool.output_schema.clone().filter(is_usable).map(Content::new),
            ..ToolSpec::named("", "")
        };
        self.tools.insert(spec.name.clone(), ToolTarget::Tool { name: tool.name.clone(), structured });
        self.specs.push(spec);
    }

    fn add_resources(&mut self) {
        let uri = json!({ "type": "string", "description": "The URI of the resource." });
        let read = json!({ "type": "object", "properties": { "uri": uri }, "required": ["uri"], "additionalProperties": false });
        let list = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let prefix = self.prefix.clone();
        let mut add = |name: &str, text: String, schema: Value, target: ToolTarget| {
            let name = self.tool_name(name);
            let spec =
                ToolSpec { input_schema: Content::new(schema), ..ToolSpec::named(name.as_str(), &text) };
            self.tools.insert(name, target);
            self.specs.push(spec);
        };
        let text = format!("Reads a resource of the MCP server `{prefix}` by its URI.");
        add(READ_RESOURCE, text, read, ToolTarget::ReadResource);
        let text = format!("Lists the resources of the MCP server `{prefix}`.");
        add(LIST_RESOURCES, text, list, ToolTarget::ListResources);
    }

    /// The name under which a tool is registered: unique, and accepted by every provider.
    fn tool_name(&self, name: &str) -> ToolName {
        let usual = registered_name(&self.prefix, name);
        if self.tools.contains_key(&usual) { with_digest(&self.prefix, name) } else { usual }
    }

    fn command_name(&self, prompt: &str) -> String {
        let taken: BTreeSet<&String> = self.prompts.keys().collect();
        let name = format!("{}:{}", self.prefix, identifier(prompt));
        if taken.contains(&name) { format!("{name}-{}", taken.len()) } else { name }
    }

    /// The same as the exports of an extension.
    pub(crate) fn exports(&self) -> Exports {
        Exports { tools: self.specs.clone(), commands: self.commands.clone(), ..Exports::default() }
    }
}

/// A description for the model, with what the server claims about effects. It is a claim, and says so.
fn description(tool: &ToolDefinition) -> String {
    let text = shown(&tool.description, MAX_DESCRIPTION_CHARS);
    let title = tool.title.as_deref().map(|title| shown(title, 100)).filter(|title| !title.is_empty());
    match title {
        Some(title) if text.is_empty() => title,
        _ => text,
    }
}

/// The name under which the tool of a server is registered, where no other tool of the server has it.
pub fn registered_name(prefix: &str, name: &str) -> ToolName {
    let plain = plain_name(prefix, name);
    let exact = identifier(name) == name && plain.len() <= MAX_NAME_CHARS;
    if exact { plain.into() } else { with_digest(prefix, name) }
}

fn plain_name(prefix: &str, name: &str) -> String {
    format!("{prefix}{SEPARATOR}{}", identifier(name))
}

/// A name that no other tool has: with a part of the digest of the server's name for it.
fn with_digest(prefix: &str, name: &str) -> ToolName {
    let digest = Digest::of(name.as_bytes()).to_string();
    let suffix: String = digest.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    let room = MAX_NAME_CHARS - suffix.len() - 1;
    let start: String = plain_name(prefix, name).chars().take(room).collect();
    format!("{start}_{suffix}").into()
}

/// Letters, digits, `_` and `-`; anything else becomes `_`.
fn identifier(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '-' { letter } else { '_' }
    };
    name.chars().take(MAX_NAME_CHARS).map(letter).collect()
}

/// A text without characters that a person does not see and a model reads: control characters, directions, tags, zero widths.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let is_hidden = |letter: &char| {
        matches!(*letter, '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}')
            || (letter.is_control() && *letter != '\n' && *letter != '\t')
    };
    let visible: String = text.chars().filter(|letter| !is_hidden(letter)).take(most + 1).collect();
    match visible.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible.trim().to_owned(),
    }
}

/// A schema that is an object and not too large; otherwise any object is accepted, and the server judges the arguments.
fn bounded_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if !is_usable(&schema) {
        return json!({ "type": "object" });
    }
    clean(&mut schema);
    schema
}

fn is_usable(schema: &Value) -> bool {
    schema.is_object() && schema.to_string().len() <= MAX_SCHEMA_BYTES
}

/// Removes hidden characters from the texts of a schema that are for a reader.
fn clean(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::String(text) if matches!(name.as_str(), "description" | "title" | "$comment") => {
                        *text = shown(text, MAX_DESCRIPTION_CHARS);
                    }
                    field => clean(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
