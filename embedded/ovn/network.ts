/** What the parts of an embedded cloud are told of its network: where it is, and which addresses are whose. What is
 *  decided at the first start stays so. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { PlannedNode, ZoneNetwork } from '../catalog.ts'
import type { DataFolder } from '../data-folder.ts'
import { keepPort, probePort } from '../ports.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import {
  nodeAddresses,
  NODES_DOOR,
  numberZones,
  OUTSIDE,
  PHYSICAL_NETWORK,
  ROUTE,
  SERVERS,
  TRANSFER,
  wireName,
  zoneAddresses,
} from './address-plan.ts'
import { northboundOf, southboundOf } from './central.ts'
import { namespaceLink } from './host.ts'
import { type NodesDoor, nodesDoorText } from './nodes-door.ts'
import type { Programs } from './programs.ts'

export interface CloudNetwork {
  /** Of the process that is the network. */
  readonly settings: Readonly<Record<string, string>>
  /** What is added to the machine while it runs, for people; undefined when nothing is. */
  readonly additions: string | undefined
  /** Where nodes of clusters reach their control planes; undefined when they do not. */
  readonly nodesDoor: NodesDoor | undefined
  /** Where the controllers find the databases. */
  readonly northbound: string
  readonly southbound: string
  /** What people and the API server are told of the loopback, by what the process that is the network said. */
  readonly reachable: (ready: Readonly<Record<string, unknown>>) => Reachable
  /** What the agent of a node is told. */
  agent(node: string): Readonly<Record<string, string>>
  /** What the catalog says of a zone, and the pools of its addresses. */
  readonly zone: (name: string) => ZoneNetwork
}

const LOOPBACK = '127.0.0.1'

/** What is decided at the first start with the network; there from then on. */
export const planFile = (folder: DataFolder): string => join(folder.network, 'plan.json')

interface Kept {
  readonly doorPort: number
  readonly zones: Readonly<Record<string, number>>
}

export interface NetworkOptions {
  readonly folder: DataFolder
  readonly nodes: readonly PlannedNode[]
  readonly hasPublicRoute: boolean
  readonly loopbackPorts: readonly number[]
  readonly programs: Programs
  /** Of the host of control planes, where nodes of clusters come in; undefined without one. */
  readonly nodesSocket: string | undefined
}

export async function openNetwork(options: NetworkOptions): Promise<CloudNetwork> {
  const { folder, hasPublicRoute, programs, nodesSocket: socket } = options
  const nodesDoor = socket === undefined ? undefined : { ...NODES_DOOR, socket }
  const { nodes } = options
  const { doorPort, zones: numbers } = await keep(folder, nodes)
  const numberOf = new Map(nodes.map(({ name }, index) => [name, index]))
  const listed = (entries: readonly (readonly [string, number])[]) =>
    entries.map(([name, number]) => `${name}=${number}`).join(',')
  return {
    settings: {
      PATH: programs.path,
      SVCCLOUD_SHARED_FOLDERS: programs.shared.join(':'),
      SVCCLOUD_DATA: folder.network,
      SVCCLOUD_GUESTS: folder.nodes,
      SVCCLOUD_NODES: listed([...numberOf]),
      SVCCLOUD_ZONES: listed(Object.entries(numbers)),
      SVCCLOUD_DOOR_PORT: String(doorPort),
      SVCCLOUD_LOOPBACK_PORTS: options.loopbackPorts.join(','),
      SVCCLOUD_PUBLIC_ROUTE: String(hasPublicRoute),
      ...(nodesDoor === undefined ? {} : { SVCCLOUD_NODES_DOOR: nodesDoorText(nodesDoor) }),
    },
    nodesDoor,
    reachable: (ready) => reachableBy(ready, doorPort),
    additions: hasPublicRoute ? additionsOf(doorPort) : undefined,
    northbound: northboundOf(folder.network),
    southbound: southboundOf(folder.network),
    agent(node) {
      const place = join(folder.network, node)
      return {
        PATH: programs.path,
        OVS_RUNDIR: place,
        SVCCLOUD_GUEST_NETWORK: 'ovn',
        SVCCLOUD_GUEST_NAMESPACE: namespaceLink(place),
        SVCCLOUD_GUEST_NAMESPACE_HOST: nodeAddresses(numberOf.get(node) ?? 0).host,
      }
    },
    zone(name) {
      const { router, pools } = zoneAddresses(numbers[name] ?? 0)
      return {
        publicNetwork: {
          physicalNetwork: PHYSICAL_NETWORK,
          addresses: [`${router.ipv4}/24`, `${router.ipv6}/64`],
          gateways: [TRANSFER.ipv4, TRANSFER.ipv6],
          dnsServers: [OUTSIDE.resolver],
          proxy: `socks5://${LOOPBACK}:${doorPort}`,
        },
        pools: pools.map(({ name: use, ...spec }) => ({ name: `${name}-${use}`, spec: { zone: name, ...spec } })),
      }
    },
  }
}

export interface Reachable {
  /** For people. */
  readonly text: string
  /** Of the API server. */
  readonly settings: Readonly<Record<string, string>>
}

const LoopbackTwins = z.object({ loopback: z.string(), loopback_ports: z.record(z.string(), z.int()) })
const SSH_PORT = '22'

function reachableBy(ready: Readonly<Record<string, unknown>>, doorPort: number): Reachable {
  const proxy = `the SOCKS5 proxy ${LOOPBACK}:${doorPort} (all ports)`
  const { data: twins } = LoopbackTwins.safeParse(ready)
  if (twins === undefined) return { text: proxy, settings: {} }
  const { loopback, loopback_ports: ports } = twins
  const prefix = SERVERS.ipv4.split('.').slice(0, 2).join('.')
  const list = Object.entries(ports).map(([port, here]) => (port === String(here) ? port : `${here} for ${port}`))
  const sshPort = ports[SSH_PORT]
  return {
    text: `${prefix}.a.b is ${loopback}.a.b (ports ${list.join(', ')}), and ${proxy}`,
    settings: sshPort === undefined ? {} : { SVCCLOUD_LOOPBACK_TWINS: `${prefix}=${loopback}:${sshPort}` },
  }
}

const additionsOf = (doorPort: number): string =>
  `Added to this machine, until svccloud stops (--public-route): the interface ${wireName(doorPort)} ` +
  `(${ROUTE.ipv4.machine}/${ROUTE.ipv4.prefix}, and ${ROUTE.ipv6.machine}/${ROUTE.ipv6.prefix} where it has IPv6) ` +
  `and the routes ${SERVERS.ipv4} via ${ROUTE.ipv4.cloud} and ${SERVERS.ipv6} via ${ROUTE.ipv6.cloud}.`

/** Zones name the port of the door for good. */
async function keep(folder: DataFolder, nodes: readonly PlannedNode[]): Promise<Kept> {
  await makeFolder(folder.network, 0o700)
  const file = planFile(folder)
  const kept = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as Kept, // written below only
    () => undefined,
  )
  const plan: Kept = {
    doorPort: await (kept === undefined ? probePort(LOOPBACK, 0) : keepPort(kept.doorPort, 'which zones name')),
    zones: numberZones([...new Set(nodes.map(({ zone }) => zone))], kept?.zones ?? {}),
  }
  await writeDurably(file, JSON.stringify(plan))
  return plan
}
