/** The rows of a server in the zone's network besides its public address: its interfaces and the firewall of its ports.
 *  They are derived from the spec and the claims, never from a host's report. */
import { createHash } from 'node:crypto'
import type { ClaimedInterface } from '../../../db/network-interface/index.ts'
import { NETWORK_FEATURES } from '../../../domain/network/guest-network.ts'
import { firewallOf, type FirewallProgress } from '../../../resources/server/index.ts'
import type { OperationDecision } from '../../kit/operation/decision.ts'
import type { InterfaceFacts } from '../../network/ovn/interface.ts'
import type { ServerAction, NetworkPorts } from './actions.ts'
import { uidOf } from './drafts.ts'
import { stayingInterfaces } from './networks.ts'
import { isDeleting, type NetworkRoute, type Observed, type ServerObject } from './observed.ts'

/** The input of a server's rules. */
interface Input {
  readonly server: ServerObject
  readonly observed: Observed
  readonly now: Date
}

/** The interval while no operation waits for it. */
const IDLE_LOOK_SECONDS = 15

/** Undefined for a server that has nothing to program, and never had. */
export function networkPortsOf({
  server,
  observed: { claims, hostFeatures = [], routes = [] },
}: Input): NetworkPorts | undefined {
  if (claims === undefined || isDeleting(server) || server.metadata.deletionTimestamp !== undefined) return undefined
  const { firewall, generation } = firewallOf(server)
  const staying = stayingInterfaces(server, claims)
  const isKnown = server.status?.networkPorts !== undefined || claims.interfaces?.some(({ isLeaving }) => isLeaving)
  if (!firewall.enabled && staying.length === 0 && isKnown !== true) return undefined
  const uid = uidOf(server)
  const { zone, node } = claims.placement
  const nodes = [node, ...(claims.target?.zone === zone ? [claims.target.node] : [])]
  return {
    zone,
    uid,
    nodes,
    interfaces: staying.map((each) => ({
      zone,
      id: each.id,
      networkId: each.networkUid,
      macAddress: each.macAddress,
      ipv4: each.ipv4Address,
      ipv6: each.ipv6Address,
      ...routedBy(each, routes),
      ...sharedIn(server, each),
      hostname: server.spec.hostname,
      nodes,
    })),
    firewall: { generation, ...firewall, ports: [uid, ...staying.map(({ id }) => id)] },
    isSimulated: !Object.values(NETWORK_FEATURES).some((feature) => hostFeatures.includes(feature)),
  }
}

/** Addresses in the network that it shares with other machines, one machine at a time. */
function sharedIn(
  { spec: { sharedAddresses = [] } }: ServerObject,
  { networkId }: ClaimedInterface,
): Pick<InterfaceFacts, 'shared'> {
  const shared = sharedAddresses.flatMap((each) => (each.networkId === networkId ? [each.address] : []))
  return shared.length === 0 ? {} : { shared: shared.toSorted() }
}

/** What its router sends to it besides traffic for its own addresses. */
function routedBy(
  { networkId, ipv4Address, ipv6Address }: ClaimedInterface,
  routes: readonly NetworkRoute[],
): Pick<InterfaceFacts, 'routed'> {
  const routed = routes
    .filter((route) => route.networkId === networkId && [ipv4Address, ipv6Address].includes(route.nextHop))
    .map(({ destination }) => destination)
  return routed.length === 0 ? {} : { routed: [...new Set(routed)].sort() }
}

export const fingerprintOf = (networkPorts: NetworkPorts): string =>
  createHash('sha256').update(JSON.stringify(networkPorts)).digest('base64url')

export interface Programming {
  readonly actions: readonly ServerAction[]
  readonly status: { readonly firewall?: FirewallProgress }
  /** Every host of the server has installed what the spec says. */
  readonly isInstalled: boolean
}

/** The actions that program the network for the server, and the progress. */
export function program(input: Input): Programming {
  const { server, observed, now } = input
  const networkPorts = networkPortsOf(input)
  const known = server.status?.networkPorts
  const fingerprint = networkPorts && fingerprintOf(networkPorts)
  const isInstalled = networkPorts === undefined || (known?.fingerprint === fingerprint && known?.isInstalled === true)
  return {
    actions:
      networkPorts === undefined || (isInstalled && observed.programmedAs === fingerprint)
        ? []
        : [{ do: 'effect', name: 'program', input: networkPorts }],
    // Nothing filters for a server that has no room yet.
    status: firewallStatus(server, { isInstalled: isInstalled && observed.claims !== undefined, now }),
    isInstalled,
  }
}

/** Whether the network has the server's desired rows, and no others of it. */
export function isProgrammed(input: Input): boolean {
  const networkPorts = networkPortsOf(input)
  return networkPorts === undefined || input.observed.programmedAs === fingerprintOf(networkPorts)
}

function firewallStatus(
  server: ServerObject,
  { isInstalled, now }: { readonly isInstalled: boolean; readonly now: Date },
): Programming['status'] {
  const known = server.status?.firewall
  const { generation, fingerprint } = firewallOf(server)
  if (known === undefined && generation === 0) return {}
  const { appliedGeneration = 0, appliedAt } = known ?? {}
  const isNewlyApplied = isInstalled && appliedGeneration !== generation
  return {
    firewall: {
      generation,
      fingerprint,
      appliedGeneration: isInstalled ? generation : appliedGeneration,
      ...(isNewlyApplied ? { appliedAt: now.toISOString() } : appliedAt === undefined ? {} : { appliedAt }),
    },
  }
}

const isAnyLeaving = ({ observed: { claims } }: Input): boolean =>
  claims?.interfaces?.some(({ isLeaving }) => isLeaving) === true

/** The decision, with another check while the hosts have not installed everything. */
export const untilInstalled = <Decision extends OperationDecision<ServerAction>>(
  input: Input,
  decision: Decision,
): Decision =>
  (program(input).isInstalled && !isAnyLeaving(input)) || decision.waitSeconds !== undefined
    ? decision
    : {
        ...decision,
        waitSeconds: IDLE_LOOK_SECONDS,
        waitFor: decision.waitFor ?? 'the hosts to follow the network',
      }
