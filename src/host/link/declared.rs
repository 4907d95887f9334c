//! What a declaration that came over the link must say, beyond what every one must. Pure.
//!
//! That it is signed was seen before, that its serial is not stale is the store's to say
//! (`accept::may`). Nothing here can trust: what comes from here was parsed as anybody's word.

use super::mesh::Mesh;
use crate::declaration::{self, Declaration, Fault, Own};

/// Reads a declaration for `node` in `mesh`.
///
/// # Errors
/// Everything that is wrong with it; nothing of it may be applied.
pub fn parse(text: Vec<u8>, node: &str, mesh: &Mesh, own: &Own) -> Result<Declaration, Vec<Fault>> {
    let declaration = declaration::parse(text, own)?;
    let mut faults = Vec::new();
    let mut fault = |field: &str, wrong: String, mend: &str| {
        let (field, mend) = (field.to_string(), mend.to_string());
        faults.push(Fault { place: String::new(), field, wrong, mend });
    };
    match declaration.node.as_deref() {
        Some(it) if it == node => {}
        Some(it) => {
            let wrong = format!("it is addressed to {it:?}, and this is {node:?}");
            fault("node", wrong, "publish it to the node that it is for");
        }
        None => fault("node", "is absent".into(), "over the link, say whom it is for"),
    }
    match declaration.serial {
        Some(serial) if serial >= mesh.serial_floor => {}
        Some(serial) => {
            let wrong =
                format!("{serial} is stale: the mesh takes none below {}", mesh.serial_floor);
            fault("serial", wrong, "give each new declaration a higher serial");
        }
        None => fault("serial", "is absent".into(), "over the link, give each a higher serial"),
    }
    if faults.is_empty() {
        Ok(declaration)
    } else {
        Err(faults)
    }
}
