//! Where frame bodies hold content that can be stored apart or erased: the macro that declares a body with it, and the shared values.

use crate::body::Contents;
use crate::content::Content;
use crate::hook::{Artifact, Decision};
use crate::message::AskedCall;
use crate::tool::ToolOutcome;

macro_rules! bodies {
    ($($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* } $(holds $($held:ident),+)?;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }

        impl crate::body::Contents for $name {
            fn contents(&mut self, _visit: &mut dyn FnMut(&mut crate::content::Content)) {
                $($(crate::body::Contents::contents(&mut self.$held, _visit);)+)?
            }
        }
    )+};
}
pub(crate) use bodies;

impl Contents for Content {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        visit(self);
    }
}

impl<T: Contents> Contents for Option<T> {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.iter_mut().for_each(|held| held.contents(visit));
    }
}

impl<T: Contents> Contents for Vec<T> {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.iter_mut().for_each(|held| held.contents(visit));
    }
}

impl Contents for AskedCall {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        visit(&mut self.arguments);
    }
}

impl Contents for Artifact {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        visit(&mut self.content);
    }
}

impl Contents for ToolOutcome {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        if let ToolOutcome::Result(content) = self {
            visit(content);
        }
    }
}

impl Contents for Decision {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        match self {
            Decision::Modify { arguments, .. } => arguments.contents(visit),
            Decision::Replace { content } | Decision::Inject { content } => visit(content),
            Decision::Enrich { result, artifacts, render } => {
                result.contents(visit);
                artifacts.contents(visit);
                render.contents(visit);
            }
            Decision::Continue
            | Decision::Allow
            | Decision::Deny { .. }
            | Decision::Ask { .. }
            | Decision::Route { .. }
            | Decision::Flag { .. }
            | Decision::Block { .. }
            | Decision::Compact { .. } => {}
        }
    }
}
