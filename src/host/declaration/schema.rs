//! The JSON Schema (2020-12) of a declaration, for editors. Pure.
//!
//! Made from the tables that the parser reads by. It states what one value can be; what holds
//! between resources, and what is the host's own, it cannot.

use serde_json::{json, Map, Value};

use super::{MAX_RESOURCES, VERSION};
use crate::resource::form::{self, Text};
use crate::resource::kind::{Field, Kind, Need, Shape, COMMON, KINDS};

/// The schema, as a document that ends in a newline.
pub fn schema() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let cases: Vec<Value> = KINDS.iter().map(|kind| case(kind)).collect();
    let mut definitions = Map::new();
    for kind in KINDS {
        definitions.insert(kind.name.into(), type_of(kind));
    }
    let resource = json!({
        "type": "object",
        "required": ["id", "type"],
        "properties": { "type": { "enum": names } },
        "allOf": cases,
    });
    definitions.insert("resource".into(), resource);
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Declaration, version {VERSION}"),
        "description": "What a machine is to be. Resources are applied in their order.",
        "type": "object",
        "required": ["version", "resources"],
        "additionalProperties": false,
        "properties": {
            "version": { "const": VERSION },
            "node": described(text(&form::NODE), "The node it is addressed to."),
            "serial": {
                "description": "Counts the declarations for a node; the link requires it.",
                "type": "integer",
                "minimum": 0,
                "maximum": u64::MAX,
            },
            "resources": {
                "description": "The resources; an empty list declares nothing.",
                "type": "array",
                "maxItems": MAX_RESOURCES,
                "items": { "$ref": "#/$defs/resource" },
            },
        },
        "$defs": definitions,
    });
    let mut text = serde_json::to_string_pretty(&document).expect("a value is always JSON");
    text.push('\n');
    text
}

fn case(kind: &Kind) -> Value {
    json!({
        "if": { "required": ["type"], "properties": { "type": { "const": kind.name } } },
        "then": { "$ref": format!("#/$defs/{}", kind.name) },
    })
}

fn type_of(kind: &Kind) -> Value {
    let mut value = object(COMMON.iter().chain(kind.fields));
    let set = |value: &mut Value, key: &str, to: Value| {
        value.as_object_mut().expect("an object's schema is an object").insert(key.into(), to);
    };
    let lacks = if kind.build.is_none() { "Not supported by this host yet. " } else { "" };
    set(&mut value, "description", format!("{lacks}{}", kind.doc).into());
    value["properties"]["type"] = json!({ "const": kind.name });
    value["properties"]["timeout_s"]["default"] = kind.default_timeout_s.into();
    if !kind.exactly_one.is_empty() {
        let one: Vec<Value> =
            kind.exactly_one.iter().map(|name| json!({ "required": [name] })).collect();
        set(&mut value, "oneOf", one.into());
    }
    value
}

fn object(table: impl Iterator<Item = &'static Field>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in table {
        let mut value = described(shape(&field.shape), field.doc);
        if !field.default.is_empty() {
            value["default"] =
                serde_json::from_str(field.default).expect("a table's default is JSON");
        }
        properties.insert(field.name.into(), value);
        if field.need == Need::Required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

fn shape(shape: &'static Shape) -> Value {
    match shape {
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Integer(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Shape::Text(form) => text(form),
        Shape::TextOrInteger(form) => {
            let mut value = text(form);
            value["type"] = json!(["string", "integer"]);
            value
        }
        Shape::Choice(words) => json!({ "enum": words }),
        Shape::Path => json!({ "type": "string", "pattern": "^/", "maxLength": 4095 }),
        Shape::Mode => json!({ "type": "string", "pattern": "^[0-7]{3,4}$" }),
        Shape::Principal => {
            let pattern = format!("^[0-9]{{1,10}}$|{}", form::ACCOUNT.pattern);
            json!({ "type": "string", "pattern": pattern })
        }
        Shape::Base64 => json!({ "type": "string", "contentEncoding": "base64" }),
        Shape::Reference(_) => text(&form::ID),
        Shape::List(of, min, max) => {
            json!({ "type": "array", "items": self::shape(of), "minItems": min, "maxItems": max })
        }
        Shape::Map(key, of, max) => json!({
            "type": "object",
            "propertyNames": text(key),
            "additionalProperties": self::shape(of),
            "maxProperties": max,
        }),
        Shape::Object(table) => object(table.iter()),
    }
}

fn text(form: &Text) -> Value {
    let mut value = json!({ "type": "string", "maxLength": form.max });
    if !form.pattern.is_empty() {
        value["pattern"] = form.pattern.into();
    }
    value
}

fn described(mut value: Value, doc: &str) -> Value {
    value["description"] = doc.into();
    value
}
