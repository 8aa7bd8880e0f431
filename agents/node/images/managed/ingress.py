"""The ingress of a dev cluster: what its Ingresses say, as a configuration of HAProxy on ports 80 and 443 of the
machine. Whatever changes, everything is read anew: a configuration follows from what there is, and from nothing else.
"""
import hashlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time

import __main__ as machine
import dev_cluster

CLASS = "svccloud"
FOLDER = os.path.join(machine.RUN, "ingress")
CONFIG = os.path.join(FOLDER, "haproxy.cfg")
CERTIFICATES = os.path.join(FOLDER, "certificates")
WATCH_SECONDS = 300
QUIET_SECONDS = 0.3
AGAIN_SECONDS = 3
# Paths are the words of strangers in a file of ours.
PATH = re.compile(r"/[A-Za-z0-9/._~!$&()*+,;=:@%-]*")
HOST = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
KINDS = {
    "ingresses": "/apis/networking.k8s.io/v1/ingresses",
    "services": "/api/v1/services",
    "slices": "/apis/discovery.k8s.io/v1/endpointslices",
    "secrets": "/api/v1/secrets?fieldSelector=type%3Dkubernetes.io/tls",
}
HEAD = f"""global
    user haproxy
    group haproxy
    maxconn 2000
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout tunnel 1h
    option forwardfor
    option redispatch
frontend plain
    bind :::80 v4v6
    http-request set-header X-Forwarded-Proto http
@RULES@
frontend secure
    bind :::443 v4v6 ssl crt {FOLDER}/own.pem crt {CERTIFICATES} alpn h2,http/1.1
    http-request set-header X-Forwarded-Proto https
@RULES@
backend none
    http-request return status 404 content-type text/plain string "No Ingress is for this.\\n"
"""


# --- what a configuration comes to: pure ------------------------------------------------------------------------------

def is_ours(ingress):
    return ingress["spec"].get("ingressClassName", CLASS) == CLASS


def routes_of(ingresses):
    """Host, kind of path, path and what answers, the most special first. Of two that say the same the older holds."""
    found = {}
    for ingress in sorted(ingresses, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["uid"])):
        namespace, spec = ingress["metadata"]["namespace"], ingress["spec"]
        rules = [(rule.get("host", ""), path) for rule in spec.get("rules", []) for path in rule.get("http", {}).get("paths", [])]
        if "defaultBackend" in spec:
            rules.append(("", {"path": "/", "pathType": "Prefix", "backend": spec["defaultBackend"]}))
        for host, path in rules:
            service = path["backend"].get("service")
            text = path.get("path") or "/"
            if service is None or not PATH.fullmatch(text) or (host and not HOST.fullmatch(host)):
                continue
            is_exact = path.get("pathType") == "Exact"
            port = service.get("port", {})
            backend = (namespace, service["name"], str(port.get("number", port.get("name", ""))))
            found.setdefault((host, is_exact, text if is_exact else text.rstrip("/")), backend)
    rank = lambda route: (not route[0][0], route[0][0].startswith("*"), not route[0][1], -len(route[0][2]), route[0])
    return sorted(found.items(), key=rank)


def condition(host, is_exact, path):
    tests = []
    if host.startswith("*."):
        tests.append(f"{{ var(txn.host) -m reg '^[^.]+{re.escape(host[1:])}$' }}")
    elif host:
        tests.append(f"{{ var(txn.host) -m str '{host}' }}")
    if is_exact:
        tests.append(f"{{ path -m str '{path}' }}")
    elif path:
        tests.append(f"{{ path,concat(/) -m beg '{path}/' }}")
    return f" if {' '.join(tests)}" if tests else ""


def name_of(backend):
    return "service-" + hashlib.sha256("/".join(backend).encode()).hexdigest()[:16]


def endpoints_of(backend, services, slices):
    """Address and port of each that is ready."""
    namespace, name, port = backend
    service = services.get((namespace, name))
    wanted = next((each for each in (service or {"spec": {}})["spec"].get("ports", [])
                   if port in (str(each["port"]), each.get("name"))), None)
    if wanted is None:
        return []
    own = [each for each in slices if each["metadata"]["namespace"] == namespace
           and each["metadata"].get("labels", {}).get("kubernetes.io/service-name") == name]
    # Of a service with both families, one is enough.
    family = "IPv4" if any(each["addressType"] == "IPv4" for each in own) else "IPv6"
    found = set()
    for each in own:
        numbers = [known["port"] for known in each.get("ports") or [] if known.get("name", "") == wanted.get("name", "")]
        if each["addressType"] == family and numbers:
            found |= {(address, numbers[0]) for endpoint in each.get("endpoints") or []
                      if endpoint.get("conditions", {}).get("ready") is not False for address in endpoint["addresses"]}
    return sorted(found)


def configuration(ingresses, services, slices):
    routes = routes_of([each for each in ingresses if is_ours(each)])
    rules = ["    http-request set-var(txn.host) req.hdr(host),host_only,lower"]
    rules += [f"    use_backend {name_of(backend)}{condition(*match)}" for match, backend in routes]
    parts = [HEAD.replace("@RULES@", "\n".join([*rules, "    default_backend none"]))]
    for backend in sorted({backend for _, backend in routes}):
        endpoints = endpoints_of(backend, services, slices)
        lines = [f"    server s{number} {'[' + address + ']' if ':' in address else address}:{port}"
                 for number, (address, port) in enumerate(endpoints)]
        silent = '    http-request return status 503 content-type text/plain string "The service has no endpoints.\\n"'
        parts.append("\n".join([f"backend {name_of(backend)}", "    balance roundrobin", *(lines or [silent]), ""]))
    return "".join(parts)


def secrets_of(ingresses):
    return {(each["metadata"]["namespace"], tls["secretName"]) for each in ingresses if is_ours(each)
            for tls in each["spec"].get("tls", []) if tls.get("secretName")}


# --- what is done about it --------------------------------------------------------------------------------------------

def serve(section):
    """Goes on until HAProxy ends."""
    os.makedirs(CERTIFICATES, 0o700, exist_ok=True)
    own_certificate()
    changed = threading.Event()
    put(configuration([], {}, []))
    proxy = subprocess.Popen(["haproxy", "-W", "-f", CONFIG])
    signal.signal(signal.SIGTERM, lambda *_: (proxy.terminate(), sys.exit(0)))
    threading.Thread(target=begin, args=(section, changed), daemon=True).start()
    before = None
    while proxy.poll() is None:
        if not changed.wait(1):
            continue
        time.sleep(QUIET_SECONDS)
        changed.clear()
        try:
            before = bring(section, proxy, before)
        except (KeyError, TypeError, machine.Refused, OSError) as error:
            print(f"not brought about: {error}", flush=True)
            before = None
            time.sleep(AGAIN_SECONDS)
            changed.set()
    sys.exit(proxy.returncode or 1)


def begin(section, changed):
    dev_cluster.wait_for_api()
    changed.set()
    for path in KINDS.values():
        threading.Thread(target=follow, args=(section, path, changed), daemon=True).start()


def own_certificate():
    """For whoever asks for a name that no Ingress has a certificate for."""
    key, certificate = f"{FOLDER}/own.key", f"{FOLDER}/own.crt"
    machine.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
                "-subj", "/CN=svccloud-ingress", "-keyout", key, "-out", certificate)
    machine.write(f"{FOLDER}/own.pem", dev_cluster.read(certificate) + dev_cluster.read(key))


def put(text):
    machine.write(f"{CONFIG}.new", text)
    machine.run("haproxy", "-c", "-f", f"{CONFIG}.new")
    os.rename(f"{CONFIG}.new", CONFIG)


def follow(section, path, changed):
    """Says that something has changed; the rest is read by who is told."""
    while True:
        connection = dev_cluster.connect(section, "ingress", WATCH_SECONDS + 30)
        try:
            sign = "&" if "?" in path else "?"
            connection.request("GET", f"{path}{sign}watch=true&timeoutSeconds={WATCH_SECONDS}")
            response = connection.getresponse()
            while response.status == 200 and response.readline():
                changed.set()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(AGAIN_SECONDS)
        changed.set()


def listed(section, path):
    status, answer = dev_cluster.asks(section, "GET", path, user="ingress")
    if status != 200:
        raise machine.Refused(f"{path}: {answer.get('message', status)}")
    return answer["items"] or []


def bring(section, proxy, before):
    """Answers what runs now."""
    ingresses, services, slices, secrets = (listed(section, path) for path in KINDS.values())
    known = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in services}
    pems = certificates(ingresses, secrets)
    text = configuration(ingresses, known, slices)
    now = (text, tuple(sorted(pems.items())))
    if now != before:
        write_certificates(pems)
        put(text)
        proxy.send_signal(signal.SIGUSR2)
    for ingress in ingresses:
        if is_ours(ingress):
            say_where(section, ingress)
    return now


def certificates(ingresses, secrets):
    """Certificate and key of those that name a secret, by the name of their file; what is no pair is left out."""
    import base64
    wanted, found = secrets_of(ingresses), {}
    for secret in secrets:
        namespace, name = secret["metadata"]["namespace"], secret["metadata"]["name"]
        if (namespace, name) not in wanted:
            continue
        data = secret.get("data", {})
        pem = "\n".join(base64.b64decode(data.get(part, "")).decode(errors="replace").strip() for part in ("tls.crt", "tls.key"))
        probe = f"{FOLDER}/probe.pem"
        machine.write(probe, f"{pem}\n")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(probe)
            found[f"{namespace}_{name}.pem"] = f"{pem}\n"
        except (ssl.SSLError, ValueError) as error:
            print(f"the secret {namespace}/{name} is no certificate with its key: {error}", flush=True)
    return found


def write_certificates(pems):
    for name, pem in pems.items():
        machine.write(os.path.join(CERTIFICATES, name), pem)
    for name in os.listdir(CERTIFICATES):
        if name not in pems:
            os.unlink(os.path.join(CERTIFICATES, name))


def say_where(section, ingress):
    where = [{"ip": address} for address in section["publicAddresses"]]
    if ingress.get("status", {}).get("loadBalancer", {}).get("ingress") == where:
        return
    path = f"/apis/networking.k8s.io/v1/namespaces/{ingress['metadata']['namespace']}/ingresses/{ingress['metadata']['name']}/status"
    patch = {"status": {"loadBalancer": {"ingress": where}}}
    dev_cluster.asks(section, "PATCH", path, patch, "application/merge-patch+json", "ingress")
