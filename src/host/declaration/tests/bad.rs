//! Tables of what is refused: the text, and what its faults name.

use super::{document, faults, lines, read};

/// Whole documents: the text, the place and field of one fault, and a part of what it says.
const DOCUMENTS: &[(&str, &str, &str, &str)] = &[
    ("", "", "", "is empty"),
    (" \n", "", "", "is empty"),
    ("[]", "", "", "is not an object"),
    ("\"CANARY\"", "", "", "is not an object"),
    ("true", "", "", "is not JSON"),
    ("{", "", "", "line 1 column 1: EOF"),
    ("{\"version\":1,\n\"resources\":[}", "resources[0]", "", "line 2 column 14: expected value"),
    ("{\"version\":1,\"resources\":[]} x", "", "", "trailing characters"),
    ("{\"version\":1 \"resources\":[]}", "", "", "line 1 column 14: expected `,` or `}`"),
    (
        "{\"version\":1,\"resources\":[{\"id\":\"a\",}]}",
        "resources[0]",
        "",
        "line 1 column 37: key must be a string",
    ),
    (
        "{\"version\":1,\"resources\":[{},{\"id\":\"a\n\"}]}",
        "resources[1]",
        "",
        "control character",
    ),
    ("{\"version\":1,\"resources\":[\n{\"id\":\"\\ud800\"}]}", "resources[0]", "", "line 2 column"),
    ("{\"version\":1,\"resources\":[1e999]}", "resources[0]", "", "number out of range"),
    ("{\"resources\":[]}", "", "version", "is missing; begin with"),
    ("{\"version\":1}", "", "resources", "is missing; to declare nothing"),
    ("{\"version\":2,\"resources\":[]}", "", "version", "is 2, which is unknown; this host reads"),
    ("{\"version\":1.0,\"resources\":[]}", "", "version", "is 1.0"),
    ("{\"version\":\"1\",\"resources\":[]}", "", "version", "is text"),
    ("{\"version\":null,\"resources\":[]}", "", "version", "is null"),
    ("{\"version\":1,\"version\":1,\"resources\":[]}", "", "version", "twice"),
    ("{\"version\":1,\"resources\":[],\"resources\":[]}", "", "resources", "twice"),
    ("{\"version\":1,\"resource\":[]}", "", "\"resource\"", "did you mean \"resources\"?"),
    ("{\"version\":1,\"resources\":{}}", "", "resources", "is an object, not a list"),
    ("{\"version\":1,\"resources\":{\"a\":[1]}}", "", "resources", "is an object, not a list"),
    ("{\"version\":1,\"resources\":null}", "", "resources", "is null, not a list"),
    ("{\"version\":1,\"resources\":\"CANARY\"}", "", "resources", "is text, not a list"),
    ("{\"version\":1,\"resources\":[],\"node\":7}", "", "node", "is an integer, not text"),
    ("{\"version\":1,\"resources\":[],\"node\":\"\"}", "", "node", "is not a node's name"),
    (
        "{\"version\":1,\"resources\":[],\"node\":\"Web\"}",
        "",
        "node",
        "\"Web\" is not a node's name",
    ),
    ("{\"version\":1,\"resources\":[],\"node\":\"-a\"}", "", "node", "is not a node's name"),
    ("{\"version\":1,\"resources\":[],\"serial\":-1}", "", "serial", "is negative"),
    ("{\"version\":1,\"resources\":[],\"serial\":1.5}", "", "serial", "is a number"),
    ("{\"version\":1,\"resources\":[],\"serial\":\"1\"}", "", "serial", "is text"),
    ("{\"version\":1,\"resources\":[],\"serial\":18446744073709551616}", "", "serial", "64 bits"),
    ("{\"version\":1,\"resources\":[3]}", "resources[0]", "", "is an integer, not an object"),
    ("{\"version\":1,\"resources\":[[]]}", "resources[0]", "", "is a list, not an object"),
];

/// Single resources, without their braces: the field, and a part of what is said of it.
const RESOURCES: &[(&str, &str, &str)] = &[
    // What every type has.
    (r#""type":"directory","path":"/srv""#, "id", "is missing"),
    (r#""id":7,"type":"directory","path":"/srv""#, "id", "is an integer, not text"),
    (r#""id":"","type":"directory","path":"/srv""#, "id", "is not an id"),
    (r#""id":".a","type":"directory","path":"/srv""#, "id", "is not an id"),
    (r#""id":"a b","type":"directory","path":"/srv""#, "id", "is not an id"),
    (r#""id":"a","id":"b","type":"directory","path":"/srv""#, "id", "twice"),
    (r#""id":"a","path":"/srv""#, "type", "is missing"),
    (r#""id":"a","type":null"#, "type", "is null, not text; a field without"),
    (r#""id":"a","type":"fil""#, "type", "is not a type; did you mean \"file\"?"),
    (r#""id":"a","type":"directory","path":"/srv","timeout_s":0"#, "timeout_s", "1 to 86400"),
    (r#""id":"a","type":"directory","path":"/srv","timeout_s":86401"#, "timeout_s", "1 to 86400"),
    (r#""id":"a","type":"directory","path":"/srv","timeout_s":1.0"#, "timeout_s", "is a number"),
    (r#""id":"a","type":"directory","path":"/srv","timeout_s":"9""#, "timeout_s", "not an integer"),
    (r#""id":"a","type":"directory","path":"/srv","moed":"0755""#, "moed", "mean \"mode\"?"),
    // Paths and access.
    (r#""id":"a","type":"directory""#, "path", "is missing"),
    (r#""id":"a","type":"directory","path":"srv""#, "path", "start it with /"),
    (r#""id":"a","type":"directory","path":"/""#, "path", "is the root itself"),
    (r#""id":"a","type":"directory","path":"/a/../b""#, "path", "climbs with .."),
    (r#""id":"a","type":"directory","path":"/a\u0000""#, "path", "NUL"),
    (r#""id":"a","type":"directory","path":["/a"]"#, "path", "is a list, not text"),
    (r#""id":"a","type":"directory","path":"/a","path":"/b""#, "path", "twice"),
    (r#""id":"a","type":"file","path":"/proc/sys/x","content":"1""#, "path", "as a sysctl"),
    (r#""id":"a","type":"symlink","path":"/sys","target":"x""#, "path", "as a sysctl"),
    (r#""id":"a","type":"directory","path":"/a","mode":755"#, "mode", "such as \"0644\""),
    (r#""id":"a","type":"directory","path":"/a","mode":"rwx""#, "mode", "is not a mode"),
    (r#""id":"a","type":"directory","path":"/a","mode":"0o755""#, "mode", "is not a mode"),
    (r#""id":"a","type":"directory","path":"/a","mode":"0888""#, "mode", "is not a mode"),
    (r#""id":"a","type":"directory","path":"/a","mode":"77""#, "mode", "is not a mode"),
    (r#""id":"a","type":"directory","path":"/a","owner":0"#, "owner", "is an integer, not text"),
    (r#""id":"a","type":"directory","path":"/a","owner":"""#, "owner", "is not the name"),
    (r#""id":"a","type":"directory","path":"/a","owner":"-r""#, "owner", "is not the name"),
    (r#""id":"a","type":"directory","path":"/a","owner":"a:b""#, "owner", "is not the name"),
    (r#""id":"a","type":"directory","path":"/a","group":"4294967295""#, "group", "is no id"),
    (r#""id":"a","type":"directory","path":"/a","group":"99999999999""#, "group", "is no id"),
    // file
    (r#""id":"a","type":"file","path":"/a""#, "content", "exactly one of them"),
    (
        r#""id":"a","type":"file","path":"/a","content":"","content_base64":"""#,
        "content_base64",
        "stands beside content",
    ),
    (r#""id":"a","type":"file","path":"/a","content":7"#, "content", "is an integer, not text"),
    (r#""id":"a","type":"file","path":"/a","contents":"""#, "contents", "mean \"content\"?"),
    (r#""id":"a","type":"file","path":"/a","content_base64":"A""#, "content_base64", "at byte 1"),
    (r#""id":"a","type":"file","path":"/a","content_base64":"AAA\n""#, "content_base64", "byte 3"),
    (r#""id":"a","type":"file","path":"/a","source":"http://x""#, "source", "not an object"),
    (r#""id":"a","type":"file","path":"/a","source":{}"#, "source.url", "is missing"),
    (
        r#""id":"a","type":"file","path":"/a","source":{"url":"ftp://x","sha256":""}"#,
        "source.url",
        "is not an http or https address",
    ),
    (
        r#""id":"a","type":"file","path":"/a","source":{"url":"http://","sha256":""}"#,
        "source.sha256",
        "64 hexadecimal digits",
    ),
    (
        r#""id":"a","type":"file","path":"/a","source":{"url":"http://x","url":"http://y"}"#,
        "source.url",
        "twice",
    ),
    (r#""id":"a","type":"file","path":"/a","source":{"sum":""}"#, "source.sum", "not a field"),
    (
        r#""id":"a","type":"file","path":"/a","content":"","secret":"yes""#,
        "secret",
        "true or false",
    ),
    (
        r#""id":"a","type":"file","path":"/a","secret":true,"content":{"$secret":"x"}"#,
        "content",
        "is an object, not text",
    ),
    // symlink and sysctl
    (r#""id":"a","type":"symlink","path":"/a""#, "target", "is missing"),
    (r#""id":"a","type":"symlink","path":"/a","target":"""#, "target", "is not a link's target"),
    (r#""id":"a","type":"symlink","path":"/a","target":"\u0000""#, "target", "no NUL"),
    (r#""id":"a","type":"sysctl","key":"panic","value":"1""#, "key", "is not a sysctl key"),
    (r#""id":"a","type":"sysctl","key":"a..b","value":"1""#, "key", "is not a sysctl key"),
    (r#""id":"a","type":"sysctl","key":"a.//.b","value":"1""#, "key", "is not a sysctl key"),
    (r#""id":"a","type":"sysctl","key":"a/../b","value":"1""#, "key", "is not a sysctl key"),
    (r#""id":"a","type":"sysctl","key":"a b.c","value":"1""#, "key", "is not a sysctl key"),
    (r#""id":"a","type":"sysctl","key":"a.b","value":"1\n2""#, "value", "on one line"),
    (r#""id":"a","type":"sysctl","key":"a.b","value":true"#, "value", "not text or an integer"),
    // The types that cannot be applied yet keep their rules all the same.
    (r#""id":"a","type":"package","name":"-x""#, "name", "is not a package's name"),
    (r#""id":"a","type":"package","name":"vim-""#, "name", "is not a package's name"),
    (r#""id":"a","type":"package","name":"core/vim""#, "name", "no version, repository"),
    (r#""id":"a","type":"group","name":"12""#, "name", "is not the name"),
    (r#""id":"a","type":"group","name":"g","gid":4294967295"#, "gid", "is not within"),
    (r#""id":"a","type":"user","name":"u","shell":"sh""#, "shell", "is not an absolute path"),
    (r#""id":"a","type":"user","name":"u","comment":"a:b""#, "comment", "leave colons"),
    (r#""id":"a","type":"user","name":"u","groups":["a",1]"#, "groups[1]", "is an integer"),
    (
        r#""id":"a","type":"user","name":"u","authorized_keys":["ssh-rsa AAAA\nx"]"#,
        "authorized_keys[0]",
        "is not a line of authorized_keys",
    ),
    (r#""id":"a","type":"service","unit":"a*""#, "unit", "is not the name of a unit"),
    (r#""id":"a","type":"service","unit":"system.slice""#, "unit", "is not the name of a unit"),
    (r#""id":"a","type":"service","unit":"a/b""#, "unit", "is not the name of a unit"),
    (r#""id":"a","type":"service","unit":"a@","state":"running""#, "unit", "is a template"),
    (r#""id":"a","type":"service","unit":"a","state":"runing""#, "state", "mean \"running\"?"),
    (r#""id":"a","type":"service","unit":"a","restart_on":"b""#, "restart_on", "not a list"),
    (
        r#""id":"a","type":"service","unit":"a","restart_on":["b"]"#,
        "restart_on[0]",
        "no resource has the id \"b\"",
    ),
    (
        r#""id":"a","type":"service","unit":"a","restart_on":["a"]"#,
        "restart_on[0]",
        "this resource",
    ),
    (r#""id":"a","type":"container","name":"c","image":"nginx:1""#, "image", "what a tag names"),
    (r#""id":"a","type":"container","name":"c","image":"x@sha256:00""#, "image", "is not an image"),
    (r#""id":"a","type":"container","name":"c","env":{"A":1}"#, "env.A", "put it in quotes"),
    (r#""id":"a","type":"container","name":"c","env":{"A":"","A":""}"#, "env.A", "twice"),
    (r#""id":"a","type":"container","name":"c","env":{"A=B":""}"#, "env", "is not the name"),
    (
        r#""id":"a","type":"container","name":"c","env":{"A":""},"secret_env":{"A":""}"#,
        "secret_env",
        "which env sets too",
    ),
    (
        r#""id":"a","type":"container","name":"c","ports":[{"host":0,"container":1}]"#,
        "ports[0].host",
        "is not within 1 to 65535",
    ),
    (
        r#""id":"a","type":"container","name":"c","ports":[{"host":1}]"#,
        "ports[0].container",
        "is missing",
    ),
    (r#""id":"a","type":"container","name":"c","ports":["80:80"]"#, "ports[0]", "not an object"),
    (
        r#""id":"a","type":"container","name":"c","mounts":[{"source":"./x","target":"/x"}]"#,
        "mounts[0].source",
        "is not a path of the machine",
    ),
    (
        r#""id":"a","type":"container","name":"c","health":{"command":[]}"#,
        "health.command",
        "has 0 elements",
    ),
    (
        r#""id":"a","type":"container","name":"c","networks":[],"network_mode":"host""#,
        "network_mode",
        "stands beside networks",
    ),
    (
        r#""id":"a","type":"container","name":"c","labels":{"mesh-host.x":""}"#,
        "labels",
        "are the host's",
    ),
    (r#""id":"a","type":"container_network","name":"host""#, "name", "the container engine's own"),
    (
        r#""id":"a","type":"container_network","name":"n","subnet":"10.0.0.1/8""#,
        "subnet",
        "write 10.0.0.0/8",
    ),
    (r#""id":"a","type":"packet_filter","table":"filter""#, "table", "is not the family and name"),
    (
        r#""id":"a","type":"packet_filter","table":"inet t",
           "chains":[{"name":"c","hook":"input"}]"#,
        "chains[0].type",
        "give type, hook and priority together",
    ),
    (
        r#""id":"a","type":"packet_filter","table":"inet t",
        "chains":[{"name":"c","type":"nat","hook":"forward","priority":0}]"#,
        "chains[0].hook",
        "cannot be at forward",
    ),
    (
        r#""id":"a","type":"packet_filter","table":"inet t","chains":[{"name":"c"},{"name":"c"}]"#,
        "chains[1].name",
        "twice",
    ),
    (
        r#""id":"a","type":"packet_filter","table":"inet t",
        "chains":[{"name":"c","rules":["accept; } } flush ruleset"]}]"#,
        "chains[0].rules[0]",
        "is not one statement of nft",
    ),
    (
        r#""id":"a","type":"packet_filter","table":"inet t",
        "chains":[{"name":"c","rules":["accept } flush ruleset {"]}]"#,
        "chains[0].rules[0]",
        "is not one statement of nft",
    ),
    (
        r#""id":"a","type":"packet_filter","table":"inet t",
        "chains":[{"name":"c","rules":["accept\nflush ruleset"]}]"#,
        "chains[0].rules[0]",
        "on one line",
    ),
    (
        r#""id":"a","type":"packet_filter","table":"inet t",
        "chains":[{"name":"c","rules":["include \"/etc/shadow\""]}]"#,
        "chains[0].rules[0]",
        "include",
    ),
    (
        r#""id":"a","type":"overlay","interface":"a/b","addresses":["10.0.0.1/8"]"#,
        "interface",
        "is not an interface's name",
    ),
    (r#""id":"a","type":"overlay","interface":"w","addresses":[]"#, "addresses", "has 0 elements"),
    (
        r#""id":"a","type":"overlay","interface":"w","addresses":["10.0.0.1"]"#,
        "addresses[0]",
        "10.0.0.1/24",
    ),
    (r#""id":"a","type":"peer","overlay":"w""#, "overlay", "no resource has the id \"w\""),
    (r#""id":"a","type":"peer","overlay":"w","public_key":"AAAA""#, "public_key", "44 characters"),
    (r#""id":"a","type":"peer","overlay":"w","endpoint":"a.example:1""#, "endpoint", "an address"),
    (
        r#""id":"a","type":"peer","overlay":"w","preshared_key":"CANARY""#,
        "preshared_key",
        "its value is not a WireGuard key",
    ),
    (r#""id":"a","type":"dataset","name":"a//b""#, "name", "is not a dataset's name"),
    (r#""id":"a","type":"dataset","name":"a/../b""#, "name", "is not a dataset's name"),
    (r#""id":"a","type":"action","run":[],"verify":["true"]"#, "run", "has 0 elements"),
    (r#""id":"a","type":"action","run":[""],"verify":["true"]"#, "run", "names no program"),
    (r#""id":"a","type":"action","run":["a\u0000"],"verify":["true"]"#, "run[0]", "NUL"),
    (r#""id":"a","type":"action","run":["a"],"env":{"1A":""}"#, "env", "begin with no digit"),
    (r#""id":"a","type":"action","run":["a"],"env":{"A":"\u0000"}"#, "env.A", "NUL"),
    (r#""id":"a","type":"action","run":["a"],"workdir":"x""#, "workdir", "start it with /"),
];

/// Lists of resources: the place and field of one fault, and a part of what it says.
const LISTS: &[(&str, &str, &str, &str)] = &[
    (
        r#"{"id":"a","type":"directory","path":"/a"},{"id":"a","type":"directory","path":"/b"}"#,
        r#"resources[1] "a""#,
        "id",
        "is the id of resources[0] already",
    ),
    (
        r#"{"id":"a","type":"directory","path":"/etc//a"},
           {"id":"b","type":"directory","path":"/etc/a/"}"#,
        r#"resources[1] "b""#,
        "path",
        r#""/etc/a" is declared by resources[0] "a" already"#,
    ),
    (
        r#"{"id":"a","type":"file","path":"/a","content":""},
           {"id":"b","type":"symlink","path":"/a","target":"x"}"#,
        r#"resources[1] "b""#,
        "path",
        r#"is declared by resources[0] "a""#,
    ),
    (
        r#"{"id":"a","type":"sysctl","key":"net.ipv4.ip_forward","value":1},
           {"id":"b","type":"sysctl","key":"net/ipv4/ip_forward","value":0}"#,
        r#"resources[1] "b""#,
        "key",
        "is declared by",
    ),
    (
        r#"{"id":"a","type":"service","unit":"foo"},
           {"id":"b","type":"service","unit":"foo.service"}"#,
        r#"resources[1] "b""#,
        "unit",
        r#""foo.service" is declared by"#,
    ),
    (
        r#"{"id":"w","type":"overlay","interface":"w","addresses":["10.0.0.1/8"]},
           {"id":"a","type":"peer","overlay":"w","public_key":"KEY","allowed_ips":["10.1.2.3/16"]},
           {"id":"b","type":"peer","overlay":"w","public_key":"OTHER",
            "allowed_ips":["10.1.0.0/16"]}"#,
        r#"resources[2] "b""#,
        "allowed_ips",
        r#""10.1.0.0/16 of w" is declared by"#,
    ),
    (
        r#"{"id":"w","type":"overlay","interface":"w","addresses":["10.0.0.1/8"]},
           {"id":"a","type":"peer","overlay":"w","public_key":"KEY","allowed_ips":[]},
           {"id":"b","type":"peer","overlay":"w","public_key":"KEY","allowed_ips":[]}"#,
        r#"resources[2] "b""#,
        "public_key",
        "is declared by",
    ),
    (
        r#"{"id":"w","type":"directory","path":"/a"},
           {"id":"a","type":"peer","overlay":"w","public_key":"KEY","allowed_ips":[]}"#,
        r#"resources[1] "a""#,
        "overlay",
        "is a resource of type directory, not overlay",
    ),
    (
        r#"{"id":"s","type":"service","unit":"s","restart_on":["later"]},
           {"id":"later","type":"directory","path":"/a"}"#,
        r#"resources[0] "s""#,
        "restart_on[0]",
        "stands later in the list, at resources[1]; move it before this one",
    ),
    (
        r#"{"id":"motd","type":"directory","path":"/a"},
           {"id":"s","type":"service","unit":"s","reload_on":["mtod"]}"#,
        r#"resources[1] "s""#,
        "reload_on[0]",
        "did you mean \"motd\"?",
    ),
    (
        r#"{"id":"l","type":"symlink","path":"/a","target":"/b"},
           {"id":"f","type":"file","path":"/a/f","content":""},
           {"id":"g","type":"file","path":"/b/f","content":""}"#,
        r#"resources[1] "f""#,
        "path",
        r#"to what resources[2] "g" declares"#,
    ),
    (
        r#"{"id":"l","type":"symlink","path":"/a","target":"b"},
           {"id":"m","type":"symlink","path":"/b","target":"a"},
           {"id":"f","type":"file","path":"/a/f","content":""}"#,
        r#"resources[2] "f""#,
        "path",
        "a loop of declared links",
    ),
    (
        r#"{"id":"c","type":"container","name":"c","image":"sha256:DIGEST",
            "ports":[{"host":80,"container":1}]},
           {"id":"d","type":"container","name":"d","image":"sha256:DIGEST",
            "ports":[{"host":80,"container":2}]}"#,
        r#"resources[1] "d""#,
        "ports[0].host",
        "is declared by",
    ),
];

#[test]
fn a_bad_document_is_refused_with_its_place() {
    // R-7
    for (text, place, field, part) in DOCUMENTS {
        let faults = read(text).unwrap_err();
        let hit = faults
            .iter()
            .any(|it| it.place == *place && it.field == *field && it.to_string().contains(part));
        assert!(hit, "{text}\n{place:?} {field:?} {part:?}\n{}", lines(&faults));
        assert!(!lines(&faults).contains("CANARY"), "{text}");
    }
}

#[test]
fn a_bad_resource_is_refused_with_its_field() {
    // R-7
    for (fields, field, part) in RESOURCES {
        let faults = faults(&format!("{{{fields}}}"));
        let place =
            if fields.contains(r#""id":"a""#) { r#"resources[0] "a""# } else { "resources[0]" };
        let hit = faults
            .iter()
            .any(|it| it.place == place && it.field == *field && it.to_string().contains(part));
        assert!(hit, "{fields}\n{field:?} {part:?}\n{}", lines(&faults));
        assert!(!lines(&faults).contains("CANARY"), "{fields}");
    }
}

#[test]
fn resources_that_do_not_go_together_are_refused() {
    // R-7
    for (list, place, field, part) in LISTS {
        let list = list
            .replace("KEY", super::good::KEY)
            .replace("OTHER", super::good::OTHER_KEY)
            .replace("DIGEST", &"0".repeat(64));
        let faults = faults(&list);
        let hit = faults
            .iter()
            .any(|it| it.place == *place && it.field == *field && it.to_string().contains(part));
        assert!(hit, "{list}\n{place:?} {field:?} {part:?}\n{}", lines(&faults));
        assert_eq!(faults.len(), 1, "{}", lines(&faults));
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_offset() {
    let mut text = document("").into_bytes();
    text.insert(5, 0xff);
    let faults = super::parse(text, &super::Own::default()).unwrap_err();
    assert!(lines(&faults).contains("is not UTF-8: wrong at byte 5"), "{faults:?}");
}
