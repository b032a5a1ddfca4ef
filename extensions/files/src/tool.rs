//! A tool that works on the tree: typed arguments in, a value out, on its own thread.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::ToolSpec;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Tool, Workspaces, on_thread};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::FilesOptions;
use crate::tree::Tree;

/// The trees that calls work on, each that of its session.
pub(crate) struct Trees {
    pub(crate) workspaces: Workspaces,
    pub(crate) options: FilesOptions,
}

/// What a tool does.
pub(crate) type Work<A> = fn(&Tree, A) -> Result<Value, Fault>;

pub(crate) struct FileTool<A> {
    pub(crate) spec: ToolSpec,
    pub(crate) trees: Arc<Trees>,
    pub(crate) work: Work<A>,
}

impl<A: DeserializeOwned + 'static> Tool for FileTool<A> {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        turn: TurnView,
        _: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let (trees, work) = (self.trees.clone(), self.work);
        on_thread(move || {
            let arguments = arguments.value().clone();
            let arguments = serde_json::from_value(arguments)
                .map_err(|error| Fault::new(Code::ToolArguments, error.to_string()))?;
            let tree = Tree::new(trees.workspaces.of(&turn)?, trees.options);
            work(&tree, arguments).map(Content::new)
        })
    }
}

/// A failure that is not a refusal.
pub(crate) fn failed(message: impl Into<String>) -> Fault {
    Fault::new(Code::ToolFailed, message)
}

/// A refusal, with the path as it was given.
pub(crate) fn refused(path: &str, why: impl std::fmt::Display) -> Fault {
    let shown: String = path.chars().take(200).collect();
    Fault::new(Code::PathRefused, format!("{shown:?} is refused: {why}"))
}
