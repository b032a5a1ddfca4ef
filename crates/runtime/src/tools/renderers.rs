//! How extensions show the calls of their tools, for surfaces that ask. What they say is shown and nothing else: it is in no log, no model
//! hears it, and one that fails or says nothing in time leaves it to the surface.

use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, Millis, ToolName};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::role::Role;
use serde_json::json;

use crate::runtime::Runtime;

/// The timeout of a renderer: the user is waiting for the output.
const RENDER_TIMEOUT: Millis = Millis(2_000);
/// The most bytes that it may say.
const MAX_RENDERED_BYTES: usize = 64 * 1024;

impl Runtime {
    /// The extension that shows the calls of this tool itself: the tool's own, if it does.
    pub fn renderer_of(&self, tool: &ToolName) -> Option<ExtensionId> {
        let registry = self.registry();
        let entry = registry.tools.iter().find(|entry| entry.name == *tool)?;
        let id = &entry.stack.first()?.extension.id;
        let renders =
            registry.others.iter().any(|it| it.kind.as_str() == "renderer" && it.extension.id == *id);
        renders.then(|| id.clone())
    }

    /// How the tool's extension would have a call and its result shown, in Markdown; none leaves it to the surface.
    pub async fn rendered(
        &self,
        tool: &ToolName,
        arguments: Content,
        result: Content,
    ) -> Result<(Option<String>, Option<String>), Problem> {
        let unknown = || Problem::new(Code::ToolUnknown, format!("no renderer is registered for `{tool}`"));
        let extension = self.renderer_of(tool).ok_or_else(unknown)?;
        let field = |content: Content| content.value().clone();
        let call = json!({ "tool": tool, "arguments": field(arguments) });
        let told = json!({ "tool": tool, "result": field(result) });
        let call = self.shown_by(&extension, "render-call", call.into()).await;
        Ok((call, self.shown_by(&extension, "render-result", told.into()).await))
    }

    async fn shown_by(&self, extension: &ExtensionId, function: &str, asked: Content) -> Option<String> {
        let inner = self.inner();
        let late = inner.clock.sleep(RENDER_TIMEOUT);
        let said = tokio::select! {
            biased;
            said = inner.call_role(extension, Role::Renderer, function, asked) => said.ok()?,
            () = late => return None,
        };
        let text = said
            .value()
            .as_str()
            .filter(|text| !text.trim().is_empty() && text.len() <= MAX_RENDERED_BYTES)?;
        Some(inner.home.redact_text(text.to_owned()))
    }
}
