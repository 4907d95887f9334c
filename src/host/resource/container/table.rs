//! How a declaration names a container: its fields, their forms and what they may not be. Pure.

use std::borrow::Cow;

use super::build;
use crate::declaration::fault::quoted;
use crate::digest::unhex;
use crate::resource::container_network::CONTAINER_NAME;
use crate::resource::fields::Fields;
use crate::resource::form::{absolute, word, Text, ABSOLUTE, ARGV};
use crate::resource::kind::{Carrier, Field, Judge, Kind, Secrecy, Shape, Touch};
use crate::resource::net::ADDRESS;
use crate::resource::service::RESTART_ON;

/// How a declaration names a container.
pub static KIND: Kind = Kind {
    name: "container",
    doc: "A container. It is replaced when its declaration changes, and on leaving it removed if \
          it is the host's own by label and journal.",
    fields: &[
        Field::required("name", "Its name.", Shape::Text(&CONTAINER_NAME)),
        Field::required(
            "image",
            "What it runs, pinned: repo@sha256:… or a local sha256:….",
            Shape::Text(&IMAGE),
        ),
        Field::optional("command", "Arguments in place of the image's.", ARGUMENTS),
        Field::optional("entrypoint", "A program in place of the image's.", ARGUMENTS),
        Field::optional("env", "Variables.", Shape::Map(&VARIABLE, &ARGV, 4096)),
        Field::optional(
            "secret_env",
            "Variables whose values are shown nowhere.",
            Shape::Map(&VARIABLE, &ARGV, 4096),
        )
        .kept(Secrecy::Always),
        Field::optional("ports", "What it offers.", Shape::List(&Shape::Object(PORT), 0, 1024)),
        Field::optional(
            "mounts",
            "What of the machine it sees.",
            Shape::List(&Shape::Object(MOUNT), 0, 1024),
        ),
        Field::optional(
            "networks",
            "The networks it joins, by name, in this order.",
            Shape::List(&Shape::Text(&CONTAINER_NAME), 0, 64),
        ),
        Field::optional(
            "network_mode",
            "In place of networks: bridge, host, none or container:NAME.",
            Shape::Text(&NETWORK_MODE),
        ),
        Field::optional("hostname", "What it calls itself.", Shape::Text(&HOSTNAME)),
        Field::optional("user", "Who it runs as, user or user:group.", Shape::Text(&USER)),
        Field::optional("workdir", "Where it starts.", Shape::Text(&ABSOLUTE)),
        Field::optional(
            "restart",
            "When it is started again: no, always, unless-stopped, on-failure or on-failure:N.",
            Shape::Text(&RESTART),
        ),
        Field::optional("health", "How to tell whether it is well.", Shape::Object(HEALTH)),
        Field::optional(
            "wait_healthy_s",
            "How long it may take to be well, in seconds; absent: it is not waited for.",
            Shape::Integer(1, 86_400),
        ),
        Field::optional(
            "memory_bytes",
            "The most memory it may use, in bytes.",
            Shape::Integer(6 << 20, 1 << 50),
        ),
        Field::optional("cpus", "The most processors it may use.", Shape::Number(0.01, 4096.0)),
        Field::optional("cap_add", "Capabilities it has besides the usual.", CAPABILITIES),
        Field::optional("cap_drop", "Capabilities it has not.", CAPABILITIES),
        Field::optional("read_only", "Its root cannot be written.", Shape::Bool).or("false"),
        Field::optional(
            "tmpfs",
            "Paths in it that hold memory: /run or /run:size=64m,mode=755.",
            Shape::List(&Shape::Text(&TMPFS), 0, 256),
        ),
        Field::optional(
            "devices",
            "Devices it sees: /dev/fuse, /dev/fuse:/dev/fuse or /dev/fuse:/dev/fuse:rwm.",
            Shape::List(&Shape::Text(&DEVICE), 0, 256),
        ),
        Field::optional("privileged", "It is held back by nothing.", Shape::Bool).or("false"),
        Field::optional(
            "extra_hosts",
            "Names it knows: name:address.",
            Shape::List(&Shape::Text(&EXTRA_HOST), 0, 1024),
        ),
        Field::optional("dns", "Name servers it asks.", Shape::List(&Shape::Text(&ADDRESS), 0, 16)),
        Field::optional("labels", "Labels.", Shape::Map(&LABEL, &ARGV, 1024)),
        Field::optional(
            "stop_timeout_s",
            "How long it may take to stop before it is killed, in seconds.",
            Shape::Integer(0, 86_400),
        ),
        RESTART_ON,
    ],
    exactly_one: &[],
    default_timeout_s: 900,
    carrier: Carrier::Any,
    rules,
    build: Some(build),
};

/// Secrets reach the engine in the environment of its client, which must not take them for its own:
/// these beginnings mean something to it, to its loader and to its runtime.
const CLIENT: [&str; 4] = ["DOCKER_", "LD_", "GO", "OTEL_"];

const ARGUMENTS: Shape = Shape::List(&ARGV, 1, 1024);
static ONE_CAPABILITY: Shape = Shape::Text(&CAPABILITY);
const CAPABILITIES: Shape = Shape::List(&ONE_CAPABILITY, 0, 64);
const PORT_NUMBER: Shape = Shape::Integer(1, 65_535);
const SECONDS: Shape = Shape::Integer(1, 86_400);

static PORT: &[Field] = &[
    Field::required("host", "The machine's port.", PORT_NUMBER),
    Field::required("container", "The container's port.", PORT_NUMBER),
    Field::optional("protocol", "Of what protocol.", Shape::Choice(&["tcp", "udp", "sctp"]))
        .or("\"tcp\""),
    Field::optional("address", "The machine's address; absent: any.", Shape::Text(&ADDRESS)),
];

static MOUNT: &[Field] = &[
    Field::required("source", "A path of the machine, or a volume's name.", Shape::Text(&SOURCE)),
    Field::required("target", "Where the container sees it.", Shape::Text(&ABSOLUTE)),
    Field::optional("read_only", "It cannot be written there.", Shape::Bool).or("false"),
];

static HEALTH: &[Field] = &[
    Field::required("command", "Exits 0 while the container is well.", ARGUMENTS),
    Field::optional("interval_s", "How often, in seconds.", SECONDS).or("30"),
    Field::optional("timeout_s", "How long it may take, in seconds.", SECONDS).or("30"),
    Field::optional("retries", "How many failures make it unwell.", Shape::Integer(1, 1000))
        .or("3"),
    Field::optional(
        "start_period_s",
        "How long failures at the start do not count, in seconds.",
        Shape::Integer(0, 86_400),
    )
    .or("0"),
];

fn rules<'a>(fields: &Fields<'a>, judge: &mut dyn Judge<'a>) {
    if let Some(name) = fields.text("name") {
        judge.claims("name", "container", name.clone());
    }
    ports(fields, judge);
    for (at, mount) in fields.list("mounts").iter().enumerate() {
        let mount = mount.as_fields();
        let source = mount.text("source").filter(|source| source.starts_with('/'));
        if let Some(source) = source.filter(|_| !mount.is_true("read_only")) {
            judge.touches(&format!("mounts[{at}].source"), Touch::Tree(source));
        }
    }
    if fields.has("networks") && fields.has("network_mode") {
        judge.wrong("network_mode", "stands beside networks".into(), "give one of the two");
    }
    for (name, _) in fields.map("secret_env") {
        if fields.map("env").iter().any(|(other, _)| other == name) {
            let wrong = format!("sets {}, which env sets too", quoted(name));
            judge.wrong("secret_env", wrong, "set it in one of the two");
        }
        if CLIENT.iter().any(|prefix| name.starts_with(prefix)) {
            let wrong = format!("sets {}, which the engine's own client heeds", quoted(name));
            judge.wrong("secret_env", wrong, "give it in a secret file that is mounted");
        }
    }
}

/// A port of the machine is offered to one container.
fn ports<'a>(fields: &Fields<'a>, judge: &mut dyn Judge<'a>) {
    let mut seen = Vec::new();
    for (at, port) in fields.list("ports").iter().enumerate() {
        let port = port.as_fields();
        let Some(host) = port.integer("host") else { continue };
        let address = port.text("address").map_or("any address", |it| it);
        let protocol = port.text("protocol").map_or("tcp", |it| it);
        let name = format!("{protocol} port {host} of {address}");
        let field = format!("ports[{at}].host");
        if seen.contains(&name) {
            judge.wrong(&field, format!("{name} stands here twice"), "keep one of the two");
        } else {
            seen.push(name.clone());
            judge.claims(&field, "port", Cow::Owned(name));
        }
    }
}

static IMAGE: Text = Text {
    what: "an image pinned by its digest",
    mend: "write repo@sha256: or sha256: and 64 hexadecimal digits: what a tag names can change",
    pattern: "^([A-Za-z0-9][A-Za-z0-9._:/-]*@)?sha256:[0-9a-f]{64}$",
    max: 512,
    holds: |text| {
        let (repo, digest) = text.rsplit_once('@').map_or((None, text), |(r, d)| (Some(r), d));
        let digits = digest.strip_prefix("sha256:").unwrap_or("");
        unhex::<32>(digits).is_some()
            && !digits.bytes().any(|byte| byte.is_ascii_uppercase())
            && repo.is_none_or(|repo| word(repo, "", "._:/-") && !repo.contains("//"))
    },
};

// Wider than a shell's: some images read settings from names with dots and dashes.
static VARIABLE: Text = Text {
    what: "the name of an environment variable",
    mend: "leave out =, blanks and control characters",
    pattern: "^[!-<>-~]+$",
    max: 256,
    holds: |text| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=')
    },
};

static SOURCE: Text = Text {
    what: "a path of the machine or a volume's name",
    mend: "write an absolute path without .., or the bare name of a volume",
    pattern: "^(/[^\\u0000-\\u001f\\u007f]*|[A-Za-z0-9][A-Za-z0-9_.-]*)$",
    max: 4095,
    holds: |text| absolute(text) || word(text, "", "_.-"),
};

static NETWORK_MODE: Text = Text {
    what: "a network mode",
    mend: "write bridge, host, none or container:NAME",
    pattern: "^(bridge|host|none|container:[A-Za-z0-9][A-Za-z0-9_.-]*)$",
    max: 210,
    holds: |text| match text.strip_prefix("container:") {
        Some(name) => word(name, "", "_.-"),
        None => matches!(text, "bridge" | "host" | "none"),
    },
};

static HOSTNAME: Text = Text {
    what: "a host's name",
    mend: "use letters, digits, - and ., and begin and end with a letter or digit",
    pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$",
    max: 253,
    holds: |text| word(text, "", ".-") && !text.ends_with(['.', '-']),
};

static USER: Text = Text {
    what: "a user, or a user and group",
    mend: "write names or numbers, as user or user:group",
    pattern: "^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$",
    max: 65,
    holds: |text| {
        let (user, group) = text.split_once(':').map_or((text, None), |(u, g)| (u, Some(g)));
        word(user, "_", "_.-") && group.is_none_or(|group| word(group, "_", "_.-"))
    },
};

static RESTART: Text = Text {
    what: "a restart policy",
    mend: "write no, always, unless-stopped, on-failure or on-failure:N",
    pattern: "^(no|always|unless-stopped|on-failure(:[0-9]{1,5})?)$",
    max: 16,
    holds: |text| match text.strip_prefix("on-failure:") {
        Some(n) => (1..=5).contains(&n.len()) && n.bytes().all(|byte| byte.is_ascii_digit()),
        None => matches!(text, "no" | "always" | "unless-stopped" | "on-failure"),
    },
};

static CAPABILITY: Text = Text {
    what: "a capability",
    mend: "write its name in capitals, such as NET_ADMIN, or ALL",
    pattern: "^[A-Z][A-Z0-9_]*$",
    max: 64,
    holds: |text| {
        let lower = text.bytes().any(|byte| byte.is_ascii_lowercase());
        word(text, "", "_") && !lower && !text.starts_with(|c: char| c.is_ascii_digit())
    },
};

static TMPFS: Text = Text {
    what: "a path in memory",
    mend: "write an absolute path, and options after a colon",
    pattern: "^/[^:\\u0000-\\u001f\\u007f]*(:[A-Za-z0-9=,_.%-]+)?$",
    max: 4095,
    holds: |text| {
        let (path, options) = text.split_once(':').map_or((text, None), |(p, o)| (p, Some(o)));
        absolute(path) && options.is_none_or(|options| word(options, "", "=,_.%-"))
    },
};

static DEVICE: Text = Text {
    what: "a device",
    mend: "write its path, and after colons the path in the container and any of r w m",
    pattern: "^/[^:\\u0000-\\u001f\\u007f]*(:/[^:\\u0000-\\u001f\\u007f]*)?(:[rwm]{1,3})?$",
    max: 4095,
    holds: |text| {
        let parts: Vec<&str> = text.split(':').collect();
        let rights = |part: &str| {
            (1..=3).contains(&part.len()) && part.bytes().all(|byte| b"rwm".contains(&byte))
        };
        match parts.as_slice() {
            [path] => absolute(path),
            [path, last] => absolute(path) && (absolute(last) || rights(last)),
            [path, within, last] => absolute(path) && absolute(within) && rights(last),
            _ => false,
        }
    },
};

static EXTRA_HOST: Text = Text {
    what: "a name and its address",
    mend: "write name:address, or name:host-gateway",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*:([0-9A-Fa-f.:]+|host-gateway)$",
    max: 300,
    holds: |text| {
        text.split_once(':').is_some_and(|(name, address)| {
            word(name, "", "._-") && (address == "host-gateway" || (ADDRESS.holds)(address))
        })
    },
};

static LABEL: Text = Text {
    what: "a label's name",
    mend: "use letters, digits and any of _ . / -; those that begin with mesh-host are the host's",
    pattern: "^[A-Za-z0-9][A-Za-z0-9_./-]*$",
    max: 256,
    holds: |text| word(text, "", "_./-") && !text.starts_with("mesh-host"),
};
