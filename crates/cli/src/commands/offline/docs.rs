//! `holdfast docs`: the documentation, as it was when the program was built.

use holdfast_contract::problem::{Code, Problem};
use serde_json::json;

use crate::exit::Exit;
use crate::output::{Output, table, write_text};

/// A page of the documentation.
struct Page {
    name: &'static str,
    text: &'static str,
}

macro_rules! pages {
    ($($name:literal)*) => {
        &[$(Page {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/", $name, ".md")),
        }),*]
    };
}

/// All pages except decision records and the index.
const PAGES: &[Page] = pages! {
    "agents" "assistant4-behaviours" "attachments" "backup" "builtin-tools" "bus" "chat" "commands" "concepts" "confinement" "context"
    "from-assistant4" "from-pith" "glossary" "guardrails" "home" "many-tools" "mcp" "models" "native-extensions" "operations" "orchestrator"
    "packs" "performance" "plugins" "protocol" "python-classes" "python-files" "remote-tools" "replay" "rpc" "schedules" "secrets" "streaming"
    "extensions/README" "extensions/c" "extensions/javascript" "extensions/python" "extensions/rust"
    "reference/abi" "reference/cli" "reference/errors" "reference/frames" "reference/hooks"
    "reference/host-calls" "reference/manifest" "reference/policy" "reference/process" "reference/roles"
    "reference/settings"
};

impl Page {
    /// The name to ask for it: without folder, where that says nothing.
    fn short(&self) -> &'static str {
        match self.name {
            "extensions/README" => "extensions",
            name => name.strip_prefix("reference/").unwrap_or(name),
        }
    }

    fn title(&self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
    }
}

pub(crate) fn docs(output: &Output, asked: Option<&str>) -> Result<Exit, Problem> {
    let Some(asked) = asked else { return list(output) };
    let plain = asked.strip_prefix("docs/").unwrap_or(asked);
    let plain = plain.strip_suffix(".md").unwrap_or(plain);
    let found = PAGES.iter().find(|page| page.short() == plain || page.name == plain);
    let page = found.ok_or_else(|| {
        let names: Vec<&str> = PAGES.iter().map(Page::short).collect();
        Problem::new(Code::UsageInvalid, format!("there is no page `{asked}`"))
            .help(format!("There are: {}.", names.join(", ")))
    })?;
    if output.json {
        output.document(&json!({ "page": page.short(), "title": page.title(), "text": page.text }))?;
    } else {
        write_text(page.text)?;
    }
    Ok(Exit::Done)
}

fn list(output: &Output) -> Result<Exit, Problem> {
    if output.json {
        let pages = PAGES.iter().map(|page| json!({ "page": page.short(), "title": page.title() }));
        return output.documents(&pages.collect::<Vec<_>>());
    }
    let rows = PAGES.iter().map(|page| [page.short().to_owned(), page.title().to_owned()]);
    output.lines(table(["page", "about"], rows, ""))?;
    Ok(Exit::Done)
}

#[cfg(test)]
#[path = "docs_tests.rs"]
mod tests;
