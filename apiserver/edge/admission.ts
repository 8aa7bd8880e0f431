/** Network edges that people make, change and delete past the API must satisfy its rules. Everything is checked and
 *  nothing is claimed: that is the controller's part, once the object is there. */
import { requireDeletable, requireIdle } from '../../domain/idle-rules.ts'
import { idleFactsOf } from '../../resources/operation/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { choosePlacement } from '../../domain/edge-rules.ts'
import { badField } from '../../domain/problem.ts'
import { parsePublicKey } from '../../domain/ssh-key.ts'
import { claimEdge } from '../../db/edge/index.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { Edge, EdgeMemberInput, type EdgeSpec, type EdgeStatus } from '../../resources/edge/index.ts'
import { Network, rangesOf } from '../../resources/network/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../admission/account-objects.ts'
import { type AdmissionParts, type AdmissionRules, type AdmittedChange, changesOf } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireField, requirePrintableName } from '../admission/readable-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { storedOf } from '../list/stored.ts'
import type { EdgeObject } from './edges.ts'
import { requireMachinePlan } from '../managed-machine/index.ts'
import { hasSeparateEdges, ownAddressesOf, rehearseEdge, requireEdges, requireMembers } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'edge',
  finalizer: finalizerOf(Edge),
  goesWhen: 'nothing of the edge is left',
}
const FIELDS = { members: 'spec.members', frontendPort: 'frontendPort' }

/** The network of the same manifest may come later: the edge waits for it. */
function requireReadable(
  { caches }: AdmissionParts,
  { metadata: { namespace = '' }, spec, status }: Pick<EdgeObject, 'metadata' | 'spec' | 'status'>,
): void {
  requirePrintableName(spec)
  requireMachinePlan({ caches }, spec.plan, 'spec.plan')
  for (const [index, text] of spec.sshKeys.entries()) {
    const key = parsePublicKey(text)
    if (typeof key === 'string') throw badField(`spec.sshKeys.${index}`, key)
  }
  if (spec.roles.includes('bastion') && spec.sshKeys.length === 0)
    throw badField('spec.sshKeys', 'a bastion needs at least one SSH key: nobody could sign in')
  for (const [index, { name, address }] of spec.members.entries()) {
    requireField(`spec.members.${index}.name`, EdgeMemberInput.shape.name, name)
    requireField(`spec.members.${index}.address`, EdgeMemberInput.shape.address, address)
  }
  const network = caches.of(Network).get({ namespace, name: spec.networkId })
  const ipv4Cidr = network === undefined ? '' : rangesOf(network).ipv4Cidr
  if (network !== undefined && network.spec.zone !== spec.zone)
    throw badField('spec.zone', `the network is in zone ${network.spec.zone}`)
  if (ipv4Cidr === '') return
  const { roles, placement } = spec
  requireMembers(spec.members, { roles, placement, ipv4Cidr, ownAddresses: ownAddressesOf(status) }, FIELDS)
}

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, edge: EdgeObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: edgeId, namespace = '' },
    spec: { zone, placement, networkId },
  } = edge
  const accountId = await requireAccount(parts, edge, 'edges')
  denyPlatformFields(edge, undefined, PLATFORM)
  requireReadable(parts, edge)
  requireEdges(parts, zone, 'spec.zone')
  choosePlacement(placement, { zone, hasSeparateEdges: hasSeparateEdges(parts, zone) })
  await requireStanding(parts, accountId)
  if (parts.caches.of(Network).get({ namespace, name: networkId }) !== undefined)
    await rehearse(parts, (tx) => claimEdge(tx, { accountId, edgeId, networkId }))
  await rehearseEdge(parts, { accountId, spec: edge.spec })
  return [{ action: 'edge.create', changes: [] }]
}

const FOLLOWED = ['roles', 'plan', 'sshKeys', 'members'] as const

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  edge: EdgeObject,
  before: EdgeObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(edge, before, PLATFORM)
  const isChanged = (field: keyof EdgeSpec): boolean => !isDeepStrictEqual(edge.spec[field], before.spec[field])
  for (const field of ['zone', 'networkId', 'placement'] as const)
    if (isChanged(field)) throw badField(`spec.${field}`, 'cannot be changed')
  const isFollowed = FOLLOWED.some(isChanged)
  if (isFollowed) {
    requireIdle('edge', idleFactsOf(storedOf(before)))
    requireReadable(parts, edge)
    const accountId = await requireAccount(parts, edge, 'edges')
    await requireStanding(parts, accountId)
    await rehearseEdge(parts, { accountId, edgeId: edge.metadata.name, spec: edge.spec, status: before.status })
  } else requirePrintableName(edge.spec)
  const changes = changesOf(['name'], edge.spec, before.spec)
  return [
    ...(isFollowed ? [{ action: 'edge.sync' as const, changes: [] }] : []),
    ...(changes.length > 0 ? [{ action: 'edge.update' as const, changes }] : []),
  ]
}

export const edgeAdmission: AdmissionRules<EdgeSpec, EdgeStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('edge.delete', (before) => requireDeletable('edge', idleFactsOf(storedOf(before)))),
  reads: [Zone, Network, Plan, Template],
}
