/** The desired machines of an edge, and the configuration of each. Pure. */
import { type EdgeMachineInput, edgeMachineParts } from '../../../domain/edge/document.ts'
import { type EdgeMachineRule, type EdgeRole, edgeMachinesOf, hasPair } from '../../../domain/edge/rules.ts'
import { NAT64_PREFIX } from '../../../domain/network/rules.ts'
import { edgeConfiguration, type EdgeStatus } from '../../../resources/edge/index.ts'
import { configurationFingerprint, type Machine, type MachineDemand } from '../managed-machine/index.ts'
import type { EdgeObject, EdgeGrant, Observed } from './observed.ts'

const HOSTNAME_LENGTH_MAXIMUM = 63

/** The desired machines of the edge. */
export const rulesOf = ({ spec: { roles, placement } }: Pick<EdgeObject, 'spec'>): readonly EdgeMachineRule[] =>
  edgeMachinesOf(roles, placement)

/** What the account must be granted for its spec. */
export const requiredGrant = (edge: Pick<EdgeObject, 'spec'>): EdgeGrant => ({
  plan: edge.spec.plan,
  machines: rulesOf(edge).map(({ name }) => name),
  hasPair: hasPair(edge.spec.roles, edge.spec.placement),
})

/** Whether its spec requires another plan, a machine or a load balancer that is not granted yet. */
export function grows(edge: EdgeObject): boolean {
  const { granted } = edge.status ?? {}
  const wanted = requiredGrant(edge)
  return (
    granted === undefined ||
    granted.plan !== wanted.plan ||
    (wanted.hasPair && !granted.hasPair) ||
    wanted.machines.some((name) => !granted.machines.includes(name))
  )
}

/** The part of the grant that its spec still requires. */
export function grantedOf(edge: EdgeObject): EdgeGrant {
  const wanted = requiredGrant(edge)
  const granted = edge.status?.granted ?? wanted
  return {
    plan: granted.plan,
    machines: wanted.machines.filter((name) => granted.machines.includes(name)),
    hasPair: wanted.hasPair && granted.hasPair,
  }
}

const grantedRulesOf = (edge: EdgeObject): readonly EdgeMachineRule[] =>
  rulesOf(edge).filter(({ name }) => grantedOf(edge).machines.includes(name))

/** The newest machine of the role that is not being deleted. */
export const edgeMachine = (machines: readonly Machine[], name: string): Machine | undefined =>
  machines.find(({ role, isDeleting }) => role === name && !isDeleting)

/** The input of the machine's configuration; undefined while its addresses are not known. */
export function inputOf(
  edge: EdgeObject,
  { network, resolvers, machines }: Pick<Observed, 'network' | 'resolvers' | 'machines'>,
  rule: EdgeMachineRule,
): EdgeMachineInput | undefined {
  const { networkId, sshKeys, members } = edge.spec
  const own = edgeMachine(machines, rule.name)?.interfaces.find((each) => each.networkId === networkId)
  if (network === undefined || own === undefined) return undefined
  return {
    edgeId: edge.metadata.name,
    roles: rule.roles,
    ipv4Cidr: network.ipv4Cidr,
    ipv6Prefix: network.ipv6Prefix,
    ipv4: own.ipv4Address,
    ipv6: own.ipv6Address,
    macAddress: own.macAddress,
    resolvers,
    sshKeys,
    members,
  }
}

/** A demand for each machine that was granted. */
export function edgeDemands(edge: EdgeObject, observed: Observed): readonly MachineDemand[] {
  const { networkId } = edge.spec
  const { plan } = grantedOf(edge)
  const { generation } = edgeConfiguration(edge)
  return grantedRulesOf(edge).map((rule) => {
    const input = inputOf(edge, observed, rule)
    return {
      role: rule.name,
      hostname: `${rule.name}-${edge.metadata.name}`.slice(0, HOSTNAME_LENGTH_MAXIMUM).replace(/[^a-z0-9]+$/, ''),
      plan,
      publicIpv4: true,
      networkIds: [networkId],
      // It forwards replies from the whole Internet, with their source addresses.
      sharedAddresses: rule.roles.includes('nat_gateway')
        ? ['0.0.0.0/0', NAT64_PREFIX].map((address) => ({ address, networkId }))
        : [],
      ...(input === undefined
        ? {}
        : { configuration: { generation, fingerprint: configurationFingerprint([input, edgeMachineParts(input)]) } }),
    }
  })
}

/** In the form of the status. */
export const viewsOf = (edge: EdgeObject, machines: readonly Machine[]): NonNullable<EdgeStatus['machines']> =>
  rulesOf(edge).flatMap(({ name, roles }) => {
    const machine = edgeMachine(machines, name)
    if (machine === undefined) return []
    const own = machine.interfaces.find(({ networkId }) => networkId === edge.spec.networkId)
    const isCurrent = machine.running?.generation === edgeConfiguration(edge).generation
    return [
      {
        id: machine.serverId,
        name,
        roles: [...roles],
        state: machine.state,
        isHealthy: machine.isHealthy && isCurrent,
        healthDetail: machine.isHealthy && !isCurrent ? 'It has not got the newest configuration yet.' : machine.detail,
        publicIpv4: machine.publicIpv4,
        publicIpv6: machine.publicIpv6,
        publicIpv6Prefix: machine.publicIpv6Prefix,
        privateIpv4: own?.ipv4Address,
        privateIpv6: own?.ipv6Address,
      },
    ]
  })

/** Roles that no machine fulfils, and since when; `isServing` says whether its load balancer does. */
export function lostSince(
  edge: EdgeObject,
  { machines, isServing }: { readonly machines: readonly Machine[]; readonly isServing: boolean },
  now: Date,
): Readonly<Record<string, string>> {
  const known = edge.status?.lostSince ?? {}
  const rules = grantedRulesOf(edge)
  const isFulfilled = (role: EdgeRole): boolean =>
    rules.some(({ name, roles }) => roles.includes(role) && edgeMachine(machines, name)?.isHealthy === true)
  const lost: EdgeRole[] = [...new Set(rules.flatMap(({ roles }) => roles))].filter((role) => !isFulfilled(role))
  if (grantedOf(edge).hasPair && !isServing) lost.push('load_balancer')
  return Object.fromEntries(lost.map((role) => [role, known[role] ?? now.toISOString()]))
}
