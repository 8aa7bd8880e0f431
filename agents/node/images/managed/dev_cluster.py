"""A whole Kubernetes cluster on a managed machine: its control plane, its only node, its ingress and its volumes. In
the image of dev clusters beside `machine`, which does everything else, and `kubernetes.py`, which knows nodes.

All keys are made here, once, and never leave: the platform gets the certificate of the cluster's authority, and brings
public keys only. Each service is this script until what it needs is there, and becomes its program then; `objects`
stays: it keeps in the cluster what belongs to the platform, and notes what the platform is to know.
"""
import base64
import ipaddress
import json
import os
import sys
import time
import urllib.parse

import __main__ as machine
import kubernetes as node

KEYS = os.path.join(machine.LIB, "cluster")
DATA = os.path.join(machine.LIB, "etcd")
VOLUMES = os.path.join(machine.LIB, "volumes")
NOTE = os.path.join(machine.RUN, "dev-cluster.json")
PROGRAMS = os.path.join(machine.ROOT, "opt/kubernetes")
AUTHORIZED_KEYS = os.path.join(machine.CURRENT, "authorized_keys")
DAYS = "3650"
ISSUER_PORT = 6_440
ETCD, ETCD_PEER = "https://127.0.0.1:2379", "https://127.0.0.1:2380"
LOOK_SECONDS = 5
# Between questions of one service while the API starts, which has no time for them.
API_SECONDS = 3
APPLY_SECONDS = 300
NOTE_SECONDS = 60
SYSTEM = "kube-system"
# Accounts of administrators that are ready for the platform to give away: each to one holder of a kubeconfig.
ADMINS = [f"svccloud-admin-{number}" for number in range(1, 65)]
ADMIN_LABEL = "svccloud.dev/kubeconfig"
# How many are made between two looks: each takes a part of a second where processors are emulated.
ADMINS_AT_ONCE = 8
PROVISIONER = "rancher.io/local-path"
TOKEN_SECONDS_MAXIMUM = 900
ROLES = {"owner": "cluster-admin", "admin": "cluster-admin", "member": "edit", "viewer": "view"}
TABLE = "svccloud-dev"
CONTROL = ("issuer", "etcd", "apiserver", "controller-manager", "scheduler")
# Whose certificate each has: its name, its group where it is in one.
CLIENTS = {
    "objects": ("svccloud:platform", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", None),
    "scheduler": ("system:kube-scheduler", None),
    "kube-proxy": ("system:kube-proxy", None),
    "local-path": ("svccloud:local-path", None),
    "ingress": ("svccloud:ingress", None),
    "kubelet-client": ("svccloud:kubelet-client", "system:masters"),
}


# --- what a document comes to -----------------------------------------------------------------------------------------

def sections(section):
    """What each service is started anew for when it changes."""
    of = lambda *names: {name: section[name] for name in names}
    return {
        "containerd": {},
        "issuer": of("issuer"),
        "etcd": {},
        "apiserver": of("release", "publicAddresses", "serviceCidrs", "issuer", "serviceAccountIssuer", "adminKey", "apiPort"),
        "controller-manager": of("release", "podCidrs", "serviceCidrs"),
        "scheduler": of("release"),
        "kubelet": of("release", "nodeName", "publicAddresses", "dnsAddress"),
        "kube-proxy": of("release", "nodeName", "podCidrs"),
        "objects": of("dnsAddress", "nodeLabels", "serviceCidrs"),
        "local-path": {},
        "ingress": of("publicAddresses"),
        "ssh": of("authorizedKeys"),
    }


def first_of(cidr):
    return str(ipaddress.ip_network(cidr)[1])


def program(section, name):
    path = os.path.join(PROGRAMS, section["release"], name)
    if not os.access(path, os.X_OK):
        raise machine.Refused(f"the image has no {name} of Kubernetes {section['release']}")
    return path


def local_api(section):
    return f"https://{section['nodeAddress']}:{section['apiPort']}"


def kubeconfig(section, name):
    pair = {"client-certificate": f"{KEYS}/{name}.crt", "client-key": f"{KEYS}/{name}.key"}
    cluster = {"server": local_api(section), "certificate-authority": f"{KEYS}/ca.crt"}
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "own",
        "clusters": [{"name": "own", "cluster": cluster}], "users": [{"name": "own", "user": pair}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
    }


def authentication(section):
    """Nobody without a token but for whether it is ready; the platform's tokens are short and say a role."""
    issuer = section["issuer"]
    jwt = {
        "issuer": {
            "url": issuer["url"], "audiences": [issuer["audience"]],
            "discoveryURL": f"https://127.0.0.1:{ISSUER_PORT}/.well-known/openid-configuration",
            "certificateAuthority": read(f"{KEYS}/ca.crt"),
        },
        "claimValidationRules": [
            {"expression": f"claims.exp - claims.iat <= {TOKEN_SECONDS_MAXIMUM}", "message": "the token lives too long"},
            {"expression": f"claims.account_role in {json.dumps(list(ROLES))}", "message": "the role is unknown"},
        ],
        "claimMappings": {
            "username": {"expression": "'svccloud:' + claims.sub"},
            "groups": {"expression": "['svccloud:account', 'svccloud:role:' + claims.account_role]"},
            "uid": {"expression": "claims.sub"},
        },
        "userValidationRules": [
            {"expression": "!user.username.startsWith('system:')", "message": "names of the system are not for people"}
        ],
    }
    paths = [{"path": path} for path in ("/livez", "/readyz", "/healthz")]
    return {
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": paths}, "jwt": [jwt],
    }


def kubelet_configuration(section):
    return {
        **node.kubelet_configuration({**section, "taints": []}),
        "authentication": {
            "anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": f"{KEYS}/ca.crt"},
        },
        "rotateCertificates": False, "serverTLSBootstrap": False,
        "tlsCertFile": f"{KEYS}/kubelet-server.crt", "tlsPrivateKeyFile": f"{KEYS}/kubelet-server.key",
        # What the control plane and the rest take.
        "systemReserved": {"cpu": "300m", "memory": "900Mi"},
    }


def proxy_configuration(section):
    return {
        **node.proxy_configuration({**section, "podCidr": ",".join(section["podCidrs"])}),
        "clientConnection": {"kubeconfig": f"{machine.CURRENT}/kube-proxy.kubeconfig"},
    }


def lay_out(section, folder):
    for name in ("kube-apiserver", "kubelet"):
        program(section, name)
    make_keys(section)
    write = lambda name, content: machine.write(
        os.path.join(folder, name), content if isinstance(content, str) else json.dumps(content)
    )
    for name in (*CLIENTS, "kubelet"):
        write(f"{name}.kubeconfig", kubeconfig(section, name))
    write("authentication.json", authentication(section))
    write("admin.pub", section["adminKey"])
    write("kubelet.json", kubelet_configuration(section))
    write("kube-proxy.json", proxy_configuration(section))
    write("pods.conflist", node.pod_network(public_mtu()))
    write("containerd.toml", (node.CONTAINERD % node.image("pause")).replace("@CURRENT@", machine.CURRENT))
    write("pods.nft", masquerade(section))
    write("local-path.json", LOCAL_PATH)
    write("authorized_keys", "".join(f"{key}\n" for key in section["authorizedKeys"]))
    write("sshd_config", sshd_config())


def public_mtu():
    links = json.loads(machine.run("ip", "-json", "link", "show").stdout or "[]")
    return min((link["mtu"] for link in links if link["ifname"].startswith("eth")), default=1_400)


def masquerade(section):
    ipv4, ipv6 = section["podCidrs"]
    return f"""table inet {TABLE}
delete table inet {TABLE}
table inet {TABLE} {{
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {ipv4} ip daddr != {ipv4} masquerade
    ip6 saddr {ipv6} ip6 daddr != {ipv6} masquerade
  }}
}}
"""


def sshd_config():
    lines = [
        "Port 22", f"HostKey {machine.LIB}/{machine.HOST_KEY}", f"PidFile {machine.RUN}/sshd.pid",
        f"AuthorizedKeysFile {AUTHORIZED_KEYS}", "AllowUsers root", "PermitRootLogin prohibit-password",
        "PasswordAuthentication no", "KbdInteractiveAuthentication no", "UsePAM no", "StrictModes no",
        "MaxAuthTries 6", "LoginGraceTime 60", "Subsystem sftp internal-sftp",
    ]
    return "\n".join([*lines, ""])


# --- keys -------------------------------------------------------------------------------------------------------------

def read(path):
    with open(path) as file:
        return file.read()


def new_key(path):
    """As a whole or not at all."""
    if not os.path.exists(path):
        machine.run("openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", f"{path}.new")
        os.chmod(f"{path}.new", 0o600)
        os.rename(f"{path}.new", path)


def certify(name, common_name, group=None, sans=(), authority="ca", is_authority=False):
    """A certificate for the key of that name, unless it has one that says the same."""
    path, wanted = f"{KEYS}/{name}", json.dumps([common_name, group, list(sans), authority])
    if os.path.exists(f"{path}.crt") and os.path.exists(f"{path}.is") and read(f"{path}.is") == wanted:
        return
    new_key(f"{path}.key")
    subject = (f"/O={group}" if group else "") + f"/CN={common_name}"
    own = [] if is_authority else ["-CA", f"{KEYS}/{authority}.crt", "-CAkey", f"{KEYS}/{authority}.key"]
    usage = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"] if is_authority else [
        "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", "extendedKeyUsage=serverAuth,clientAuth"
    ]
    names = ",".join(f"{'IP' if is_address(san) else 'DNS'}:{san}" for san in sans)
    extensions = [*usage, *([f"subjectAltName={names}"] if sans else [])]
    machine.run(
        "openssl", "req", "-x509", "-new", "-sha256", "-key", f"{path}.key", "-subj", subject, "-days", DAYS, *own,
        *(word for each in extensions for word in ("-addext", each)), "-out", f"{path}.crt.new",
    )
    os.rename(f"{path}.crt.new", f"{path}.crt")
    machine.write(f"{path}.is", wanted)


def is_address(text):
    try:
        return ipaddress.ip_address(text) is not None
    except ValueError:
        return False


def make_keys(section):
    """Those that are there stay; certificates follow the addresses."""
    os.makedirs(KEYS, 0o700, exist_ok=True)
    for name in ("ca", "etcd-ca", "front-ca"):
        certify(name, f"svccloud-{name}", is_authority=True)
    new_key(f"{KEYS}/accounts.key")
    machine.run("openssl", "ec", "-in", f"{KEYS}/accounts.key", "-pubout", "-out", f"{KEYS}/accounts.pub")
    local = ["localhost", "127.0.0.1", "::1"]
    certify("etcd", "etcd", sans=local, authority="etcd-ca")
    certify("etcd-client", "kube-apiserver", authority="etcd-ca")
    certify("front-proxy", "front-proxy", authority="front-ca")
    certify("issuer", "issuer", sans=local)
    names = [f"kubernetes{rest}" for rest in ("", ".default", ".default.svc", ".default.svc.cluster.local")]
    own = [section["nodeAddress"], *section["publicAddresses"]]
    certify("apiserver", "kube-apiserver", sans=[*names, *local, *map(first_of, section["serviceCidrs"]), *own])
    certify("kubelet", f"system:node:{section['nodeName']}", "system:nodes")
    certify("kubelet-server", f"system:node:{section['nodeName']}", "system:nodes", sans=[section["nodeName"], *own])
    for name, (user, group) in CLIENTS.items():
        certify(name, user, group)


# --- the kernel -------------------------------------------------------------------------------------------------------

def set_up(section):
    """May be said at every start."""
    for module in ("overlay", "br_netfilter"):
        machine.run("modprobe", module, check=False)
    for name in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/bridge/bridge-nf-call-iptables"):
        with open(f"/proc/sys/{name}", "w") as file:
            file.write("1")
    machine.run("ip", "address", "replace", f"{section['nodeAddress']}/32", "dev", "lo")
    machine.run("hostname", section["nodeName"], check=False)
    machine.run("nft", "-f", os.path.join(machine.CURRENT, "pods.nft"))


# --- services ---------------------------------------------------------------------------------------------------------

def properties(name):
    """Of its unit, besides those that all have."""
    if name in ("containerd", "kubelet"):
        return node.properties(name)
    if name == "ingress":
        return ["KillMode=control-group"]
    return ["OOMScoreAdjust=-800", "Environment=GOGC=50"] if name in CONTROL else []


def serve(name):
    """Becomes the program of the service once what it needs is there."""
    section = machine.current_document()["devCluster"]
    if name == "issuer":
        return serve_issuer(section)
    if name == "objects":
        return keep_objects(section)
    if name == "ingress":
        import ingress
        return ingress.serve(section)
    if name == "ssh":
        machine.make_host_key()
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
        say_host_key()
    elif name == "etcd":
        os.makedirs(DATA, 0o700, exist_ok=True)
    elif name in ("controller-manager", "scheduler", "kube-proxy"):
        wait_for_api()
    elif name == "local-path":
        wait_for_api()
        path = f"/api/v1/namespaces/{SYSTEM}/configmaps/local-path-config"
        node.wait("what it may do", lambda: asks(section, "GET", path, user=name)[0] == 200, API_SECONDS)
    elif name == "kubelet":
        node.wait("its addresses", lambda: has_addresses(section))
        node.wait("containerd", node.answers)
        # Until then it could do nothing but take time from those who start.
        wait_for_api()
    command = command_of(name, section)
    os.execv(command[0], command)


def wait_for_api():
    """One service asks for all. An API server that is asked by many while it starts on a slow machine does not get
    ready in the minute that it gives itself, ends, and begins again."""
    node.wait("the API", lambda: (machine.read_json(NOTE) or {}).get("isReady", False))


def has_addresses(section):
    links = json.loads(machine.run("ip", "-json", "address", "show").stdout or "[]")
    usable = {each.get("local") for link in links for each in link.get("addr_info", []) if not each.get("tentative")}
    return {section["nodeAddress"], *section["publicAddresses"][:1]} <= usable


def say_host_key():
    """On the console, where the platform reads it."""
    if machine.ROOT != "/":
        return
    try:
        with open("/dev/console", "w") as console:
            key = read(f"{machine.LIB}/{machine.HOST_KEY}.pub").strip()
            console.write(f"\n-----BEGIN SSH HOST KEY KEYS-----\n{key}\n-----END SSH HOST KEY KEYS-----\n")
    except OSError:
        pass


def command_of(name, section):
    current = machine.CURRENT
    if name == "containerd":
        return node.command_of(name, section)
    if name == "ssh":
        return ["/usr/sbin/sshd", "-D", "-e", "-f", f"{current}/sshd_config"]
    if name == "etcd":
        return etcd_command()
    if name == "apiserver":
        return apiserver_command(section)
    if name == "kubelet":
        addresses = f"{section['nodeAddress']},{section['publicAddresses'][0]}"
        return [
            program(section, "kubelet"), f"--config={current}/kubelet.json", f"--kubeconfig={current}/kubelet.kubeconfig",
            f"--hostname-override={section['nodeName']}", f"--node-ip={addresses}",
        ]
    if name == "kube-proxy":
        return [program(section, "kube-proxy"), f"--config={current}/kube-proxy.json"]
    if name == "local-path":
        return [
            f"{PROGRAMS}/local-path-provisioner", "start", f"--config={current}/local-path.json",
            f"--kubeconfig={current}/local-path.kubeconfig", f"--namespace={SYSTEM}", f"--provisioner-name={PROVISIONER}",
            "--configmap-name=local-path-config", "--service-account-name=local-path", f"--helper-image={node.image('busybox')}",
        ]
    own = [program(section, f"kube-{name}"), f"--kubeconfig={current}/{name}.kubeconfig"]
    own += ["--leader-elect=false", "--secure-port=0", "--profiling=false"]
    return own + (manager_options(section) if name == "controller-manager" else [])


def etcd_command():
    tls = lambda kind: [
        f"--{kind}cert-file={KEYS}/etcd.crt", f"--{kind}key-file={KEYS}/etcd.key",
        f"--{kind}trusted-ca-file={KEYS}/etcd-ca.crt", f"--{kind}client-cert-auth",
    ]
    return [
        f"{PROGRAMS}/etcd", "--name=own", f"--data-dir={DATA}", f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}",
        f"--listen-peer-urls={ETCD_PEER}", f"--initial-advertise-peer-urls={ETCD_PEER}", f"--initial-cluster=own={ETCD_PEER}",
        "--log-level=error", *tls(""), *tls("peer-"),
    ]


def apiserver_command(section):
    key = lambda name: f"{KEYS}/{name}"
    return [
        program(section, "kube-apiserver"), f"--etcd-servers={ETCD}", f"--etcd-cafile={key('etcd-ca.crt')}",
        f"--etcd-certfile={key('etcd-client.crt')}", f"--etcd-keyfile={key('etcd-client.key')}",
        "--bind-address=::", f"--secure-port={section['apiPort']}", f"--advertise-address={section['nodeAddress']}",
        f"--tls-cert-file={key('apiserver.crt')}", f"--tls-private-key-file={key('apiserver.key')}",
        f"--client-ca-file={key('ca.crt')}", f"--authentication-config={machine.CURRENT}/authentication.json",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
        f"--service-account-key-file={key('accounts.pub')}", f"--service-account-key-file={machine.CURRENT}/admin.pub",
        f"--service-account-signing-key-file={key('accounts.key')}",
        f"--service-account-issuer={section['serviceAccountIssuer']}",
        f"--service-cluster-ip-range={','.join(section['serviceCidrs'])}",
        f"--requestheader-client-ca-file={key('front-ca.crt')}", "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={key('front-proxy.crt')}", f"--proxy-client-key-file={key('front-proxy.key')}",
        f"--kubelet-client-certificate={key('kubelet-client.crt')}", f"--kubelet-client-key={key('kubelet-client.key')}",
        f"--kubelet-certificate-authority={key('ca.crt')}", "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true", "--profiling=false",
    ]


def manager_options(section):
    return [
        f"--service-account-private-key-file={KEYS}/accounts.key", f"--root-ca-file={KEYS}/ca.crt",
        f"--cluster-signing-cert-file={KEYS}/ca.crt", f"--cluster-signing-key-file={KEYS}/ca.key",
        "--use-service-account-credentials=true", "--allocate-node-cidrs=true",
        f"--cluster-cidr={','.join(section['podCidrs'])}", f"--service-cluster-ip-range={','.join(section['serviceCidrs'])}",
    ]


def serve_issuer(section):
    """Where the API server gets the public keys by which tokens of people are judged."""
    import http.server
    import ssl
    issuer = section["issuer"]
    discovery = {
        "issuer": issuer["url"], "jwks_uri": f"https://127.0.0.1:{ISSUER_PORT}/jwks", "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"],
    }
    pages = {"/.well-known/openid-configuration": discovery, "/jwks": {"keys": issuer["keys"]}}

    class Door(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page = pages.get(self.path)
            body = json.dumps(page or {}).encode()
            self.send_response(404 if page is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", ISSUER_PORT), Door)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{KEYS}/issuer.crt", f"{KEYS}/issuer.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


# --- the API ----------------------------------------------------------------------------------------------------------

# Whoever only asks how the machine is does without these, which take a second where processors are emulated.
def connect(section, user="objects", seconds=30):
    import http.client
    import ssl
    context = ssl.create_default_context(cafile=f"{KEYS}/ca.crt")
    context.load_cert_chain(f"{KEYS}/{user}.crt", f"{KEYS}/{user}.key")
    return http.client.HTTPSConnection(section["nodeAddress"], section["apiPort"], context=context, timeout=seconds)


KEPT = {}


def asks(section, method, path, body=None, kind="application/json", user="objects"):
    """Status and answer; 0 when nobody answers. By the connection of before, where that still stands: making one takes
    a second where processors are emulated."""
    import http.client
    text = None if body is None else json.dumps(body)
    while True:
        kept = KEPT.pop(user, None)
        connection = kept or connect(section, user)
        try:
            connection.request(method, path, text, {"content-type": kind, "accept": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            KEPT[user] = connection
            break
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if kept is None:
                return 0, {"message": str(error)}
    try:
        return response.status, json.loads(answer)
    except ValueError:
        return response.status, {"message": answer.decode(errors="replace")}


def apply(section, path, manifest):
    whole = f"{path}/{manifest['metadata']['name']}?fieldManager=svccloud&force=true"
    status, answer = asks(section, "PATCH", whole, manifest, "application/apply-patch+yaml")
    if status not in (200, 201):
        raise machine.Refused(f"{manifest['kind']} {manifest['metadata']['name']}: {answer.get('message', status)}")
    return answer


# --- what belongs to the platform -------------------------------------------------------------------------------------

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SHELL = "/bin/sh"
LOCAL_PATH = {
    "nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [VOLUMES]}],
    "setupCommand": "", "teardownCommand": "",
}


ACCOUNTS = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts"


def account(name, **labels):
    return (ACCOUNTS, {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": SYSTEM, "labels": labels},
    })


def binding(name, role, *subjects):
    return (f"{RBAC}/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"svccloud:{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": subjects,
    })


def role(name, *rules):
    return (f"{RBAC}/clusterroles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"svccloud:{name}"},
        "rules": [{"apiGroups": groups, "resources": of, "verbs": verbs} for groups, of, verbs in rules],
    })


def subject(kind, name):
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": SYSTEM}
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def objects(section):
    """Their paths and themselves, in the order in which they are made."""
    see = ["get", "list", "watch"]
    everything = ["*"]
    return [
        *(binding(f"role-{name}", of, subject("Group", f"svccloud:role:{name}")) for name, of in ROLES.items()),
        role("ingress", (["networking.k8s.io"], ["ingresses", "ingressclasses"], see),
             (["networking.k8s.io"], ["ingresses/status"], ["patch", "update"]),
             ([""], ["services", "secrets"], see), (["discovery.k8s.io"], ["endpointslices"], see)),
        binding("ingress", "svccloud:ingress", subject("User", "svccloud:ingress")),
        ("/apis/networking.k8s.io/v1/ingressclasses", {
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": "svccloud.dev/ingress"},
            "metadata": {"name": "svccloud", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        }),
        account("local-path"),
        role("local-path", ([""], ["nodes", "persistentvolumeclaims", "configmaps", "pods", "pods/log"], see),
             ([""], ["pods"], ["create", "delete", "patch", "update"]),
             ([""], ["persistentvolumes"], everything), (["", "events.k8s.io"], ["events"], ["create", "patch"]),
             (["storage.k8s.io"], ["storageclasses"], see), ([""], ["endpoints"], everything),
             (["coordination.k8s.io"], ["leases"], everything)),
        binding("local-path", "svccloud:local-path", subject("User", "svccloud:local-path")),
        (f"/api/v1/namespaces/{SYSTEM}/configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "local-path-config", "namespace": SYSTEM},
            "data": local_path_files(),
        }),
        ("/apis/storage.k8s.io/v1/storageclasses", {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": PROVISIONER,
            "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete",
            "metadata": {"name": "local-path", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        }),
        *coredns(section),
    ]


def local_path_files():
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "helper-pod"},
        "spec": {
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "helper-pod", "image": node.image("busybox"), "imagePullPolicy": "IfNotPresent"}],
        },
    }
    return {
        "config.json": json.dumps(LOCAL_PATH), "helperPod.yaml": json.dumps(pod),
        "setup": f'#!{SHELL}\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
        "teardown": f'#!{SHELL}\nset -eu\nrm -rf "$VOL_DIR"\n',
    }


COREFILE = """.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
"""


def coredns(section):
    labels = {"k8s-app": "kube-dns"}
    probe = lambda path, port: {"httpGet": {"path": path, "port": port}, "timeoutSeconds": 5}
    container = {
        "name": "coredns", "image": node.image("coredns"), "imagePullPolicy": "IfNotPresent", "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}, {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"}],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
        "readinessProbe": probe("/ready", 8181), "livenessProbe": {**probe("/health", 8080), "initialDelaySeconds": 60},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "170Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        },
    }
    pod = {
        "serviceAccountName": "coredns", "priorityClassName": "system-cluster-critical", "dnsPolicy": "Default",
        "containers": [container], "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    in_system = lambda name: {"name": name, "namespace": SYSTEM, "labels": labels}
    return [
        account("coredns"),
        role("coredns", ([""], ["services", "pods", "namespaces"], ["list", "watch"]),
             (["discovery.k8s.io"], ["endpointslices"], ["list", "watch"])),
        binding("coredns", "svccloud:coredns", subject("ServiceAccount", "coredns")),
        (f"/api/v1/namespaces/{SYSTEM}/configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": in_system("coredns"), "data": {"Corefile": COREFILE},
        }),
        (f"/apis/apps/v1/namespaces/{SYSTEM}/deployments", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": in_system("coredns"),
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        }),
        (f"/api/v1/namespaces/{SYSTEM}/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": in_system("kube-dns"),
            "spec": {"selector": labels, "clusterIP": section["dnsAddress"], "clusterIPs": [section["dnsAddress"]], "ports": ports},
        }),
    ]


def keep_objects(section):
    """Goes on for ever: makes anew what is missing, and notes how the cluster is."""
    applied_at = None
    while True:
        note = {"isReady": False, "isNodeReady": False, "detail": ""}
        try:
            applied_at = look(section, note, applied_at)
        except machine.Refused as error:
            note["detail"], applied_at = str(error)[:250], None
        say(note)
        time.sleep(LOOK_SECONDS)


def say(note):
    machine.write(f"{NOTE}.new", json.dumps(note))
    os.rename(f"{NOTE}.new", NOTE)


def keep_admins(section):
    """Ends the accounts that the platform says are over, and makes those that are missing, some at a time. Each token is
    of one account and one uid: it is worthless once that is gone, whoever has the next account of the name."""
    status, answer = asks(section, "GET", f"{ACCOUNTS}?labelSelector={urllib.parse.quote(ADMIN_LABEL)}")
    if status != 200:
        raise machine.Refused(f"accounts of administrators: {answer.get('message', status)}")
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in answer["items"]}
    # Asked for at each look: an end starts no service anew.
    ended = machine.current_document()["devCluster"].get("endedAdmins", [])
    for name in [name for name, uid in uids.items() if uid in ended]:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uids.pop(name)}}
        status, answer = asks(section, "DELETE", f"{ACCOUNTS}/{name}", options)
        if status not in (200, 404, 409):
            raise machine.Refused(f"account {name} is not removed: {answer.get('message', status)}")
    for name in [name for name in ADMINS if name not in uids][:ADMINS_AT_ONCE]:
        uids[name] = apply(section, *account(name, **{ADMIN_LABEL: "own"}))["metadata"]["uid"]
    return [{"name": name, "uid": uids[name]} for name in ADMINS if name in uids]


def entry(section, admins):
    """How somebody gets in."""
    version = asks(section, "GET", "/version")[1].get("gitVersion", "")
    return {"isReady": True, "admins": admins, "version": version, "certificateAuthority": read(f"{KEYS}/ca.crt")}


def look(section, note, applied_at):
    status, answer = asks(section, "GET", "/readyz")
    if status != 200:
        # Of the checks, those that are good are the most, and say nothing.
        failing = [line for line in answer.get("message", "").splitlines() if not line.endswith(" ok")]
        note["detail"] = f"its API is not ready: {' '.join(failing)}"[:250]
        return None
    is_due = applied_at is None or time.monotonic() - applied_at > APPLY_SECONDS
    if is_due:
        apply(section, *binding("admin", "cluster-admin", *(subject("ServiceAccount", name) for name in ADMINS)))
    note.update(entry(section, keep_admins(section)))
    if is_due:
        # What cannot be made is said, and keeps nobody out.
        for each, wanted in objects(section):
            if applied_at is None:
                say({**note, "detail": "what it comes with is being made"})
            apply(section, each, wanted)
        applied_at = time.monotonic()
    own, found = asks(section, "GET", f"/api/v1/nodes/{section['nodeName']}")
    if own != 200:
        note["detail"] = "its node has not joined"
        return applied_at
    conditions = {each["type"]: each for each in found["status"].get("conditions", [])}
    ready = conditions.get("Ready", {})
    note["isNodeReady"] = ready.get("status") == "True"
    if not note["isNodeReady"]:
        note["detail"] = f"its node is not ready: {ready.get('message', '')}"[:250]
    missing = {key: value for key, value in section["nodeLabels"].items() if found["metadata"]["labels"].get(key) != value}
    if missing:
        patch = {"metadata": {"labels": missing}}
        asks(section, "PATCH", f"/api/v1/nodes/{section['nodeName']}", patch, "application/merge-patch+json")
    return applied_at


def report():
    """What was noted last, unless that is old; and what is wrong."""
    note = machine.read_json(NOTE)
    if note is None or time.time() - os.stat(NOTE).st_mtime > NOTE_SECONDS:
        note = {"isReady": False, "isNodeReady": False, "detail": "its API has not answered yet"}
    return note, note["detail"]
