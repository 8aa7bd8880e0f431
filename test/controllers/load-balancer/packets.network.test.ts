/** A load balancer of two machines in network namespaces, with the real HAProxy and keepalived, and real connections
 *  through it while it is configured, and while the machine that has the addresses dies. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../../../agents/node/run-program.ts'
import { demandsOf, documentOf, type OpenedCertificate } from '../../../controllers/load-balancer/machines.ts'
import type { LoadBalancerObject, Observed } from '../../../controllers/load-balancer/observed.ts'
import { type Machine, machineName } from '../../../controllers/managed-machine/index.ts'
import { makeCertificate } from '../../../kit/sys/certificate.ts'
import { printLine } from '../../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { LoadBalancer, type LoadBalancerSpec } from '../../../resources/load-balancer/index.ts'
import { MachineDocument } from '../../../resources/managed-machine/index.ts'
import { type MachineInNamespace, openMachineIn } from '../../agents/node/images/machine-script.ts'
import { until } from '../../eventually.ts'

const CHANGES = 100
/** The other machine may take so long, where it can have a processor; the test allows more. */
const GAP_MILLISECONDS = 2_000
const GAP_ALLOWED_MILLISECONDS = 10_000
const CIDR_BITS = 24
const SHARED = '10.9.0.9'
const MACHINES = { a: '10.9.0.2', b: '10.9.0.3' } as const
type Role = keyof typeof MACHINES
const roles = ['a', 'b'] as const
const BACKENDS = ['10.9.0.20', '10.9.0.21']
const PROXIED = 8081
const CERTIFICATE = '01234567-89ab-7def-8123-456789abcdef'

const CLAIM = {
  zone: 'z',
  name: 'web',
  networkId: 'n',
  ipv4Cidr: '10.9.0.0/24',
  ipv6Prefix: 'fd00:0:0:9::/64',
  shared: { ipv4Address: SHARED, ipv6Address: 'fd00:0:0:9::9' },
  publicIpv4: undefined,
} satisfies Observed['claim']

/** Answers each request with its address; at PROXIED with the first line of the connection. */
const SERVER = `
import http.server, socketserver, sys, threading
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        proto = self.headers.get("X-Forwarded-Proto", "")
        body = (self.server.server_address[0] + ("" if proto == "http" else " " + proto)).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Line(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().strip()
        if b"TCP" in line: self.wfile.write(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + line)
for address in sys.argv[1:]:
    http.server.ThreadingHTTPServer.request_queue_size = 512
    threading.Thread(target=http.server.ThreadingHTTPServer((address, 8080), Page).serve_forever).start()
    threading.Thread(target=socketserver.ThreadingTCPServer((address, ${PROXIED}), Line).serve_forever).start()
print("up", flush=True)
`
/** A hundred requests a second, each on a connection of its own, until its input ends; then says how many there were,
 *  and how many had no answer. */
const CLIENT = `
import http.client, json, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
done, failed, stop = [], [], threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
def ask():
    try:
        c = http.client.HTTPConnection(sys.argv[1], 80, timeout=20); c.request("GET", "/")
        r = c.getresponse(); r.read(); c.close()
        (done if r.status == 200 else failed).append(r.status)
    except Exception as error: failed.append(repr(error))
with ThreadPoolExecutor(64) as pool:
    while not stop.is_set():
        pool.submit(ask); time.sleep(0.01)
print(json.dumps({"done": len(done), "failed": failed[:5]}))
`

/** Asks one request after the other until its input ends; then says how long the longest wait for a page was, in
 *  milliseconds. */
const GAP = `
import http.client, sys, threading, time
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
last, gap = None, 0
while not stop.is_set():
    try:
        c = http.client.HTTPConnection(sys.argv[1], 80, timeout=0.2); c.request("GET", "/")
        r = c.getresponse(); r.read(); c.close()
        if r.status != 200: raise OSError
        now = time.monotonic()
        if last is None: print("begun", flush=True)
        else: gap = max(gap, now - last)
        last = now
    except OSError: pass
    time.sleep(0.01)
print(round(max(gap, time.monotonic() - last) * 1000))
`

const id = newUuid(systemRandom).slice(0, 6)
const spaceOf = (name: string): string => `lb-${id}-${name}`
const ip = (name: string, ...input: string[]) => runProgram('ip', ['-n', spaceOf(name), ...input])
const inside = (name: string, ...command: string[]) => ['netns', 'exec', spaceOf(name), ...command]
const machines = new Map<Role, MachineInNamespace>()
const macs = new Map<Role, string>()
let backends: ChildProcess | undefined
let certificate: OpenedCertificate
let folder = ''

beforeAll(async () => {
  for (const name of ['wire', 'a', 'b', 'out']) {
    await runProgram('ip', ['netns', 'add', spaceOf(name)])
    await ip(name, 'link', 'set', 'lo', 'up')
  }
  await ip('wire', 'link', 'add', 'bridge', 'type', 'bridge')
  await ip('wire', 'link', 'set', 'bridge', 'up')
  for (const name of ['a', 'b', 'out']) {
    await ip('wire', 'link', 'add', `to-${name}`, 'type', 'veth', 'peer', 'name', 'own0', 'netns', spaceOf(name))
    await ip('wire', 'link', 'set', `to-${name}`, 'master', 'bridge', 'up')
    await ip(name, 'link', 'set', 'own0', 'up')
  }
  for (const address of [...BACKENDS, '10.9.0.30']) await ip('out', 'address', 'add', `${address}/24`, 'dev', 'own0')
  for (const role of roles) {
    await ip(role, 'address', 'add', `${MACHINES[role]}/${CIDR_BITS}`, 'dev', 'own0')
    const machine = await openMachineIn(spaceOf(role))
    machines.set(role, machine)
    macs.set(role, (await machine.run('cat', '/sys/class/net/own0/address')).trim())
  }
  folder = await mkdtemp(join(tmpdir(), 'svccloud-lb-'))
  const made = await makeCertificate({
    ...{ commonName: 'web.example', hosts: ['web.example'], days: 30, now: new Date(), random: systemRandom },
  })
  certificate = { id: CERTIFICATE, certificate: made.certificate, privateKey: made.key }
  await writeFile(join(folder, 'ca.pem'), made.certificate)
  backends = spawn('ip', inside('out', 'python3', '-c', SERVER, ...BACKENDS))
  await new Promise((resolve) => backends?.stdout?.once('data', resolve))
}, 60_000)
afterAll(async () => {
  for (const machine of machines.values()) await machine.close()
  backends?.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
  for (const name of ['a', 'b', 'out', 'wire']) await runProgram('ip', ['netns', 'delete', spaceOf(name)])
}, 60_000)

const configuration = (count: number) => ({
  frontends: [
    { name: 'web', port: 80, mode: 'http', backend: 'web' },
    { name: 'raw', port: 81, mode: 'tcp', backend: 'raw' },
    { name: 'tls', port: 443, mode: 'https', backend: 'web', certificateIds: [CERTIFICATE] },
  ],
  backends: [
    { name: 'web', members: BACKENDS.slice(0, count).map((address, at) => ({ name: `m${at}`, address, port: 8080 })) },
    { name: 'raw', proxyProtocol: 'v1', members: [{ name: 'one', address: BACKENDS[0], port: PROXIED }] },
  ],
})

/** What the controller would deliver, delivered to some machines. */
async function deliver(generation: number, count: number, to: readonly Role[] = roles): Promise<void> {
  const spec: LoadBalancerSpec = LoadBalancer.spec.parse({
    ...{ zone: 'z', name: 'web', networkId: 'n', plan: 'p', ...configuration(count) },
    numbered: { generation, digest: '' },
  })
  const balancer = { metadata: { name: 'lb', namespace: 'acct-a', uid: 'u' }, spec } as LoadBalancerObject
  const known = roles.map((role) => {
    const at = { networkId: 'n', macAddress: macs.get(role), ipv4Address: MACHINES[role] }
    return { role, serverId: machineName({ uid: 'u' }, role), interfaces: [at], sharedAddresses: [] }
  }) as unknown as readonly Machine[] // what else a machine has is not looked at
  const demands = demandsOf(balancer, 'a', CLAIM, known)
  const answers = to.map(async (role) => {
    const parts = documentOf(balancer, 'a', { claim: CLAIM, machines: known, role }, [certificate])
    const fingerprint = demands.find((demand) => demand.role === role)?.configuration?.fingerprint
    const document = MachineDocument.parse({ ...parts, machine: role, generation, fingerprint })
    return machines.get(role)?.apply(document)
  })
  for (const answer of await Promise.all(answers))
    expect(answer).toMatchObject({ generation, detail: '', isHealthy: true })
}

const page = (port = 80): Promise<string> =>
  runProgram('ip', inside('out', 'curl', '--silent', '--max-time', '5', `http://${SHARED}:${port}/`)).catch(() => '')
const owners = async (): Promise<readonly Role[]> => {
  const states = await Promise.all(roles.map((role) => machines.get(role)?.run('ip', 'address', 'show', 'own0')))
  return roles.filter((_role, at) => states[at]?.includes(`${SHARED}/`))
}

test('one machine has the addresses, and members see who asks', { timeout: 120_000 }, async () => {
  await deliver(1, 2)
  await until('an owner of the address', owners, (found) => found.length === 1, 30_000)
  await until('a page', page, (text) => BACKENDS.includes(text), 30_000)
  expect(
    await until(
      'a header',
      () => page(81),
      (text) => text !== '',
      30_000,
    ),
  ).toMatch(/^PROXY TCP4 10\.9\.0\.\d+ 10\.9\.0\.9 \d+ 81$/)
})

test('https is ended here, by the certificate, and members know of it', { timeout: 60_000 }, async () => {
  const flags = ['--cacert', join(folder, 'ca.pem'), '--resolve', `web.example:443:${SHARED}`, '--max-time', '5']
  const get = (host: string) => runProgram('ip', inside('out', 'curl', '-sS', ...flags, `https://${host}/`))
  expect(BACKENDS.map((address) => `${address} https`)).toContain(await get('web.example'))
  await expect(get(SHARED)).rejects.toThrow('certificate')
})

test('no request fails while members come and go', { timeout: 600_000 }, async () => {
  const client = spawn('ip', inside('out', 'python3', '-c', CLIENT, SHARED))
  let text = ''
  client.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()))
  const active = await owners()
  for (let change = 0; change < CHANGES; change++) await deliver(2 + change, 1 + (change % 2), active)
  client.stdin.end()
  await new Promise((resolve) => client.once('close', resolve))
  const { done, failed } = JSON.parse(text) as { readonly done: number; readonly failed: readonly unknown[] }
  expect(failed).toEqual([])
  expect(done).toBeGreaterThan(CHANGES)
  await deliver(2 + CHANGES, 2)
})

/** Does something to the machine that has the addresses; how long no page came because of it, in milliseconds. */
async function gapOf(disturb: (active: Role) => Promise<void>): Promise<number> {
  const [active = 'a'] = await owners()
  const [other = 'b'] = roles.filter((role) => role !== active)
  const client = spawn('ip', inside('out', 'python3', '-c', GAP, SHARED))
  let text = ''
  client.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()))
  await until(
    'the first page',
    () => text,
    (said) => said.includes('begun'),
  )
  await disturb(active)
  await until('the other owner', owners, (found) => found.length === 1 && found[0] === other, 30_000)
  await until('a page', page, (answer) => BACKENDS.includes(answer), 30_000)
  client.stdin.end()
  await new Promise((resolve) => client.once('close', resolve))
  const milliseconds = Number(text.trim().split('\n').at(-1))
  printLine(`no page for ${milliseconds} ms (at most ${GAP_MILLISECONDS})`)
  return milliseconds
}

test('the other machine takes over from one whose proxy stands still', { timeout: 120_000 }, async () => {
  const stopped = async (active: Role) => {
    const pids = (await runProgram('ip', ['netns', 'pids', spaceOf(active)])).match(/\d+/g) ?? []
    for (const pid of pids)
      if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() === 'haproxy') process.kill(Number(pid), 'SIGSTOP')
    disturbed.push(...pids.map(Number))
  }
  const disturbed: number[] = []
  expect(await gapOf(stopped)).toBeLessThan(GAP_ALLOWED_MILLISECONDS)
  for (const pid of disturbed) process.kill(pid, 'SIGCONT')
})

test('the other machine takes over from one that dies', { timeout: 120_000 }, async () => {
  const killed = async (active: Role) => {
    const pids = (await runProgram('ip', ['netns', 'pids', spaceOf(active)])).match(/\d+/g) ?? []
    expect(pids.length).toBeGreaterThan(1)
    for (const pid of pids) process.kill(Number(pid), 'SIGKILL')
    // A machine that is off has no address any more.
    await ip(active, 'link', 'set', 'own0', 'down')
    await ip(active, 'address', 'flush', 'dev', 'own0')
  }
  expect(await gapOf(killed)).toBeLessThan(GAP_ALLOWED_MILLISECONDS)
})
