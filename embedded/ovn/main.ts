/** The process that is the network of an embedded cloud: Open Virtual Network with the userspace datapath, in separate
 *  network namespaces, one for each node and one between them. The machine's own network does not change, except with
 *  `publicRoute`. Everything that it starts is killed when it exits; only the namespaces of guests stay, as guests do,
 *  and the next start finds them. `process-settings.ts` has its settings.
 *  Sends its parent `{ready, loopback, loopback_ports}`: the loopback network that represents public addresses, and the
 *  loopback port for each port of servers. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { z } from 'zod'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { exitProcess, isRoot, nodeBinary, sendToParent, signalProcess } from '../../kit/sys/process.ts'
import { SETTINGS_VARIABLE } from '../../kit/sys/settings.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { CLOUD, nodeAddresses, OUTSIDE, ROUTE, SERVERS, TRANSFER, wireName, zoneAddresses } from './address-plan.ts'
import { type ForwarderSettings, NetworkSettings } from '../kit/process-settings.ts'
import { BRIDGE_LINES } from './bridges.ts'
import { type Daemon, type DaemonOptions, type DaemonParts, startDaemon, tied } from '../kit/daemon.ts'
import { type Central, startCentral } from './central.ts'
import { filterText, ownAddressLine } from './filter.ts'
import { startHost } from './host.ts'
import { lastLineOf } from './programs.ts'
import { ADDRESS_COLUMNS, openAddressTable } from './public-addresses.ts'
import { openSpace, processesBelow, type Space } from './space.ts'
import { type Destination, openTwins, type Twins } from './twins.ts'
import { listen } from '../../kit/sys/listen.ts'

const { settings, log, stop } = await startProcess('network', NetworkSettings)
/** Time for the kernel to remove the wire of a cloud that was killed. */
const WIRE_GONE_MILLISECONDS = 10_000
const RETRY_MILLISECONDS = 250
const LOOK_MILLISECONDS = 10_000
/** Routing table of the addresses of this machine, and the priority of its rule. */
const MACHINE_TABLE = 90
const ending = new AbortController()
let isStarted = false
stop.addEventListener('abort', () => {
  if (!isStarted) exitProcess(0) // everything that was started is killed with this process
  ending.abort()
})
const parts: DaemonParts = { clock, random, log, signal: ending.signal }
const folder = settings.data
const shared = settings.sharedFolders
const daemons: Daemon[] = []
const launch = (options: DaemonOptions): Daemon => {
  const daemon = startDaemon(options, parts)
  daemons.push(daemon)
  return daemon
}

/** Kills processes of an earlier run that was killed during its start. */
await mkdir(folder, { recursive: true, mode: 0o700 })
for (const pid of await processesBelow(folder)) signalProcess(pid, 'SIGKILL')

const middle = await openSpace({ folder, neighbours: settings.guests }, clock)
await middle.run(
  'ip link set lo up',
  'echo 1 > /proc/sys/net/ipv4/ip_forward',
  // The namespace inherits the setting of a machine that has IPv6 disabled.
  ...(existsSync('/proc/sys/net/ipv6')
    ? ['echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6', 'echo 1 > /proc/sys/net/ipv6/conf/all/forwarding']
    : []),
  ...BRIDGE_LINES,
  `ip address add ${TRANSFER.ipv4}/24 dev outside`,
  `ip address add ${TRANSFER.ipv6}/64 dev outside nodad`,
  ...machineRules(settings.objectStorage),
  // Unused addresses of the cloud are not forwarded to the outside.
  `ip route add prohibit ${CLOUD}`,
  ...Object.values(settings.zones).flatMap((number) => {
    const { router, routes } = zoneAddresses(number)
    return routes.map((route) => `ip route add ${route} via ${route.includes(':') ? router.ipv6 : router.ipv4}`)
  }),
  `nft -f - <<'END'
${filterText(settings.objectStorage?.port)}
END`,
)
if (settings.publicRoute)
  await addRoute(middle).catch((error: unknown) => {
    sendToParent({ refused: `--public-route cannot be had: ${lastLineOf(error)}` })
    exitProcess(1)
  })

const central: Central = await startCentral({ folder: join(folder, 'central'), shared, launch })
const spaces = await Promise.all(
  Object.entries(settings.nodes).map(([name, number]) =>
    startHost({
      name,
      addresses: nodeAddresses(number),
      number,
      folder: join(folder, name),
      guests: join(settings.guests, name),
      central,
      shared,
      middle,
      launch,
      clock,
    }),
  ),
)
launch({
  name: 'outside',
  folder,
  command: tied([
    'slirp4netns',
    '--configure',
    `--mtu=${OUTSIDE.mtu}`,
    '--disable-host-loopback',
    `--cidr=${OUTSIDE.cidr}`,
    ...(isRoot() ? [] : [`--userns-path=${middle.folder}/user`]),
    '--netns-type=path',
    `${middle.folder}/net`,
    'tap0',
  ]),
})
const hand = openForwarder(middle)
const proxy = openProxy(hand)
await proxy.isListening
const twins = await openTwins(settings.loopbackPorts, hand)
if (twins === undefined) log.warn('no network of the loopback is free: servers are reached by the proxy')
else followAddresses(twins, central.northbound)
for (const space of [middle, ...spaces])
  void space.ended.then(() => {
    if (ending.signal.aborted) return
    log.error('a network namespace has ended')
    exitProcess(1)
  })
isStarted = true
sendToParent({
  ready: true,
  ...(twins === undefined ? {} : { loopback: twins.loopback, loopback_ports: Object.fromEntries(twins.ports) }),
})

// Servers must not reach the machine's own addresses, which change with its network, except for object storage.
let known: readonly string[] = []
while (!stop.aborted) {
  const own = machineAddresses()
  for (const address of own.filter((each) => !known.includes(each)))
    await middle
      .run(`ip route replace prohibit ${address} table ${MACHINE_TABLE}`, ownAddressLine(address))
      .catch((error: unknown) => log.warn('servers may reach an address of this machine', { address, error }))
  known = own
  await clock.sleep(LOOK_MILLISECONDS, stop)
}
proxy.close()
twins?.close()
await Promise.all(daemons.map(({ ended }) => ended))
for (const space of [middle, ...spaces]) space.close()
exitProcess(0)

/** The table with the machine's addresses is for all packets, except for those to object storage. */
function machineRules(served: typeof settings.objectStorage): readonly string[] {
  const rule = (selector: string) => `ip rule add priority ${MACHINE_TABLE} ${selector} lookup ${MACHINE_TABLE}`
  if (served === undefined) return [rule('from all')]
  const address = served.host === '0.0.0.0' ? '' : `to ${served.host} `
  return [rule(`not from all ${address}ipproto tcp dport ${served.port}`)]
}

/** Creates a wire from the machine to the servers, which is deleted with the namespace, and routes through it. */
async function addRoute(space: Space): Promise<void> {
  const wire = wireName(settings.proxyPort)
  const ip = (...words: readonly string[]) => promisify(execFile)('ip', [...words])
  await ip('link', 'delete', wire).catch(() => undefined) // the kernel may not have removed it yet
  await ip('link', 'add', wire, 'type', 'veth', 'peer', 'name', 'machine', 'netns', String(space.pid))
  await ip('link', 'set', wire, 'up')
  await space.run('ip link set machine up')
  for (const family of ['ipv4', 'ipv6'] as const) {
    if (family === 'ipv6' && !hasIpv6()) continue
    const { machine, cloud, prefix } = ROUTE[family]
    const flags = family === 'ipv6' ? ['nodad'] : []
    await ip('address', 'add', `${machine}/${prefix}`, 'dev', wire, ...flags)
    await space.run(`ip address add ${cloud}/${prefix} dev machine ${flags.join(' ')}`)
    await patiently(() => ip('route', 'add', SERVERS[family], 'via', cloud, 'dev', wire))
  }
}

/** Retries while the route exists, then throws the last error: another running cloud of this machine has the route. */
async function patiently(change: () => Promise<unknown>): Promise<void> {
  const deadline = clock.monotonicMilliseconds() + WIRE_GONE_MILLISECONDS
  for (;;)
    try {
      return void (await change())
    } catch (error) {
      if (!lastLineOf(error).includes('File exists') || clock.monotonicMilliseconds() > deadline) throw error
      await clock.sleep(RETRY_MILLISECONDS)
    }
}

/** Starts the process in the namespace that connects to servers. Returns the function that passes it a connection;
 *  without a destination the process determines it itself. */
function openForwarder(space: Space): (socket: Socket, to?: Destination) => void {
  const forwarder: z.input<typeof ForwarderSettings> = {
    networks: [SERVERS.ipv4, SERVERS.ipv6],
    nodesListener: settings.nodesListener,
    logLevel: settings.logLevel,
  }
  const program = [nodeBinary(), join(import.meta.dirname, 'forwarder-main.ts')]
  const inner = launch({
    name: 'forwarder',
    folder,
    command: space.command(tied(program)),
    hasChannel: true,
    environment: { [SETTINGS_VARIABLE]: JSON.stringify(forwarder) },
  })
  return (socket, to) => {
    const child = inner.child()
    if (child?.connected === true) child.send(to ?? {}, socket, { keepOpen: false }, () => {})
    else socket.destroy()
  }
}

/** Listens on the machine for clients of the proxy. */
function openProxy(hand: (socket: Socket) => void): { readonly isListening: Promise<unknown>; close(): void } {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, hand)
  const isListening = listen(server, { host: '127.0.0.1', port: settings.proxyPort })
  return { isListening, close: () => void server.close() }
}

/** Updates the twins with the addresses that are in use. */
function followAddresses(twins: Twins, northbound: string): void {
  const tables = ADDRESS_COLUMNS.map(() => openAddressTable())
  const tell = () => twins.follow(new Set(tables.flatMap((table) => [...table.addresses()])))
  for (const [index, [table, column]] of ADDRESS_COLUMNS.entries())
    launch({
      name: `addresses of ${table}`,
      folder,
      command: tied(['ovsdb-client', 'monitor', '--format=json', northbound, 'OVN_Northbound', table, column]),
      onLine: (line) => {
        tables[index]?.take(line)
        tell()
      },
      whenStarted: async () => tables[index]?.clear(),
    })
}

/** Whether interfaces of the machine can have addresses of IPv6. */
function hasIpv6(): boolean {
  try {
    return readFileSync('/proc/sys/net/ipv6/conf/all/disable_ipv6', 'utf8').trim() === '0'
  } catch {
    return false
  }
}

function machineAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address, family }) => !internal && family === 'IPv4' && address !== ROUTE.ipv4.machine)
    .map(({ address }) => address)
}
