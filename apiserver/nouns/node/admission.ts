/** Nodes that operators create, change and remove with kubectl must satisfy the rules of the operator API: everything
 *  is checked, nothing is claimed. */
import { unknownZone } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { isDeepStrictEqual } from 'node:util'
import {
  requireCordonable,
  requireDrainable,
  requireEmptyToDedicate,
  requireNodeIdle,
  requireUncordonable,
  requireUpgradable,
} from '../../../domain/node/rules.ts'
import { badField, badRequest } from '../../../domain/problem.ts'
import { accountExists } from '../../../db/server/index.ts'
import { HOSTNAME_LENGTH_MAXIMUM, Node, type NodeSpec, type NodeStatus } from '../../../resources/node/index.ts'
import { Plan, Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { nodeFacts, type NodeObject, othersOf, requireNothingLeft, requireRoomElsewhere } from './objects.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../../kit/admission/kind.ts'
import { requireReadable } from '../../../changes/kit/readable.ts'
import { Labels } from '../../../resources/kit/shapes.ts'

const PLATFORM: PlatformFields = { noun: 'node', finalizer: finalizerOf(Node), goesWhen: 'nothing is left on the node' }

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, node: NodeObject): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(node, undefined, PLATFORM)
  requireReadableFields(node)
  if (node.metadata.name.length > HOSTNAME_LENGTH_MAXIMUM)
    throw badRequest(`The name of a node has at most ${HOSTNAME_LENGTH_MAXIMUM} characters.`)
  if (parts.caches.of(Zone).get({ name: node.spec.zone }) === undefined)
    throw unknownZone(worldOf(parts.caches), node.spec.zone, 'spec.zone')
  await requireAccount(parts, node.spec)
  return []
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  node: NodeObject,
  before: NodeObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(node, before, PLATFORM)
  requireReadableFields(node)
  const isChanged = (field: keyof NodeSpec): boolean => !isDeepStrictEqual(node.spec[field], before.spec[field])
  const facts = await nodeFacts(parts, before)
  if (isChanged('dedicatedAccountId')) {
    requireEmptyToDedicate(facts)
    await requireAccount(parts, node.spec)
  }
  if (isChanged('desiredAgentVersion') && node.spec.desiredAgentVersion !== undefined) {
    const version = node.spec.desiredAgentVersion
    requireUpgradable(facts, version, othersOf(parts.caches.of(Node), facts))
    return starts('node.agent_upgrade')
  }
  if (isChanged('isInMaintenance') && node.spec.isInMaintenance === true) {
    requireDrainable(facts)
    await requireRoomElsewhere(parts, before)
    return starts('node.maintenance')
  }
  if (isChanged('isInMaintenance') && node.spec.isCordoned) requireNodeIdle(facts)
  if (!isChanged('isCordoned')) return []
  if (node.spec.isCordoned) requireCordonable(facts)
  else requireUncordonable(facts)
  return starts(node.spec.isCordoned ? 'node.cordon' : 'node.uncordon')
}

/** Throws the Problem that the API would answer. */
async function validateDeletion(parts: AdmissionParts, node: NodeObject): Promise<readonly AdmittedChange[]> {
  if (node.metadata.deletionTimestamp === undefined) await requireNothingLeft(parts, node)
  return []
}

const starts = (action: AdmittedChange['action']): readonly AdmittedChange[] => [{ action, changes: [] }]

function requireReadableFields({ spec }: NodeObject): void {
  requireReadable('spec.labels', Labels.optional(), spec.labels)
}

async function requireAccount({ db }: AdmissionParts, { dedicatedAccountId }: NodeSpec): Promise<void> {
  if (dedicatedAccountId !== undefined && !(await accountExists(db, dedicatedAccountId)))
    throw badField('spec.dedicatedAccountId', 'there is no such account')
}

export const nodeAdmission: AdmissionRules<NodeSpec, NodeStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: validateDeletion,
  reads: [Node, Plan, Zone],
}
