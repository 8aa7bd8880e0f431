/** What a combined edge gets, run by the script of its image with the real programs, in network namespaces: a server
 *  without IPv4, the machine, and the IPv4 Internet. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { edgeMachineParts } from '../../../../domain/edge/document.ts'
import { EDGE_ROLES } from '../../../../domain/edge/rules.ts'
import { type MachineInNamespace, openMachineIn } from '../../../agents/node/images/machine-script.ts'
import { until } from '../../../eventually.ts'
import { PYTHON } from '../../../python.ts'

const run = promisify(execFile)
const WEB = `
import http.server, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.client_address[0].encode())
    def log_message(self, *words): pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
`
const NAMES = `
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(('198.18.0.9', 53))
while True:
    query, asker = server.recvfrom(512)
    end = query.index(0, 12) + 5
    is_ipv4 = query[end - 4:end - 2] == bytes([0, 1])
    answer = bytes.fromhex('c00c0001000100000e100004c6120009') if is_ipv4 else b''
    head = bytes.fromhex('81800001000' + ('1' if is_ipv4 else '0') + '00000000')
    server.sendto(query[:2] + head + query[12:end] + answer, asker)
`
const ASK = `
import socket, sys
asker = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); asker.settimeout(5)
asker.sendto(bytes.fromhex('000101000001000000000000' + '03776562036465760000' + '1c0001'), (sys.argv[1], 53))
print(socket.inet_ntop(socket.AF_INET6, asker.recv(512)[-16:]))
`
const [INSIDE, OUTSIDE] = ['fd12:3456:789a:1::', '198.18.0.']
let folder = ''
let machine: MachineInNamespace | undefined
const children: ChildProcess[] = []
const spaceOf = (place: string) => `edge-${folder.slice(-6)}-${place}`
const at = async (place: string, ...command: readonly string[]) =>
  (await run('ip', ['netns', 'exec', spaceOf(place), ...command])).stdout.trim()
/** Programs take their time to begin. */
const trying = (ask: () => Promise<string>) => until('an answer', ask, (answer) => answer !== '')
const get = (place: string, url: string) => trying(() => at(place, 'curl', '-sS', '-m', '5', url))
const serve = (place: string, address: string, port: number) =>
  children.push(spawn('ip', ['netns', 'exec', spaceOf(place), PYTHON, '-c', WEB, address, String(port)]))

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-edge-'))
  for (const place of ['server', 'edge', 'world']) {
    await run('ip', ['netns', 'add', spaceOf(place)])
    await at(place, 'ip', 'link', 'set', 'lo', 'up')
  }
  for (const [place, name, peer] of [
    ['server', 'net0', 'in0'],
    ['world', 'net0', 'out0'],
  ] as const) {
    await run('ip', [
      'link',
      'add',
      peer,
      'netns',
      spaceOf('edge'),
      'type',
      'veth',
      'peer',
      name,
      'netns',
      spaceOf(place),
    ])
    await at(place, 'ip', 'link', 'set', name, 'up')
    await at('edge', 'ip', 'link', 'set', peer, 'up')
  }
  const addresses = [
    ['server', 'net0', '10.1.0.10/24', `${INSIDE}10/64`],
    ['edge', 'in0', '10.1.0.5/24', `${INSIDE}5/64`],
    ['edge', 'out0', `${OUTSIDE}5/24`],
    ['world', 'net0', `${OUTSIDE}9/24`],
  ] as const
  for (const [place, device, ...own] of addresses)
    for (const address of own)
      await at(place, 'ip', 'addr', 'add', address, 'dev', device, ...(address.includes(':') ? ['nodad'] : []))
  await at('server', 'ip', 'route', 'add', 'default', 'via', '10.1.0.5')
  await at('server', 'ip', 'route', 'add', '64:ff9b::/96', 'via', `${INSIDE}5`)
  serve('world', `${OUTSIDE}9`, 8080)
  serve('server', '10.1.0.10', 8080)
  children.push(spawn('ip', ['netns', 'exec', spaceOf('world'), PYTHON, '-c', NAMES]))
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'key')])
  machine = await openMachineIn(spaceOf('edge'))
  const answer = await machine.apply({
    machine: 'm1',
    generation: 1,
    fingerprint: 'f1',
    ...documentOf((await readFile(join(folder, 'key.pub'), 'utf8')).trim()),
  })
  expect(answer, answer.detail).toMatchObject({ generation: 1 })
})
afterAll(async () => {
  await machine?.close()
  for (const child of children) child.kill('SIGKILL')
  for (const place of ['server', 'edge', 'world']) await run('ip', ['netns', 'del', spaceOf(place)]).catch(() => {})
  await rm(folder, { recursive: true, force: true })
})

function documentOf(key: string) {
  const { haproxy, ...parts } = edgeMachineParts({
    edgeId: 'e1',
    roles: EDGE_ROLES,
    ipv4Cidr: '10.1.0.0/24',
    ipv6Prefix: `${INSIDE}/64`,
    ipv4: '10.1.0.5',
    ipv6: `${INSIDE}5`,
    macAddress: '52:54:00:00:00:05',
    resolvers: [`${OUTSIDE}9`],
    sshKeys: [key],
    members: [{ name: 'web', frontendPort: 80, address: '10.1.0.10', port: 8080, weight: 1, enabled: true }],
  })
  return {
    ...parts,
    ...(haproxy === undefined
      ? {}
      : { haproxy: { config: haproxy.config.replace(/maxconn \d+/g, 'maxconn 100'), certificates: {} } }),
  }
}

it('leads a server out by NAT64 and by NAT44, under its own address', async () => {
  expect(await get('server', 'http://[64:ff9b::c612:9]:8080/')).toBe(`${OUTSIDE}5`)
  expect(await get('server', `http://${OUTSIDE}9:8080/`)).toBe(`${OUTSIDE}5`)
})

it('spreads what comes from outside over members of the network', async () => {
  expect(await get('world', `http://${OUTSIDE}5/`)).toBe('10.1.0.5')
})

it('answers names that have IPv4 only with addresses that it translates', async () => {
  expect(await trying(() => at('server', PYTHON, '-c', ASK, `${INSIDE}5`))).toBe('64:ff9b::c612:9')
})

it('forwards who has a key to servers of the network, and lets nobody else in', async () => {
  const jump = (key: string) =>
    at(
      'world',
      'sh',
      '-c',
      `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | ssh -i ${key} -o BatchMode=yes -o IdentitiesOnly=yes ` +
        '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -W 10.1.0.10:8080 ' +
        `root@${OUTSIDE}5`,
    )
  expect(await trying(() => jump(join(folder, 'key')))).toMatch(/200 OK[^]*10\.1\.0\.5$/)
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'other')])
  await expect(jump(join(folder, 'other'))).rejects.toThrow(/Permission denied/)
})

it('lets nobody outside into the network, nor through to names', async () => {
  await at('world', 'ip', 'route', 'add', '10.1.0.0/24', 'via', `${OUTSIDE}5`)
  await expect(at('world', 'curl', '-sS', '-m', '2', 'http://10.1.0.10:8080/')).rejects.toThrow()
  await expect(at('world', 'curl', '-sS', '-m', '2', `telnet://${OUTSIDE}5:53`)).rejects.toThrow()
})
