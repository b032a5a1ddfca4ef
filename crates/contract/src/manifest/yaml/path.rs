//! The way to a field, written `schedules[0].cron`. It is put into words only when somebody asks, and never at length: a
//! file may nest long keys deeply.

use std::rc::Rc;
use std::sync::Arc;

/// How many letters of a path are worth showing, and of one key in it.
const MAX_PATH_CHARS: usize = 120;
const SHOWN_OF_KEY: usize = 40;

/// One step down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    /// To the value of a key.
    Key(Arc<str>),
    /// To an item of a list.
    Item(usize),
}

/// The way to a node.
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

    /// Whether it leads nowhere: to the whole file.
    pub(super) fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it leads to an item of a list.
    pub(super) fn is_item(&self) -> bool {
        matches!(self.0.as_deref(), Some(Link { step: PathStep::Item(_), .. }))
    }

    /// The last key on the way.
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

/// Steps in words.
pub(super) fn render<'s>(steps: impl Iterator<Item = &'s PathStep>) -> String {
    let mut text = String::new();
    for step in steps {
        if text.len() > MAX_PATH_CHARS {
            text.push('…');
            break;
        }
        match step {
            PathStep::Item(index) => text += &format!("[{index}]"),
            PathStep::Key(key) => {
                let dot = if text.is_empty() { "" } else { "." };
                text.push_str(dot);
                text.extend(key.chars().take(SHOWN_OF_KEY));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_people_write_them() {
        let key = |path: &Path, key: &str| path.to(PathStep::Key(key.into()));
        let schedules = key(&Path::default(), "schedules");
        let cron = key(&schedules.to(PathStep::Item(0)), "cron");
        assert_eq!(cron.render(), "schedules[0].cron");
        assert_eq!((cron.key(), schedules.to(PathStep::Item(3)).key()), ("cron", "schedules"));
        let deep = (0..64).fold(Path::default(), |path, _| key(&path, &"k".repeat(1000)));
        assert!(deep.render().len() < 200 && deep.render().ends_with('…'));
    }
}
