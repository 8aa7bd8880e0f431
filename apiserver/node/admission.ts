/** Nodes that operators make, change and remove with kubectl are judged as the operator API would: everything is
 *  checked, nothing is claimed. */
import { isDeepStrictEqual } from 'node:util'
import {
  requireCordonable,
  requireDrainable,
  requireEmptyToDedicate,
  requireNodeIdle,
  requireRemovable,
  requireUncordonable,
  requireUpgradable,
} from '../../domain/node-rules.ts'
import { badField, badRequest } from '../../domain/problem.ts'
import { accountExists } from '../../db/server/claims.ts'
import { NODE_FINALIZER } from '../../resources/labels.ts'
import { HOSTNAME_LENGTH_MAXIMUM } from '../../resources/node/routes.ts'
import { Node, type NodeSpec, Zone } from '../../resources/catalog/stored.ts'
import { Labels } from '../../resources/shapes.ts'
import { factsOf, type NodeObject, othersOf, requireRoomElsewhere } from './nodes.ts'
import type { Asked, JudgeParts } from '../server/admission.ts'
import { type Protected, requireUnforged } from '../admission/platform-fields.ts'

const PROTECTED: Protected = { noun: 'node', finalizer: NODE_FINALIZER, goesWhen: 'nothing is left on the node' }

/** Throws the Problem that the API would answer. */
export async function judgeNodeCreation(parts: JudgeParts, node: NodeObject): Promise<readonly Asked[]> {
  requireUnforged(node, undefined, PROTECTED)
  requireReadable(node)
  if (node.metadata.name.length > HOSTNAME_LENGTH_MAXIMUM)
    throw badRequest(`The name of a node has at most ${HOSTNAME_LENGTH_MAXIMUM} characters.`)
  if (parts.caches.of(Zone).get({ name: node.spec.zone }) === undefined)
    throw badField('spec.zone', 'there is no such zone')
  await requireAccount(parts, node.spec)
  return []
}

/** Throws the Problem that the API would answer. */
export async function judgeNodeChange(
  parts: JudgeParts,
  node: NodeObject,
  before: NodeObject,
): Promise<readonly Asked[]> {
  requireUnforged(node, before, PROTECTED)
  requireReadable(node)
  const isChanged = (field: keyof NodeSpec): boolean => !isDeepStrictEqual(node.spec[field], before.spec[field])
  const facts = await factsOf(parts, before)
  if (isChanged('dedicatedAccountId')) {
    requireEmptyToDedicate(facts)
    await requireAccount(parts, node.spec)
  }
  if (isChanged('desiredAgentVersion') && node.spec.desiredAgentVersion !== undefined) {
    const version = node.spec.desiredAgentVersion
    requireUpgradable(facts, version, othersOf(parts.caches.of(Node), facts))
    return asked('node.agent_upgrade')
  }
  if (isChanged('isInMaintenance') && node.spec.isInMaintenance === true) {
    requireDrainable(facts)
    await requireRoomElsewhere(parts, before)
    return asked('node.maintenance')
  }
  if (isChanged('isInMaintenance') && node.spec.isCordoned) requireNodeIdle(facts)
  if (!isChanged('isCordoned')) return []
  if (node.spec.isCordoned) requireCordonable(facts)
  else requireUncordonable(facts)
  return asked(node.spec.isCordoned ? 'node.cordon' : 'node.uncordon')
}

/** Throws the Problem that the API would answer. */
export async function judgeNodeDeletion(parts: JudgeParts, node: NodeObject): Promise<readonly Asked[]> {
  if (node.metadata.deletionTimestamp === undefined) requireRemovable(await factsOf(parts, node))
  return []
}

const asked = (action: Asked['action']): readonly Asked[] => [{ action, changes: [] }]

function requireReadable({ spec }: NodeObject): void {
  const fault = Labels.safeParse(spec.labels ?? {}).error?.issues[0]
  if (fault !== undefined) throw badField(['spec.labels', ...fault.path].join('.'), fault.message)
}

async function requireAccount({ db }: JudgeParts, { dedicatedAccountId }: NodeSpec): Promise<void> {
  if (dedicatedAccountId !== undefined && !(await accountExists(db, dedicatedAccountId)))
    throw badField('spec.dedicatedAccountId', 'there is no such account')
}
