//! How extensions show the calls of their tools, for surfaces that ask. What they answer is shown and nothing else: no model gets it, and
//! one that fails, times out or answers with nothing leaves it to the surface. The log has the digests of what a renderer was given and of
//! what it answered, not the texts: they would outlive the erasure of the session that the call belongs to.

use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, Millis, ToolName};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::{RendererCalled, ShownText};
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
        let generation =
            self.inner().extensions.active(&extension).map(|it| it.generation).unwrap_or_default();
        let field = |content: &Content| content.value().clone();
        let asked = json!({ "tool": tool, "arguments": field(&arguments) });
        let call = self.shown_by(&extension, "render-call", asked.into()).await;
        let asked = json!({ "tool": tool, "result": field(&result) });
        let told = self.shown_by(&extension, "render-result", asked.into()).await;
        let shown = |text: &Result<Option<String>, Fault>| {
            let text = text.as_ref().ok()?.as_ref()?;
            Some(ShownText { digest: Digest::of(text.as_bytes()), bytes: text.len() as u64 })
        };
        self.inner().system.tell(RendererCalled {
            id: extension,
            generation,
            tool: tool.clone(),
            arguments: DigestOf::from(&arguments),
            result: DigestOf::from(&result),
            call_shown: shown(&call),
            result_shown: shown(&told),
            faults: [&call, &told].into_iter().filter_map(|it| it.as_ref().err().cloned()).collect(),
        });
        Ok((call.unwrap_or_default(), told.unwrap_or_default()))
    }

    /// What a function of a renderer answers, as far as it can be shown.
    async fn shown_by(
        &self,
        extension: &ExtensionId,
        function: &str,
        asked: Content,
    ) -> Result<Option<String>, Fault> {
        let inner = self.inner();
        let late = inner.clock.sleep(RENDER_TIMEOUT);
        let said = tokio::select! {
            biased;
            said = inner.call_role(extension, Role::Renderer, function, asked) => said?,
            () = late => {
                let message = format!("`{extension}` did not answer `{function}` within {} ms", RENDER_TIMEOUT.0);
                return Err(Fault::new(Code::ExtensionFault, message));
            }
        };
        let Some(text) = said.value().as_str().filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        if text.len() > MAX_RENDERED_BYTES {
            let message =
                format!("`{function}` of `{extension}` answered with more than {MAX_RENDERED_BYTES} bytes");
            return Err(Fault::new(Code::ExtensionFault, message));
        }
        Ok(Some(inner.home.redact_text(text.to_owned())))
    }
}
