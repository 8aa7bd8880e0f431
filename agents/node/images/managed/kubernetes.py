"""A node of a Kubernetes cluster on a managed machine: what its programs are told, and how they begin. In the image of
nodes beside `machine`, which does everything else.

Six services: `containerd`; `api`, by which pods reach the API of the cluster at an address of the node itself;
`volumes`, which mounts disks of this machine for pods and knows nobody else; `kubelet`, which asks for its certificate with the token of its pool; `kube-proxy` and `tunnel`, which wait for that
certificate. Each is this script until what it needs is there, and becomes its program then.
"""
import glob
import json
import os
import socket
import time
from urllib.parse import urlsplit

import __main__ as machine

RELEASES = os.path.join(machine.ROOT, "opt/kubernetes")
TUNNEL_AGENT = os.path.join(RELEASES, "konnectivity-agent")
IMAGES = os.path.join(machine.ROOT, "usr/share/svccloud/images.json")
SOCKET = "/run/containerd/containerd.sock"
KUBELET = "/var/lib/kubelet"
# The driver of volumes: a program of the platform with what runs it, and where the kubelet looks for it.
DRIVER = os.path.join(machine.ROOT, "opt/svccloud")
DRIVER_NAME = "csi.svccloud.dev"
DRIVER_FOLDER = f"{KUBELET}/plugins/{DRIVER_NAME}"
REGISTRY = f"{KUBELET}/plugins_registry"
POD_NETWORKS = "/etc/cni/net.d"
CERTIFICATES = os.path.join(KUBELET, "pki")
CERTIFICATE = os.path.join(CERTIFICATES, "kubelet-client-current.pem")
# Whoever has a certificate reads it once: long before it ends all take the one that the kubelet has by then.
FRESH_SECONDS = 14 * 86_400
NODE_PORT = 10_250
WAIT_SECONDS = 0.5
SAID_SECONDS = 30
TABLE = "svccloud-node"
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%s"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
    conf_template = "@CURRENT@/pods.conflist"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
# containerd fills in the node's part of the range of pods, once the cluster has given it one.
RANGES = '[{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}]'
ROUTES = '[{{range $i, $route := .Routes}}{{if $i}}, {{end}}{"dst": "{{$route}}"}{{end}}]'


# --- what a document comes to -----------------------------------------------------------------------------------------

def sections(section):
    """What each service is started anew for when it changes. The token is not: a kubelet needs it once."""
    of = lambda *names: {name: section[name] for name in names}
    return {
        "containerd": {},
        "api": of("endpoint", "localApi"),
        **({"volumes": of("volumes")} if "volumes" in section else {}),
        "kubelet": of("release", "nodeName", "nodeAddress", "endpoint", "certificateAuthority", "dnsAddress"),
        "kube-proxy": of("release", "nodeName", "endpoint", "certificateAuthority", "podCidr"),
        "tunnel": of("tunnel", "nodeAddress", "certificateAuthority"),
    }


def program(section, name):
    path = os.path.join(RELEASES, section["release"], name)
    if not os.access(path, os.X_OK):
        known = sorted(os.path.basename(os.path.dirname(each)) for each in glob.glob(f"{RELEASES}/*/kubelet"))
        raise machine.Refused(f"the image has no Kubernetes {section['release']} but {', '.join(known) or 'none'}")
    return path


def kubeconfig(section, user):
    """Of the folder that is in use, which has the authority too."""
    cluster = {"server": section["endpoint"], "certificate-authority": f"{machine.CURRENT}/ca.crt"}
    return {
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "own", "cluster": cluster}],
        "users": [{"name": "own", "user": user}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        "current-context": "own",
    }


def kubelet_configuration(section):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": section["nodeAddress"], "port": NODE_PORT, "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{machine.CURRENT}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "clusterDNS": [section["dnsAddress"]], "clusterDomain": "cluster.local",
        # That of who forwards, not of this machine's own resolver, which pods do not reach.
        "resolvConf": "/run/systemd/resolve/resolv.conf",
        "rotateCertificates": True, "serverTLSBootstrap": True,
        "registerWithTaints": section["taints"],
        "systemReserved": {"cpu": "100m", "memory": "352Mi"},
        "failSwapOn": False,
    }


def proxy_configuration(section):
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": "nftables", "clusterCIDR": section["podCidr"], "hostnameOverride": section["nodeName"],
        "clientConnection": {"kubeconfig": f"{machine.CURRENT}/kubelet.kubeconfig"},
        "metricsBindAddress": "127.0.0.1:10249", "healthzBindAddress": "127.0.0.1:10256",
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def pod_network(size):
    """Text of a template, which is JSON once it is filled in."""
    bridge = {
        "type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "mtu": size,
        "ipam": {"type": "host-local", "ranges": "@RANGES@", "routes": "@ROUTES@"},
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    text = json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}, indent=1)
    return text.replace('"@RANGES@"', RANGES).replace('"@ROUTES@"', ROUTES)


def link_of(section):
    """The interface with the address of the node; None while there is none."""
    for link in json.loads(machine.run("ip", "-json", "address", "show").stdout or "[]"):
        if any(each.get("local") == section["nodeAddress"] for each in link.get("addr_info", [])):
            return link
    return None


def mtu(section):
    link = link_of(section)
    return 1_400 if link is None else link["mtu"]


def lay_out(section, folder):
    for name in ("kubelet", "kube-proxy"):
        program(section, name)
    write = lambda name, text: machine.write(os.path.join(folder, name), text)
    write("ca.crt", section["certificateAuthority"])
    pair = {"client-certificate": CERTIFICATE, "client-key": CERTIFICATE}
    write("kubelet.kubeconfig", json.dumps(kubeconfig(section, pair)))
    if "bootstrapToken" in section:
        write("join.kubeconfig", json.dumps(kubeconfig(section, {"token": section["bootstrapToken"]})))
    write("kubelet.json", json.dumps(kubelet_configuration(section)))
    write("kube-proxy.json", json.dumps(proxy_configuration(section)))
    write("pods.conflist", pod_network(mtu(section)))
    write("containerd.toml", (CONTAINERD % image("pause")).replace("@CURRENT@", machine.CURRENT))
    write("pods.nft", masquerade(section))


def masquerade(section):
    """Pods leave with the address of the node, but to each other."""
    pods = section["podCidr"]
    return f"""table ip {TABLE}
delete table ip {TABLE}
table ip {TABLE} {{
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {pods} ip daddr != {pods} masquerade
  }}
}}
"""


# --- the kernel -------------------------------------------------------------------------------------------------------

def set_up(before, section):
    """May be said at every start."""
    # A kernel that has them built in has no modules of them.
    for module in ("overlay", "br_netfilter"):
        machine.run("modprobe", module, check=False)
    for name in ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"):
        with open(f"/proc/sys/{name}", "w") as file:
            file.write("1")
    machine.run("ip", "address", "replace", f"{section['localApi']['address']}/32", "dev", "lo")
    machine.run("nft", "-f", os.path.join(machine.CURRENT, "pods.nft"))
    for route in (before or {}).get("routes", []):
        if route not in section["routes"]:
            machine.run("ip", "route", "delete", route["to"], "via", route["via"], check=False)
    set_routes(section)


def set_routes(section):
    # Until the network is there none can be set: the kubelet waits for that, and sets them again.
    for route in section["routes"]:
        machine.run("ip", "route", "replace", route["to"], "via", route["via"], check=False)


def take_over(before, section):
    """A kubelet that has not joined with the token of before begins again with another one."""
    token = section.get("bootstrapToken")
    if before is not None and token is not None and token != before.get("bootstrapToken") and not has_joined():
        machine.stop("kubelet")
        machine.start("kubelet")


def has_joined():
    return os.path.exists(CERTIFICATE)


# --- services ---------------------------------------------------------------------------------------------------------

def properties(name):
    """Of its unit, besides those that all have."""
    if name == "containerd":
        return ["Delegate=yes", "KillMode=process", "OOMScoreAdjust=-999", "TasksMax=infinity"]
    if name == "kubelet":
        return ["KillMode=process", "OOMScoreAdjust=-900"]
    return [f"RuntimeMaxSec={FRESH_SECONDS}"] if name in ("kube-proxy", "tunnel") else []


def serve(name):
    """Becomes the program of the service once what it needs is there."""
    document = machine.current_document()
    section = document["kubernetes"]
    if name == "kubelet":
        wait("the network", lambda: link_of(section) is not None)
        set_routes(section)
        wait("containerd", answers)
    elif name in ("kube-proxy", "tunnel"):
        wait("the certificate of the kubelet", has_joined)
    elif name == "volumes":
        # A kubelet that cannot register a driver, since its node is not in the cluster yet, waits ever longer to try
        # again. containerd has the file once the node has its range of pods.
        wait("the node to be in the cluster", lambda: glob.glob(f"{POD_NETWORKS}/*"))
        for folder in (DRIVER_FOLDER, REGISTRY):
            os.makedirs(folder, 0o700, exist_ok=True)
        os.environ.update(driver_environment(section["volumes"]))
    command = command_of(name, section)
    os.execv(command[0], command)


def driver_environment(volumes):
    return {
        "SVCCLOUD_SERVER_ID": volumes["serverId"], "SVCCLOUD_ZONE": volumes["zone"],
        "SVCCLOUD_CSI_SOCKET": f"{DRIVER_FOLDER}/csi.sock",
        "SVCCLOUD_REGISTRATION_SOCKET": f"{REGISTRY}/{DRIVER_NAME}-reg.sock",
    }


def wait(what, holds, seconds=WAIT_SECONDS):
    said_at = 0
    while not holds():
        if time.monotonic() - said_at > SAID_SECONDS:
            print(f"waits for {what}", flush=True)
            said_at = time.monotonic()
        time.sleep(seconds)


def command_of(name, section):
    current = machine.CURRENT
    if name == "containerd":
        return ["/usr/bin/containerd", "--config", f"{current}/containerd.toml"]
    if name == "api":
        own, end = section["localApi"], urlsplit(section["endpoint"])
        host = f"TCP6:[{end.hostname}]" if ":" in end.hostname else f"TCP4:{end.hostname}"
        listen = f"TCP4-LISTEN:{own['port']},bind={own['address']},reuseaddr,fork,max-children=512"
        return ["/usr/bin/socat", "-T", "3600", listen, f"{host}:{end.port}"]
    if name == "kubelet":
        # Without the token, which is taken away once it has joined, its certificate is all it has.
        join = f"{current}/join.kubeconfig"
        return [
            program(section, "kubelet"), f"--config={current}/kubelet.json", f"--kubeconfig={current}/kubelet.kubeconfig",
            *([f"--bootstrap-kubeconfig={join}"] if os.path.exists(join) and not has_joined() else []),
            f"--cert-dir={CERTIFICATES}", f"--hostname-override={section['nodeName']}", f"--node-ip={section['nodeAddress']}",
        ]
    if name == "volumes":
        return [f"{DRIVER}/node", f"{DRIVER}/addons/csi/main.ts", "node"]
    if name == "kube-proxy":
        return [program(section, "kube-proxy"), f"--config={current}/kube-proxy.json"]
    end = section["tunnel"]
    return [
        TUNNEL_AGENT, f"--ca-cert={current}/ca.crt", f"--agent-cert={CERTIFICATE}", f"--agent-key={CERTIFICATE}",
        f"--proxy-server-host={end['host']}", f"--proxy-server-port={end['port']}",
        f"--agent-identifiers=ipv4={section['nodeAddress']}", "--sync-interval=1s",
        "--admin-bind-address=127.0.0.1", "--health-server-host=127.0.0.1",
    ]


# --- images -----------------------------------------------------------------------------------------------------------

def images():
    """Names of those that the machine brings: containerd has them."""
    return machine.read_json(IMAGES) or []


def image(name):
    return next((each for each in images() if f"/{name}:" in each), "")


def answers():
    """Whether containerd does."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(SOCKET) == 0
