"""The programs that put Flux into a TrainJob's pods and start it there.

``init`` runs in the image that has Flux built in: it copies Flux into a volume and writes the broker's configuration.
``entrypoint`` runs in the trainer's image: it starts a broker on each node, and the TrainJob's command on the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BROKER_PORT: Final = 8050

_INIT: Final = """\
#!/bin/bash
# Copies Flux from this image to the volume that the trainer shares, and configures its brokers.
set -eu
shared=/mnt/flux
config=${shared}/config

mkdir -p "${shared}/view" "${config}/etc/flux/system/cron.d" "${config}/etc/flux/config" \\
  "${config}/etc/curve" "${config}/run/flux" "${config}/var/lib/flux"

printf '%s\\n' '@HOSTS@' > "${config}/etc/flux/system/hostlist"
cat > "${config}/etc/flux/config/broker.toml" <<'TOML'
@BROKER@TOML

# /opt/view is a link to the one view that spack has built, and its libraries are links into /opt/software.
for view in /opt/views/._view/*; do
  cp -R "${view}/." "${shared}/view"
done
cp -R /opt/software "${shared}/"
echo "Flux is in ${shared}."
"""

_BROKER: Final = """\
[bootstrap]
curve_cert = "/mnt/flux/config/etc/curve/curve.cert"
default_port = @PORT@
default_bind = "@BIND@"
default_connect = "@CONNECT@"
hosts = [
  { host = "@HOSTS@" },
]

[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "/mnt/flux/config/etc/flux/system/R"

[archive]
dbpath = "/mnt/flux/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = "@QUEUE_POLICY@"
"""

_ENTRYPOINT: Final = """\
#!/bin/bash
# Starts a broker of Flux on this node; the first node runs the command that is given, by Flux, on all nodes.
set -eu
shared=/mnt/flux
view=${shared}/view
config=${shared}/config
lead=@LEAD@

# Behind the image's own programs, which go first.
export PATH=${PATH}:${view}/bin
cp -R "${shared}/software/." /opt/software/

# Flux brings its own Python, whose links were made for another place.
library=$(find "${view}/lib" -maxdepth 1 -type d -name 'python3*' | head -n 1)
python=${view}/bin/$(basename "${library}")
if [ -f "${python}" ]; then
  ln -sf "${python}" "${view}/bin/python3"
  ln -sf "${python}" "${view}/bin/python"
fi
export PYTHONPATH=${PYTHONPATH:-}:${library}/site-packages
export FLUX_RC_EXTRA=${view}/etc/flux/rc1.d

# For those who look into a pod: `. /mnt/flux/flux-view.sh` and `flux proxy ${fluxsocket}`.
cat > "${shared}/flux-view.sh" <<VIEW
export PATH=${PATH}
export PYTHONPATH=${PYTHONPATH}
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:${view}/lib
export fluxsocket=local://${config}/run/flux/local
VIEW

# A broker refuses a certificate that others can read.
cp /curve/curve.cert "${config}/etc/curve/curve.cert"
chown "$(id -u)" "${config}/etc/curve/curve.cert"
chmod 600 "${config}/etc/curve/curve.cert"

flux R encode --hosts="$(cat "${config}/etc/flux/system/hostlist")" @RESOURCES@ > "${config}/etc/flux/system/R"

export STATE_DIR=${config}/var/lib/flux
mkdir -p "${STATE_DIR}"
options=(
  "-Scron.directory=${config}/etc/flux/system/cron.d"
  "-Stbon.fanout=256"
  "-Srundir=${config}/run/flux"
  "-Sstatedir=${STATE_DIR}"
  "-Slocal-uri=local://${config}/run/flux/local"
  "-Slog-stderr-level=0"
  "-Slog-stderr-mode=local"
)

if [ "$(hostname)" != "${lead}" ]; then
  # The lead broker may come up later than this one: try until it has been joined and has ended.
  until flux start -o --config "${config}/etc/flux/config" "${options[@]}"; do
    echo "The lead broker ${lead} cannot be joined yet; trying again in 15 s."
    sleep 15
  done
elif [ -z "${1:-}" ]; then
  # No command: a broker for people to work with.
  exec flux broker --config-path "${config}/etc/flux/config" "${options[@]}"
else
  eval "command=(${1})"
  exec flux start -o --config "${config}/etc/flux/config" "${options[@]}" flux run @FLAGS@ "${command[@]}"
fi
"""


@dataclass(frozen=True, kw_only=True)
class FluxCluster:
    """What the programs must know of a TrainJob."""

    train_job: str
    namespace: str
    replicated_job: str
    subdomain: str
    nodes: int
    tasks: int
    """Of each node."""
    gpus: int
    """Of each node."""
    network_device: str
    queue_policy: str

    @property
    def lead(self) -> str:
        """The host name of the first node."""
        return f"{self.train_job}-{self.replicated_job}-0-0"

    @property
    def hosts(self) -> str:
        """The host names of all nodes, as Flux writes lists of hosts."""
        return f"{self.train_job}-{self.replicated_job}-0-[{_range(self.nodes)}]"


def init_script(cluster: FluxCluster) -> str:
    """The program of the init container."""
    return _filled(_INIT, {"HOSTS": cluster.hosts, "BROKER": broker_configuration(cluster)})


def entrypoint_script(cluster: FluxCluster) -> str:
    """The program of the trainer's container; its only argument is the command to run."""
    flags = f"-N {cluster.nodes} -n {cluster.tasks * cluster.nodes}"
    resources = f"--cores={_range(cluster.tasks)}"
    if cluster.gpus:
        flags += f" -g {cluster.gpus}"
        resources += f" --gpu={_range(cluster.gpus)}"
    return _filled(_ENTRYPOINT, {"LEAD": cluster.lead, "RESOURCES": resources, "FLAGS": flags})


def broker_configuration(cluster: FluxCluster) -> str:
    """The brokers' configuration: where they listen, and whom they connect to."""
    domain = f"{cluster.subdomain}.{cluster.namespace}.svc.cluster.local"
    facts = {
        "PORT": str(BROKER_PORT),
        "BIND": f"tcp://{cluster.network_device}:%p",
        "CONNECT": f"tcp://%h.{domain}:%p",
        "HOSTS": cluster.hosts,
        "QUEUE_POLICY": cluster.queue_policy,
    }
    return _filled(_BROKER, facts)


def _range(count: int) -> str:
    return "0" if count == 1 else f"0-{count - 1}"


def _filled(text: str, facts: dict[str, str]) -> str:
    for name, value in facts.items():
        text = text.replace(f"@{name}@", value)
    return text
