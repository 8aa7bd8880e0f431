/** Changes that a node's state allows: one rule per verb, the same for every interface. Refusals come in the contract's
 *  order: operation_in_progress, in_use, state_not_allowed. */
import { conflict, operationInProgress, type Problem } from '../problem.ts'

export const NODE_STATES = [
  'provisioning',
  'ready',
  'cordoned',
  'draining',
  'maintenance',
  'unreachable',
  'fencing',
  'fenced',
  'retired',
] as const
export type NodeState = (typeof NODE_STATES)[number]

const REACHABLE_STATES: readonly (NodeState | undefined)[] = ['ready', 'cordoned', 'draining', 'maintenance']
/** Whether the agent of a node in this state renews its heartbeat. */
export const isReachableState = (state: NodeState | undefined): boolean => REACHABLE_STATES.includes(state)

export interface NodeFacts {
  readonly id: string
  readonly zone: string
  readonly state: NodeState
  readonly isCordoned: boolean
  readonly isInMaintenance: boolean
  readonly isDeleting: boolean
  readonly activeOperationId: string | undefined
  readonly agentVersion: string
  /** Servers that run on it or have room reserved on it. */
  readonly serverCount: number
}

const referenceOf = ({ id }: NodeFacts) => ({ type: 'node', id })

/** Throws 409 while another change runs. */
export function requireNodeIdle(node: NodeFacts): void {
  if (node.activeOperationId !== undefined) throw operationInProgress(node.activeOperationId, referenceOf(node))
  if (node.isDeleting) throw stateNotAllowed(node, 'The node is being removed.')
}

/** Throws 409 while another change runs, and for a node that is cordoned already. */
export function requireCordonable(node: NodeFacts): void {
  requireNodeIdle(node)
  if (node.isCordoned) throw stateNotAllowed(node, 'The node is cordoned already.')
}

/** Throws 409 while another change runs, and for a node that is not cordoned or is fenced. */
export function requireUncordonable(node: NodeFacts): void {
  requireNodeIdle(node)
  if (!node.isCordoned) throw stateNotAllowed(node, 'The node is not cordoned.')
  if (node.state === 'fencing' || node.state === 'fenced')
    throw stateNotAllowed(node, 'The node is fenced: it joins again when its host has booted anew.')
}

/** A reachable node is fenced by force only, because its guests run. A node that never reported has no guests. */
export function requireFenceable(node: NodeFacts, isForced: boolean): void {
  if (node.isDeleting) throw stateNotAllowed(node, 'The node is being removed.')
  if (node.state === 'fenced') throw stateNotAllowed(node, 'The node is fenced already.')
  if (node.state === 'fencing' && node.activeOperationId !== undefined)
    throw operationInProgress(node.activeOperationId, referenceOf(node))
  if (node.state === 'provisioning') throw stateNotAllowed(node, 'The node is provisioning: nothing has run on it yet.')
  if (node.state !== 'unreachable' && !isForced)
    throw stateNotAllowed(
      node,
      `The node is ${node.state}: it answers. Fence it with force only if its servers may lose their guests.`,
    )
}

/** Only a node that answers can send its servers away; one that does not is fenced, and its servers are recovered. */
export function requireDrainable(node: NodeFacts): void {
  requireNodeIdle(node)
  if (node.state !== 'ready' && node.state !== 'cordoned')
    throw stateNotAllowed(node, `The node is ${node.state}; only a ready or cordoned node can be emptied.`)
}

/** The first node of a zone that gets a version is its canary: the others wait until its agent reports it. `others` are
 *  those of the zone. */
export function requireUpgradable(
  node: NodeFacts,
  version: string,
  others: readonly (Pick<NodeFacts, 'id' | 'agentVersion' | 'state'> & { readonly upgradingTo: string | undefined })[],
): void {
  requireNodeIdle(node)
  if (node.state !== 'ready' && node.state !== 'cordoned' && node.state !== 'maintenance')
    throw stateNotAllowed(node, `The node is ${node.state}; its agent cannot be replaced now.`)
  const canary = others.find(({ upgradingTo }) => upgradingTo === version)
  const isProven = others.some(({ agentVersion, state }) => agentVersion === version && state !== 'unreachable')
  if (canary !== undefined && !isProven)
    throw stateNotAllowed(
      node,
      `Node ${canary.id} tries version ${version} for its zone first. Wait until its agent reports it.`,
    )
}

const NAMED_MAXIMUM = 10

/** A record is deleted when nothing is left on the node, and nothing new can come. `storages`: separate storages whose
 *  data are on it or are being moved to it. */
export function requireRemovable(node: NodeFacts, storages: readonly string[]): void {
  requireNodeIdle(node)
  if (node.serverCount > 0)
    throw conflict('in_use', `${placed(node)} ${remedy(node)} first.`, { resource: referenceOf(node) })
  if (storages.length > 0) {
    const names = storages.slice(0, NAMED_MAXIMUM).join(', ')
    const more = storages.length > NAMED_MAXIMUM ? ` and ${storages.length - NAMED_MAXIMUM} more` : ''
    throw conflict('in_use', `Storages have their place on the node: ${names}${more}. Move or delete them first.`, {
      resource: referenceOf(node),
    })
  }
  if (!node.isCordoned) throw stateNotAllowed(node, 'The node is not cordoned. Cordon it first.')
}

/** How the servers of a node leave it. */
const remedy = (node: NodeFacts): string =>
  node.state === 'fenced'
    ? byCount(node, 'Bring it elsewhere or give it up', 'Bring them elsewhere or give them up')
    : 'Drain it'

/** A node is assigned to one account, or back to all, only while no guest is on it. */
export function requireEmptyToDedicate(node: NodeFacts): void {
  if (node.serverCount > 0)
    throw conflict('in_use', `${placed(node)} Only an empty node changes hands.`, { resource: referenceOf(node) })
}

const byCount = ({ serverCount }: NodeFacts, one: string, many: string): string => (serverCount === 1 ? one : many)
const placed = (node: NodeFacts): string =>
  byCount(node, 'A server has its place on the node.', `${node.serverCount} servers have their place on the node.`)

const stateNotAllowed = (node: NodeFacts, detail: string): Problem =>
  conflict('state_not_allowed', detail, { resource: referenceOf(node) })
