//! Counts the instances of a component before it is compiled. Components nest, and each level can instantiate the one below twice,
//! so the number grows exponentially: a file of two kilobytes can keep the compiler busy forever.

use holdfast_contract::problem::{Code, Fault};
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef,
    Encoding, Instance, Parser, Payload,
};

/// Instances of a component, over all nesting levels.
const MAX_INSTANCES: u64 = 4096;

/// A component that is being read.
#[derive(Default)]
struct Level {
    /// The number of instances of each component in its index space.
    components: Vec<u64>,
    /// The number of its own instances.
    instances: u64,
    /// Whether it is a component, not a core module.
    is_component: bool,
}

/// Checks that a component does not have too many instances. A file that cannot be parsed is left to the compiler.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Fault> {
    match count(bytes) {
        Ok(instances) if instances > MAX_INSTANCES => {
            let message =
                format!("it consists of more than {MAX_INSTANCES} instances, including nested ones");
            Err(Fault::new(Code::MemoryExhausted, message))
        }
        Ok(_) | Err(Unclear::Unreadable) => Ok(()),
        Err(Unclear::Hidden) => {
            let message =
                "it takes components from its imports or instances, so its instances cannot be counted";
            Err(Fault::new(Code::ComponentInvalid, message))
        }
    }
}

/// Why the instances cannot be counted.
enum Unclear {
    Unreadable,
    Hidden,
}

impl From<wasmparser::BinaryReaderError> for Unclear {
    fn from(_: wasmparser::BinaryReaderError) -> Self {
        Self::Unreadable
    }
}

fn count(bytes: &[u8]) -> Result<u64, Unclear> {
    // A core module within a component is a level without anything to count.
    let mut levels: Vec<Level> = Vec::new();
    let mut whole = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::Version { encoding, .. } => {
                levels.push(Level { is_component: encoding == Encoding::Component, ..Level::default() });
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases {
                    aliased(&mut levels, alias?)?;
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    if matches!(import?.ty, ComponentTypeRef::Component(_)) {
                        return Err(Unclear::Hidden);
                    }
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    if export.kind == ComponentExternalKind::Component {
                        let level = levels.last_mut().ok_or(Unclear::Unreadable)?;
                        let same = level.component(export.index)?;
                        level.components.push(same);
                    }
                }
            }
            Payload::InstanceSection(instances) => {
                for instance in instances {
                    if let Instance::Instantiate { .. } = instance? {
                        levels.last_mut().ok_or(Unclear::Unreadable)?.add(1);
                    }
                }
            }
            Payload::ComponentInstanceSection(instances) => {
                for instance in instances {
                    if let ComponentInstance::Instantiate { component_index, .. } = instance? {
                        let level = levels.last_mut().ok_or(Unclear::Unreadable)?;
                        let more = level.component(component_index)?;
                        level.add(more.saturating_add(1));
                    }
                }
            }
            Payload::End(_) => {
                let ended = levels.pop().ok_or(Unclear::Unreadable)?;
                whole = ended.instances;
                if let Some(outer) = levels.last_mut().filter(|_| ended.is_component) {
                    outer.components.push(ended.instances);
                }
            }
            _ => {}
        }
    }
    Ok(whole)
}

impl Level {
    fn component(&self, index: u32) -> Result<u64, Unclear> {
        self.components.get(index as usize).copied().ok_or(Unclear::Unreadable)
    }

    fn add(&mut self, instances: u64) {
        self.instances = self.instances.saturating_add(instances);
    }
}

fn aliased(levels: &mut [Level], alias: ComponentAlias<'_>) -> Result<(), Unclear> {
    match alias {
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => Err(Unclear::Hidden),
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
            let outer = levels.len().checked_sub(count as usize + 1).ok_or(Unclear::Unreadable)?;
            let same = levels[outer].component(index)?;
            levels.last_mut().ok_or(Unclear::Unreadable)?.components.push(same);
            Ok(())
        }
        _ => Ok(()),
    }
}
