//! The JSON Schema of a declaration, as editors get it.

use nox_mesh_host::declaration::schema::schema;
use nox_mesh_host::resource::kind::{Shape, COMMON, KINDS};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/declaration.schema.json");

#[test]
fn the_schema_is_the_one_on_record() {
    let schema = schema();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &schema).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(golden == schema, "{GOLDEN} differs from the schema: run again with UPDATE=1");
}

#[test]
fn every_field_of_every_table_is_in_the_schema_and_nothing_else_is_let_in() {
    //
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    for kind in KINDS {
        let definition = &schema["$defs"][kind.name];
        assert_eq!(definition["additionalProperties"], false, "{}", kind.name);
        let description = definition["description"].as_str().unwrap();
        let lacks = description.starts_with("Not supported by this host yet. ");
        assert_eq!(lacks, kind.build.is_none(), "{}", kind.name);
        assert!(description.ends_with(kind.doc), "{}", kind.name);
        let properties = definition["properties"].as_object().unwrap();
        assert_eq!(properties.len(), COMMON.len() + kind.fields.len(), "{}", kind.name);
        for field in kind.fields {
            let property = &properties[field.name];
            assert_eq!(property["description"], field.doc, "{} {}", kind.name, field.name);
            if let Shape::Object(table) = &field.shape {
                assert_eq!(property["additionalProperties"], false);
                assert_eq!(property["properties"].as_object().unwrap().len(), table.len());
            }
        }
    }
}
