/** A load balancer of two machines in network namespaces, with the real HAProxy and keepalived, and real connections
 *  through it while it is configured, and while the machine that has the addresses stands still or dies. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../../../../agents/node/run-program.ts'
import type { OpenedCertificate } from '../../../../controllers/nouns/load-balancer/machines.ts'
import { makeCertificate } from '../../../../kit/sys/certificate.ts'
import { nodeBinary, printLine } from '../../../../kit/sys/process.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { until } from '../../../eventually.ts'
import { BACKENDS, type BalancerPair, openBalancerPair, PAGES_PORT, PROXIED, type Role, roles, SHARED } from './pair.ts'
import { PYTHON } from '../../../python.ts'

/** As many as there is time for, where the machine is busy. */
const CHANGES = { most: 100, least: 3, seconds: 40 }
/** Two seconds are the aim, of a machine that dies. How long it takes is printed; here there may be no processor for
 *  so long. */
const GAP_MILLISECONDS_MAXIMUM = 60_000
const CERTIFICATE = '01234567-89ab-7def-8123-456789abcdef'

/** A hundred requests a second, each on a separate connection, until its input ends; then says how many there were, and
 *  how many had no answer. */
const CLIENT = `
const { connect } = require('node:net')
let done = 0
const failed = []
const ask = () => {
  let text = ''
  const request = 'GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n'
  const socket = connect(80, process.argv[1], () => socket.write(request))
  socket.setTimeout(20_000, () => socket.destroy())
  socket.on('data', (bytes) => (text += bytes)).on('error', () => {})
  socket.on('close', () => (text.startsWith('HTTP/1.1 200 ') ? done++ : failed.push(text.slice(0, 60))))
}
const timer = setInterval(ask, 10)
process.stdin.resume().on('end', () => clearInterval(timer))
process.on('exit', () => console.log(JSON.stringify({ done, failed: failed.slice(0, 5) })))
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

/** Answers each connection with every byte that came over it, in hexadecimal, once its sender has nothing more. */
const RECORDED = 8082
const RECORD = `
import socketserver, sys
class Record(socketserver.BaseRequestHandler):
    def handle(self):
        said = b""
        while True:
            more = self.request.recv(4096)
            if not more: break
            said += more
        if said: self.request.sendall(said.hex().encode())
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
server = Server((sys.argv[1], ${RECORDED}), Record)
print("up", flush=True)
server.serve_forever()
`
/** Says something to a port of the balancer and no more; prints the answer. */
const SAY = `
import socket, sys
asker = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
asker.sendall(sys.argv[3].encode()); asker.shutdown(socket.SHUT_WR)
said = b""
while True:
    more = asker.recv(4096)
    if not more: break
    said += more
print(said.decode())
`
const SENT = 'hello from a client'
const INBOUND = 'PROXY TCP4 192.0.2.7 192.0.2.8 4711 94\r\n'
/** By port: what the client says, and what the member hears. */
const RAW = {
  91: { proxyProtocol: 'none', says: SENT, hears: /^hello from a client$/ },
  92: {
    proxyProtocol: 'v1',
    says: SENT,
    hears: /^PROXY TCP4 10\.9\.0\.\d+ 10\.9\.0\.9 \d+ 92\r\nhello from a client$/,
  },
  93: { proxyProtocol: 'v2', says: SENT, hears: /^\r\n\r\n\0\r\nQUIT\n\x21\x11\0[^]{13,}hello from a client$/ },
  94: {
    proxyProtocol: 'v1',
    says: INBOUND + SENT,
    hears: /^PROXY TCP4 192\.0\.2\.7 192\.0\.2\.8 4711 94\r\nhello from a client$/,
  },
} as const

let pair: BalancerPair
let certificate: OpenedCertificate
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-lb-'))
  const made = await makeCertificate({
    commonName: 'web.example',
    hosts: ['web.example'],
    days: 30,
    now: new Date(),
    random: systemRandom,
  })
  certificate = { id: CERTIFICATE, certificate: made.certificate, privateKey: made.key }
  await writeFile(join(folder, 'ca.pem'), made.certificate)
  pair = await openBalancerPair()
  const recorder = pair.start('out', PYTHON, '-c', RECORD, BACKENDS[0] ?? '')
  await new Promise((resolve) => recorder.stdout?.once('data', resolve))
})
afterAll(async () => {
  await pair.close()
  await rm(folder, { recursive: true, force: true })
})

const configuration = (count: number) => ({
  frontends: [
    { name: 'web', port: 80, mode: 'http', backend: 'web' },
    { name: 'raw', port: 81, mode: 'tcp', backend: 'raw' },
    ...Object.keys(RAW).map((port) => ({
      name: `raw-${port}`,
      port: Number(port),
      mode: 'tcp',
      backend: `raw-${port}`,
      ...(port === '94' ? { inboundProxyProtocol: true } : {}),
    })),
    { name: 'tls', port: 443, mode: 'https', backend: 'web', certificateIds: [CERTIFICATE] },
  ],
  backends: [
    {
      name: 'web',
      members: BACKENDS.slice(0, count).map((address, at) => ({ name: `m${at}`, address, port: PAGES_PORT })),
    },
    ...Object.entries(RAW).map(([port, { proxyProtocol }]) => ({
      name: `raw-${port}`,
      proxyProtocol,
      members: [{ name: 'one', address: BACKENDS[0], port: RECORDED }],
    })),
    { name: 'raw', proxyProtocol: 'v1', members: [{ name: 'one', address: BACKENDS[0], port: PROXIED }] },
  ],
})

async function deliver(generation: number, count: number, to: readonly Role[] = roles): Promise<void> {
  for (const answer of await pair.deliver({ generation, ...configuration(count) }, [certificate], to))
    expect(answer).toMatchObject({ generation, detail: '', isHealthy: true })
}

const page = (port = 80): Promise<string> =>
  pair.run('out', 'curl', '--silent', '--max-time', '5', `http://${SHARED}:${port}/`).catch(() => '')
const isPage = (text: string): boolean => BACKENDS.some((address) => text === `${address} http page`)

test('one machine has the addresses, and members see who asks', async () => {
  await deliver(1, 2)
  await until('an owner of the address', pair.owners, (found) => found.length === 1)
  await until('a page', page, isPage)
  expect(
    await until(
      'a header',
      () => page(81),
      (text) => text !== '',
    ),
  ).toMatch(/^PROXY TCP4 10\.9\.0\.\d+ 10\.9\.0\.9 \d+ 81$/)
})

test('a member that listens on TCP hears every byte, and members with proxy_protocol learn the client', async () => {
  for (const [port, { says, hears }] of Object.entries(RAW)) {
    const said = await until(
      `what a member hears at port ${port}`,
      () => pair.run('out', PYTHON, '-c', SAY, SHARED, port, says).catch(() => ''),
      (text) => text.trim() !== '',
    )
    expect(Buffer.from(said.trim(), 'hex').toString('latin1')).toMatch(hears)
  }
})

test('https is ended here, by the certificate, and members know of it', async () => {
  const flags = ['--cacert', join(folder, 'ca.pem'), '--resolve', `web.example:443:${SHARED}`, '--max-time', '5']
  const get = (host: string) => pair.run('out', 'curl', '-sS', ...flags, `https://${host}/`)
  expect(BACKENDS.map((address) => `${address} https page`)).toContain(await get('web.example'))
  await expect(get(SHARED)).rejects.toThrow('certificate')
})

test('no request fails while members come and go', async () => {
  const client = pair.start('out', nodeBinary(), '-e', CLIENT, SHARED)
  let text = ''
  client.stdout?.on('data', (bytes: Buffer) => (text += bytes.toString()))
  const active = await pair.owners()
  const deadline = performance.now() + CHANGES.seconds * 1_000
  let changes = 0
  for (; changes < CHANGES.most && performance.now() < deadline; changes++)
    await deliver(2 + changes, 1 + (changes % 2), active)
  client.stdin?.end()
  await new Promise((resolve) => client.once('close', resolve))
  const { done, failed } = JSON.parse(text) as { readonly done: number; readonly failed: readonly unknown[] }
  expect(failed).toEqual([])
  printLine(`${changes} changes beside ${done} requests`)
  expect(changes).toBeGreaterThanOrEqual(CHANGES.least)
  expect(done).toBeGreaterThan(changes)
  await deliver(2 + changes, 2)
})

/** Does something to the machine that has the addresses; how long no page came because of it, in milliseconds. */
async function gapOf(disturb: (active: Role) => Promise<void>): Promise<number> {
  const [active = 'a'] = await pair.owners()
  const [other = 'b'] = roles.filter((role) => role !== active)
  const client = pair.start('out', PYTHON, '-c', GAP, SHARED)
  let text = ''
  client.stdout?.on('data', (bytes: Buffer) => (text += bytes.toString()))
  await until(
    'the first page',
    () => text,
    (said) => said.includes('begun'),
  )
  await disturb(active)
  await until('the other owner', pair.owners, (found) => found.length === 1 && found[0] === other)
  await until('a page', page, isPage)
  client.stdin?.end()
  await new Promise((resolve) => client.once('close', resolve))
  const milliseconds = Number(text.trim().split('\n').at(-1))
  printLine(`no page for ${milliseconds} ms`)
  return milliseconds
}

test('the other machine takes over from one whose proxy hangs', async () => {
  const stopped = async (active: Role) => {
    const pids = (await runProgram('ip', ['netns', 'pids', pair.spaceOf(active)])).match(/\d+/g) ?? []
    for (const pid of pids)
      if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() === 'haproxy') process.kill(Number(pid), 'SIGSTOP')
    disturbed.push(...pids.map(Number))
  }
  const disturbed: number[] = []
  expect(await gapOf(stopped)).toBeLessThan(GAP_MILLISECONDS_MAXIMUM)
  for (const pid of disturbed) process.kill(pid, 'SIGCONT')
})

test('the other machine takes over from one that dies', async () => {
  const killed = async (active: Role) => {
    const pids = (await runProgram('ip', ['netns', 'pids', pair.spaceOf(active)])).match(/\d+/g) ?? []
    expect(pids.length).toBeGreaterThan(1)
    for (const pid of pids) process.kill(Number(pid), 'SIGKILL')
    // A machine that is off has no address.
    await pair.ip(active, 'link', 'set', 'own0', 'down')
    await pair.ip(active, 'address', 'flush', 'dev', 'own0')
  }
  expect(await gapOf(killed)).toBeLessThan(GAP_MILLISECONDS_MAXIMUM)
})
