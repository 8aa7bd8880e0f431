/** Making, reading, changing and deleting network edges. */
import { requireDeletable, requireIdle } from '../../domain/idle-rules.ts'
import { isDeepStrictEqual } from 'node:util'
import type { AuditChange } from '../../domain/audit.ts'
import { choosePlacement, defaultEdgeName, type EdgeRole } from '../../domain/edge-rules.ts'
import * as claims from '../../db/edge/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  createEdge,
  deleteEdge,
  Edge,
  type EdgeMemberInput,
  type EdgeSpec,
  getEdge,
  listEdges,
  type UpdateEdge,
  updateEdge,
} from '../../resources/edge/index.ts'
import { rangesOf } from '../../resources/network/index.ts'
import { create } from '../change/create.ts'
import { begin, operate } from '../change/operate.ts'
import { requireMachinePlan, cheapestMachinePlan } from '../managed-machine/index.ts'
import type { Networks } from '../network/index.ts'
import type { Parts } from '../parts.ts'
import { changeObject } from '../plain/change-object.ts'
import { etagOfObject, getObject, listObjects } from '../plain/objects.ts'
import { chooseKeys } from '../server/index.ts'
import type { EdgeObject, Edges } from './edges.ts'
import { hasSeparateEdges, ownAddressesOf, rehearseEdge, requireEdges, requireMembers } from './rules.ts'

export type EdgeParts = Parts & { readonly edges: Edges; readonly networks: Networks }

const FIELDS = { members: 'members', frontendPort: 'frontend_port' }

export const edgeEndpoints = (parts: EdgeParts): readonly Endpoint[] => [
  getObject(parts.edges, getEdge),
  listObjects(parts, parts.edges.items, listEdges, () => ({})),
  customerEndpoint(createEdge, (call) => createEndpoint(parts, call)),
  customerEndpoint(updateEdge, (call) => update(parts, call)),
  customerEndpoint(deleteEdge, (call) => remove(parts, call)),
]

const membersOf = (members: readonly EdgeMemberInput[]): EdgeSpec['members'] =>
  members.map(({ frontend_port: frontendPort, ...member }) => ({ frontendPort, ...member }))

/** Nobody signs in to an edge that is no bastion. */
const keysOf = async (
  parts: EdgeParts,
  {
    accountId,
    roles,
    ids,
  }: { readonly accountId: string; readonly roles: readonly EdgeRole[]; readonly ids: string[] | undefined },
): Promise<string[]> =>
  roles.includes('bastion') || ids !== undefined
    ? [...(await chooseKeys(parts, accountId, ids === undefined ? {} : { ssh_key_ids: ids }))]
    : []

async function createEndpoint(parts: EdgeParts, call: Call<typeof createEdge, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    body,
  } = call
  const { network_id: networkId, roles } = body
  const network = await parts.networks.read(accountId, networkId)
  const { zone } = network.spec
  requireEdges(parts, zone)
  const placement = choosePlacement(body.placement, { zone, hasSeparateEdges: hasSeparateEdges(parts, zone) })
  const plan = body.plan ?? cheapestMachinePlan(parts)
  requireMachinePlan(parts, plan)
  const members = membersOf(body.members)
  const { ipv4Cidr } = rangesOf(network)
  requireMembers(members, { roles, placement, ipv4Cidr, ownAddresses: [] }, FIELDS)
  const sshKeys = await keysOf(parts, { accountId, roles, ids: body.ssh_key_ids })
  const edge = { zone, networkId, name: body.name ?? defaultEdgeName(network.spec.name), roles, placement, plan }
  await rehearseEdge(parts, { accountId, spec: edge })
  return create(parts, parts.edges, call, {
    kind: 'edge.sync',
    arguments: { action: 'create' },
    finalizer: finalizerOf(Edge),
    detail: { zone, network_id: networkId, placement, roles: roles.join(',') },
    claim: (tx, edgeId) => claims.claimEdge(tx, { accountId, edgeId, networkId }),
    release: (tx, edgeId) => claims.releaseEdge(tx, { accountId, edgeId }),
    specOf: (operation): EdgeSpec => ({ ...edge, sshKeys, members, operation }),
  })
}

/** What its machines follow starts an operation; a name is there at once. */
async function update(parts: EdgeParts, call: Call<typeof updateEdge, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: edgeId },
    body,
  } = call
  const { edges } = parts
  const edge = await edges.read(accountId, edgeId)
  const wanted = await wantedOf(parts, { accountId, edge, body })
  if (wanted === undefined) {
    const written = await changeObject(parts, edges, call, {
      changes: ({ spec }) => changesOf(spec, body),
      patch: () => nameOf(body),
    })
    return { status: 200, body: { edge: edges.viewOf(written) }, headers: { etag: etagOfObject(written) } }
  }
  const operation = await begin(parts, edges, call, {
    kind: 'edge.sync',
    arguments: { action: 'update' },
    validate: (facts) => requireIdle('edge', facts),
    changes: ({ spec }) => changesOf(spec, body, wanted),
    spec: { ...nameOf(body), ...wanted },
  })
  const written = edges.find(accountId, edgeId) ?? (await edges.read(accountId, edgeId))
  return {
    status: 202,
    body: { edge: edges.viewOf(written), operation },
    headers: { etag: etagOfObject(written) },
  }
}

const nameOf = ({ name }: UpdateEdge) => (name === undefined ? {} : { name })

type Wanted = Pick<EdgeSpec, 'roles' | 'plan' | 'sshKeys' | 'members'>

/** What its machines shall follow from now on; undefined when that is what they follow already. Throws a Problem for
 *  what cannot be. */
async function wantedOf(
  parts: EdgeParts,
  { accountId, edge, body }: { readonly accountId: string; readonly edge: EdgeObject; readonly body: UpdateEdge },
): Promise<Wanted | undefined> {
  const { spec, status } = edge
  const roles = body.roles ?? spec.roles
  const isNewBastion = roles.includes('bastion') && !spec.roles.includes('bastion') && spec.sshKeys.length === 0
  const wanted: Wanted = {
    roles,
    plan: body.plan ?? spec.plan,
    sshKeys:
      body.ssh_key_ids !== undefined || isNewBastion
        ? await keysOf(parts, { accountId, roles, ids: body.ssh_key_ids })
        : spec.sshKeys,
    members: body.members === undefined ? spec.members : membersOf(body.members),
  }
  const { plan, sshKeys, members } = spec
  if (isDeepStrictEqual(wanted, { roles: spec.roles, plan, sshKeys, members })) return undefined
  if (wanted.plan !== spec.plan) requireMachinePlan(parts, wanted.plan)
  const network = await parts.networks.read(accountId, spec.networkId)
  requireMembers(
    wanted.members,
    {
      roles,
      placement: spec.placement,
      ipv4Cidr: rangesOf(network).ipv4Cidr,
      ownAddresses: ownAddressesOf(status),
    },
    FIELDS,
  )
  requireEdges(parts, spec.zone)
  await rehearseEdge(parts, { accountId, edgeId: edge.metadata.name, spec: { ...spec, ...wanted }, status })
  return wanted
}

/** The audit log holds no keys. */
function changesOf(spec: EdgeSpec, body: UpdateEdge, wanted?: Wanted): readonly AuditChange[] {
  const fields = [
    ['name', spec.name, body.name],
    ['roles', spec.roles, wanted?.roles],
    ['plan', spec.plan, wanted?.plan],
    ['ssh_key_count', spec.sshKeys.length, wanted?.sshKeys.length],
    ['members', spec.members.map(({ name }) => name), wanted?.members.map(({ name }) => name)],
  ] as const
  return fields.flatMap(([field, before, after]) =>
    after === undefined || isDeepStrictEqual(before, after) ? [] : [{ field, before, after }],
  )
}

const remove = (parts: EdgeParts, call: Call<typeof deleteEdge, Customer>): Promise<Answer> =>
  operate(parts, parts.edges, call, {
    kind: 'edge.delete',
    arguments: { action: 'delete' },
    validate: (facts) => requireDeletable('edge', facts),
    spec: {},
  })
