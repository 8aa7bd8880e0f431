/** A load balancer of two machines in network namespaces, with the real HAProxy and keepalived, on a bridge with what
 *  serves and asks. For tests and benchmarks. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runProgram } from '../../../../agents/node/run-program.ts'
import {
  loadBalancerDemands,
  loadBalancerDocument,
  type OpenedCertificate,
} from '../../../../controllers/nouns/load-balancer/machines.ts'
import type { LoadBalancerObject, Observed } from '../../../../controllers/nouns/load-balancer/observed.ts'
import { type Machine, machineName } from '../../../../controllers/nouns/managed-machine/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { LoadBalancer } from '../../../../resources/load-balancer/index.ts'
import { type MachineAnswer, MachineDocument } from '../../../../resources/managed-machine/index.ts'
import { type MachineInNamespace, openMachineIn } from '../../../agents/node/images/machine-script.ts'
import { PYTHON } from '../../../python.ts'

const CIDR_BITS = 24
export const SHARED = '10.9.0.9'
const MACHINES = { a: '10.9.0.2', b: '10.9.0.3' } as const
export type Role = keyof typeof MACHINES
export const roles = ['a', 'b'] as const
/** Of what serves: pages at one port, the first line of the connection at the other. */
export const BACKENDS = ['10.9.0.20', '10.9.0.21']
export const PAGES_PORT = 8080
export const PROXIED = 8081
/** Where it is served and asked. */
const OUTSIDE = ['10.9.0.30']

const CLAIM = {
  zone: 'z',
  name: 'web',
  networkId: 'n',
  ipv4Cidr: '10.9.0.0/24',
  ipv6Prefix: 'fd00:0:0:9::/64',
  shared: { ipv4Address: SHARED, ipv6Address: 'fd00:0:0:9::9' },
  publicIpv4: undefined,
  publicIpv6: undefined,
} satisfies Observed['claim']

/** Answers each request with its address and what it learned of the client's protocol. */
const PAGES = `defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
${BACKENDS.map(
  (address) => `frontend f${address}
  bind ${address}:${PAGES_PORT}
  http-request return status 200 content-type text/plain lf-string "${address} %[req.hdr(X-Forwarded-Proto)] page"`,
).join('\n')}
`
/** Answers each connection with its first line. */
const LINES = `
import socketserver, sys, threading
class Line(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().strip()
        if b"TCP" in line: self.wfile.write(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + line)
for address in sys.argv[1:]:
    threading.Thread(target=socketserver.ThreadingTCPServer((address, ${PROXIED}), Line).serve_forever).start()
print("up", flush=True)
`

export type Place = Role | 'out' | 'wire'

export interface BalancerPair {
  /** The name of the namespace. */
  spaceOf(place: Place): string
  /** `ip` about a place. */
  ip(place: Place, ...input: readonly string[]): Promise<string>
  /** Runs a program in a place; what it writes. Rejects when it fails. */
  run(place: Place, ...command: readonly string[]): Promise<string>
  start(place: Place, ...command: readonly string[]): ChildProcess
  /** Gives machines what the controller would deliver, and answers what they say. */
  deliver(
    configuration: { readonly generation: number; readonly frontends: object; readonly backends: object },
    certificates?: readonly OpenedCertificate[],
    to?: readonly Role[],
  ): Promise<readonly (MachineAnswer | undefined)[]>
  /** Machines that have the address. */
  owners(): Promise<readonly Role[]>
  close(): Promise<void>
}

export async function openBalancerPair(): Promise<BalancerPair> {
  const id = newUuid(systemRandom).slice(0, 6)
  const spaceOf = (place: Place): string => `lb-${id}-${place}`
  const ip = (place: Place, ...input: readonly string[]) => runProgram('ip', ['-n', spaceOf(place), ...input])
  const start = (place: Place, ...command: readonly string[]) =>
    spawn('ip', ['netns', 'exec', spaceOf(place), ...command])
  const machines = new Map<Role, MachineInNamespace>()
  const known: Machine[] = []
  const places = ['wire', 'a', 'b', 'out'] as const
  for (const place of places) {
    await runProgram('ip', ['netns', 'add', spaceOf(place)])
    await ip(place, 'link', 'set', 'lo', 'up')
  }
  await ip('wire', 'link', 'add', 'bridge', 'type', 'bridge')
  await ip('wire', 'link', 'set', 'bridge', 'up')
  for (const place of ['a', 'b', 'out'] as const) {
    await ip('wire', 'link', 'add', `to-${place}`, 'type', 'veth', 'peer', 'name', 'own0', 'netns', spaceOf(place))
    await ip('wire', 'link', 'set', `to-${place}`, 'master', 'bridge', 'up')
    await ip(place, 'link', 'set', 'own0', 'up')
  }
  for (const address of [...BACKENDS, ...OUTSIDE])
    await ip('out', 'address', 'add', `${address}/${CIDR_BITS}`, 'dev', 'own0')
  for (const role of roles) {
    await ip(role, 'address', 'add', `${MACHINES[role]}/${CIDR_BITS}`, 'dev', 'own0')
    const machine = await openMachineIn(spaceOf(role))
    machines.set(role, machine)
    // Nobody is outside.
    await ip(role, 'link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'outside0')
    const [macAddress = '', publicMacAddress = ''] = await Promise.all(
      ['own0', 'out0'].map(async (device) => (await machine.run('cat', `/sys/class/net/${device}/address`)).trim()),
    )
    known.push(knownMachine(role, { macAddress, ipv4Address: MACHINES[role], publicMacAddress }))
  }
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-pair-'))
  await writeFile(join(folder, 'pages.cfg'), PAGES)
  const pages = start('out', 'haproxy', '-q', '-f', join(folder, 'pages.cfg'))
  const lines = start('out', PYTHON, '-c', LINES, ...BACKENDS)
  await new Promise((resolve) => lines.stdout?.once('data', resolve))
  return {
    spaceOf,
    ip,
    run: (place, ...command) => runProgram('ip', ['netns', 'exec', spaceOf(place), ...command]),
    start,
    deliver: ({ generation, ...configuration }, certificates = [], to = roles) =>
      Promise.all(
        to.map((role) => {
          const surroundings = { claim: CLAIM, machines: known, role }
          return machines.get(role)?.apply(documentFor(surroundings, { generation, ...configuration, certificates }))
        }),
      ),
    async owners() {
      const states = await Promise.all(roles.map((role) => machines.get(role)?.run('ip', 'address', 'show', 'own0')))
      return roles.filter((_role, at) => states[at]?.includes(`${SHARED}/`))
    },
    async close() {
      for (const machine of machines.values()) await machine.close()
      for (const child of [pages, lines]) child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
      for (const place of places) await runProgram('ip', ['netns', 'delete', spaceOf(place)])
    },
  }
}

/** A machine as its controller would know it. */
export const knownMachine = (
  role: Role,
  {
    publicMacAddress,
    ...at
  }: Pick<Machine['interfaces'][number], 'macAddress' | 'ipv4Address'> & Pick<Machine, 'publicMacAddress'>,
): Machine =>
  ({
    role,
    serverId: machineName({ uid: 'u' }, role),
    interfaces: [{ networkId: 'n', ...at }],
    publicMacAddress,
  }) as unknown as Machine // what else a machine has is not looked at

const balancerOf = ({ generation, ...configuration }: { readonly generation: number }): LoadBalancerObject => {
  const spec = LoadBalancer.spec.parse({
    zone: 'z',
    name: 'web',
    networkId: 'n',
    plan: 'p',
    ...configuration,
    numbered: { generation, digest: '' },
  })
  return { metadata: { name: 'lb', namespace: 'acct-a', uid: 'u' }, spec } as LoadBalancerObject
}

/** What its controller asks of the machine of the role. */
export const demandFor = (
  { claim, machines, role }: Parameters<typeof loadBalancerDocument>[2],
  configured: { readonly generation: number; readonly frontends: object; readonly backends: object },
) => loadBalancerDemands(balancerOf(configured), 'a', claim, machines).find((demand) => demand.role === role)

/** What its controller delivers to the machine of the role. */
export function documentFor(
  surroundings: Parameters<typeof loadBalancerDocument>[2],
  {
    certificates,
    ...configured
  }: Parameters<typeof demandFor>[1] & { readonly certificates: readonly OpenedCertificate[] },
): MachineDocument {
  const { role } = surroundings
  const parts = loadBalancerDocument(balancerOf(configured), 'a', surroundings, certificates)
  const { fingerprint } = demandFor(surroundings, configured)?.configuration ?? {}
  return MachineDocument.parse({ ...parts, machine: role, generation: configured.generation, fingerprint })
}
