/** Settings of the network for the parts of an embedded cloud: where it is, and who has which addresses. Decisions of
 *  the first start are permanent. */
import { readFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import type { NodeAgentSettings } from '../../agents/node/settings.ts'
import type { ApiServerSettings } from '../../apiserver/settings.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { PlannedNode, ZoneNetwork } from '../catalog.ts'
import type { DataFolder } from '../kit/data-folder.ts'
import { keepPort, probePort } from '../kit/ports.ts'
import type { NetworkSettings, NodesListener } from '../kit/process-settings.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import {
  nodeAddresses,
  NODES_LISTENER,
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
import type { Programs } from './programs.ts'

export interface CloudNetwork {
  /** Settings of the network's process. */
  readonly settings: z.input<typeof NetworkSettings>
  /** PATH of that process and the agents. */
  readonly path: string
  /** Changes to the machine while the cloud runs, for people; undefined when there are none. */
  readonly additions: string | undefined
  /** How nodes of clusters reach their control planes; undefined when they cannot. */
  readonly nodesListener: NodesListener | undefined
  /** Address of the northbound database for the controllers. */
  readonly northbound: string
  readonly southbound: string
  /** Message and settings for the loopback addresses, from the network process's ready message. */
  readonly reachable: (ready: Readonly<Record<string, unknown>>) => Reachable
  /** Settings of the agent of a node. */
  agent(node: string): AgentNetwork
  /** The catalog's entry for a zone, and the pools of its addresses. */
  readonly zone: (name: string) => ZoneNetwork
}

export interface AgentNetwork {
  readonly environment: Readonly<Record<string, string>>
  readonly settings: Pick<z.input<typeof NodeAgentSettings>, 'guestNetwork' | 'guestNamespace' | 'guestNamespaceHost'>
}

const LOOPBACK = '127.0.0.1'

/** File with the decisions of the first start with the network. */
export const planFile = (folder: DataFolder): string => join(folder.network, 'plan.json')

interface StoredPlan {
  /** Port of the proxy. */
  readonly doorPort: number
  readonly zones: Readonly<Record<string, number>>
}

export interface NetworkOptions {
  readonly folder: DataFolder
  readonly nodes: readonly PlannedNode[]
  readonly hasPublicRoute: boolean
  readonly loopbackPorts: readonly number[]
  readonly programs: Programs
  /** Socket of the host of control planes for connections of nodes; undefined without one. */
  readonly nodesSocket: string | undefined
  /** Where object storage listens on this machine; undefined without it. */
  readonly objectStorage: ServedPort | undefined
}

/** A port of this machine, and the address on which it is served. */
export interface ServedPort {
  readonly host: string
  readonly port: number
}

export async function openNetwork(options: NetworkOptions): Promise<CloudNetwork> {
  const { folder, hasPublicRoute, programs, nodesSocket: socket } = options
  const nodesListener = socket === undefined ? undefined : { ...NODES_LISTENER, socket }
  const { nodes } = options
  const { proxyPort, zones: numbers } = await keep(folder, nodes)
  const numberOf = new Map(nodes.map(({ name }, index) => [name, index]))
  return {
    path: programs.path,
    settings: {
      sharedFolders: [...programs.shared],
      data: folder.network,
      guests: folder.nodes,
      nodes: Object.fromEntries(numberOf),
      zones: numbers,
      proxyPort,
      loopbackPorts: [...options.loopbackPorts],
      publicRoute: hasPublicRoute,
      nodesListener,
      objectStorage: reachedByServers(options.objectStorage),
    },
    nodesListener,
    reachable: (ready) => reachableBy(ready, proxyPort),
    additions: hasPublicRoute ? additionsOf(proxyPort) : undefined,
    northbound: northboundOf(folder.network),
    southbound: southboundOf(folder.network),
    agent(node) {
      const place = join(folder.network, node)
      return {
        environment: { PATH: programs.path, OVS_RUNDIR: place },
        settings: {
          guestNetwork: 'ovn',
          guestNamespace: namespaceLink(place),
          guestNamespaceHost: nodeAddresses(numberOf.get(node) ?? 0).host,
        },
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
          proxy: `socks5://${LOOPBACK}:${proxyPort}`,
        },
        pools: pools.map(({ name: use, ...spec }) => ({ name: `${name}-${use}`, spec: { zone: name, ...spec } })),
      }
    },
  }
}

/** The port as servers reach it: by IPv4, and only where it is served to others than this machine. Otherwise somebody
 *  else may have that port of the machine's other addresses. */
function reachedByServers(served: ServedPort | undefined): ServedPort | undefined {
  if (served === undefined) return undefined
  const host = served.host === '::' ? '0.0.0.0' : served.host
  return isIPv4(host) && !host.startsWith('127.') ? { host, port: served.port } : undefined
}

export interface Reachable {
  /** For people. */
  readonly text: string
  /** Settings of the API server. */
  readonly settings: Pick<z.input<typeof ApiServerSettings>, 'loopbackTwins'>
}

const LoopbackTwins = z.object({ loopback: z.string(), loopback_ports: z.record(z.string(), z.int()) })
const SSH_PORT = '22'

function reachableBy(ready: Readonly<Record<string, unknown>>, proxyPort: number): Reachable {
  const proxy = `the SOCKS5 proxy ${LOOPBACK}:${proxyPort} (all ports)`
  const { data: twins } = LoopbackTwins.safeParse(ready)
  if (twins === undefined) return { text: proxy, settings: {} }
  const { loopback, loopback_ports: ports } = twins
  const prefix = SERVERS.ipv4.split('.').slice(0, 2).join('.')
  const list = Object.entries(ports).map(([port, here]) => (port === String(here) ? port : `${here} for ${port}`))
  const sshPort = ports[SSH_PORT]
  return {
    text: `${prefix}.a.b is ${loopback}.a.b (ports ${list.join(', ')}), and ${proxy}`,
    settings: sshPort === undefined ? {} : { loopbackTwins: `${prefix}=${loopback}:${sshPort}` },
  }
}

const additionsOf = (proxyPort: number): string =>
  `Added to this machine, until svccloud stops (--public-route): the interface ${wireName(proxyPort)} ` +
  `(${ROUTE.ipv4.machine}/${ROUTE.ipv4.prefix}, and ${ROUTE.ipv6.machine}/${ROUTE.ipv6.prefix} where it has IPv6) ` +
  `and the routes ${SERVERS.ipv4} via ${ROUTE.ipv4.cloud} and ${SERVERS.ipv6} via ${ROUTE.ipv6.cloud}.`

/** Zones contain the proxy's port permanently. */
async function keep(folder: DataFolder, nodes: readonly PlannedNode[]) {
  await makeFolder(folder.network, 0o700)
  const file = planFile(folder)
  const previous = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as StoredPlan, // written below only
    () => undefined,
  )
  const plan: StoredPlan = {
    doorPort: await (previous === undefined ? probePort(LOOPBACK, 0) : keepPort(previous.doorPort, 'which zones name')),
    zones: numberZones([...new Set(nodes.map(({ zone }) => zone))], previous?.zones ?? {}),
  }
  await writeDurably(file, JSON.stringify(plan))
  return { proxyPort: plan.doorPort, zones: plan.zones }
}
