//! How a container and a network are made: the arguments, and what of them a label stands for.
//! Pure.

use crate::resource::container::Container;
use crate::resource::container_network::ContainerNetwork;

/// The labels of what the host makes: a digest of what it was made from; the host's own mark; and
/// when the engine was to start it again, which a replacement has to take away for a time.
pub const FORM: &str = "mesh-host.form";
/// See [`FORM`].
pub const MARK: &str = "mesh-host.mark";
/// See [`FORM`].
pub const RESTART: &str = "mesh-host.restart";

/// What makes the container `it`, but for its name and the host's labels: options, then the image
/// and its arguments. The values of secrets stand in neither.
///
/// The digest in [`FORM`] is taken over this: a change here replaces every container there is.
pub fn settings(it: &Container) -> (Vec<String>, Vec<String>) {
    let mut options = Vec::new();
    let mut add = |option: &str, value: &str| options.push(format!("--{option}={value}"));
    let network = it.networks.first().or(it.network_mode.as_ref());
    let texts = [
        ("network", network),
        ("hostname", it.hostname.as_ref()),
        ("user", it.user.as_ref()),
        ("workdir", it.workdir.as_ref()),
        ("entrypoint", it.entrypoint.first()),
    ];
    texts.iter().for_each(|(option, text)| text.iter().for_each(|text| add(option, text)));
    let numbers = [("stop-timeout", it.stop_timeout_s), ("memory", it.memory_bytes)];
    for (option, number) in numbers {
        number.iter().for_each(|number| add(option, &number.to_string()));
    }
    if let Some(nano) = it.nano_cpus {
        add("cpus", &format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000));
    }
    add("restart", it.restart());
    let lists = [
        ("cap-add", &it.cap_add),
        ("cap-drop", &it.cap_drop),
        ("tmpfs", &it.tmpfs),
        ("device", &it.devices),
        ("add-host", &it.extra_hosts),
        ("dns", &it.dns),
    ];
    for (option, values) in lists {
        values.iter().for_each(|value| add(option, value));
    }
    for (option, map) in [("label", &it.labels), ("env", &it.env)] {
        map.iter().for_each(|(name, value)| add(option, &format!("{name}={value}")));
    }
    it.secret_env.names().for_each(|name| add("env", name));
    for (option, is_set) in [("read-only", it.read_only), ("privileged", it.privileged)] {
        if is_set {
            add(option, "true");
        }
    }
    for port in &it.ports {
        let address = match &port.address {
            None => String::new(),
            Some(address) if address.contains(':') => format!("[{address}]:"),
            Some(address) => format!("{address}:"),
        };
        let (host, container, protocol) = (port.host, port.container, &port.protocol);
        add("publish", &format!("{address}{host}:{container}/{protocol}"));
    }
    for mount in &it.mounts {
        let kind = if mount.source.starts_with('/') { "bind" } else { "volume" };
        let (source, target) = (&mount.source, &mount.target);
        let mut text = format!("type={kind},{},{}", csv("source", source), csv("target", target));
        if mount.read_only {
            text += ",readonly";
        }
        add("mount", &text);
    }
    if let Some(health) = &it.health {
        // The client takes a line for the shell of the image and nothing else (20.10 to 28).
        let words: Vec<String> = health.command.iter().map(|word| in_shell(word)).collect();
        add("health-cmd", &format!("exec {}", words.join(" ")));
        let times = [
            ("interval", health.interval_s),
            ("timeout", health.timeout_s),
            ("start-period", health.start_period_s),
        ];
        for (time, seconds) in times {
            add(&format!("health-{time}"), &format!("{seconds}s"));
        }
        add("health-retries", &health.retries.to_string());
    }
    let entry = it.entrypoint.iter().skip(1);
    let arguments = entry.chain(&it.command).map(|argument| argument.to_string());
    (options, [it.image.to_string()].into_iter().chain(arguments).collect())
}

/// The command that makes the container `it` under this name, with these labels of the host's.
pub fn create(it: &Container, name: &str, labels: &[(&str, &str)]) -> Vec<String> {
    let (options, image) = settings(it);
    let labels = labels.iter().map(|(label, value)| format!("--label={label}={value}"));
    let begin = ["docker", "create", "--pull=never"].map(String::from);
    let all = begin.into_iter().chain([format!("--name={name}")]).chain(options).chain(labels);
    all.chain(["--".to_string()]).chain(image).collect()
}

/// The command that makes the network `it`, with this mark of the host's.
pub fn create_network(it: &ContainerNetwork, mark: &str) -> Vec<String> {
    let mut argv = ["docker", "network", "create"].map(String::from).to_vec();
    argv.push(format!("--driver={}", it.driver));
    argv.push(format!("--label={MARK}={mark}"));
    if let Some(subnet) = &it.subnet {
        argv.push(format!("--subnet={subnet}"));
        if subnet.contains(':') {
            argv.push("--ipv6".into());
        }
    }
    if it.internal {
        argv.push("--internal".into());
    }
    argv.extend(["--".to_string(), it.name.to_string()]);
    argv
}

/// A field of a mount: the client reads the whole as a line of comma-separated values.
fn csv(name: &str, value: &str) -> String {
    match value.contains([',', '"']) {
        true => format!("\"{name}={}\"", value.replace('"', "\"\"")),
        false => format!("{name}={value}"),
    }
}

/// A word that a shell takes as it is.
fn in_shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
