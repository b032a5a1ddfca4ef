//! The path of a field, written `schedules[0].cron`. It is rendered only for a message, and truncated: a file may nest
//! long keys deeply.

use std::rc::Rc;
use std::sync::Arc;

/// After how many bytes a rendered path is truncated.
const MAX_PATH_BYTES: usize = 120;

/// How many characters of each key are rendered.
const MAX_KEY_CHARS: usize = 40;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    /// To the value of a key.
    Key(Arc<str>),
    /// To an item of a list.
    Item(usize),
}

/// The path of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Path(Option<Rc<Link>>);

#[derive(Debug)]
struct Link {
    before: Path,
    step: PathStep,
}

impl Path {
    pub(super) fn to(&self, step: PathStep) -> Self {
        Self(Some(Rc::new(Link { before: self.clone(), step })))
    }

    /// Whether it is the path of the whole file.
    pub(super) fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it is the path of a list item.
    pub(super) fn is_item(&self) -> bool {
        matches!(self.0.as_deref(), Some(Link { step: PathStep::Item(_), .. }))
    }

    /// The last key in the path.
    pub(super) fn key(&self) -> &str {
        match self.0.as_deref() {
            Some(Link { step: PathStep::Key(key), .. }) => key,
            Some(Link { before, .. }) => before.key(),
            None => "",
        }
    }

    pub(super) fn render(&self) -> String {
        let mut steps = Vec::new();
        let mut path = self;
        while let Some(link) = &path.0 {
            steps.push(&link.step);
            path = &link.before;
        }
        render(steps.into_iter().rev())
    }
}

/// Renders steps.
pub(super) fn render<'s>(steps: impl Iterator<Item = &'s PathStep>) -> String {
    let mut text = String::new();
    for step in steps {
        if text.len() > MAX_PATH_BYTES {
            text.push('…');
            break;
        }
        match step {
            PathStep::Item(index) => text += &format!("[{index}]"),
            PathStep::Key(key) => {
                let dot = if text.is_empty() { "" } else { "." };
                text.push_str(dot);
                text.extend(key.chars().take(MAX_KEY_CHARS));
            }
        }
    }
    text
}
