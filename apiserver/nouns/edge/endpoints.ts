/** Endpoints of network edges. */
import { edgeChanges, hasSeparateEdges } from '../../../changes/edge.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { defined } from '../../../domain/defined.ts'
import { choosePlacement, defaultEdgeName, type EdgeRole } from '../../../domain/edge/rules.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import {
  createEdge,
  type EdgeMemberInput,
  type EdgeSpec,
  getEdge,
  listEdges,
  updateEdge,
} from '../../../resources/edge/index.ts'
import { makerOf } from '../../kit/create.ts'
import { changeEndpoints, changerOf } from '../../kit/rest.ts'
import { cheapestMachinePlan } from '../managed-machine/index.ts'
import type { Networks } from '../network/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, listObjects } from '../../kit/plain/objects.ts'
import { chooseKeys } from '../server/index.ts'
import type { Edges } from './objects.ts'

export type EdgeParts = Parts & { readonly edges: Edges; readonly networks: Networks }

export const edgeEndpoints = (parts: EdgeParts): readonly Endpoint[] => [
  getObject(parts.edges, getEdge),
  listObjects(parts, parts.edges.items, listEdges, () => ({})),
  customerEndpoint(createEdge, (call) => create(parts, call)),
  customerEndpoint(updateEdge, (call) => update(parts, call)),
  ...changeEndpoints(parts, edgeChanges, parts.edges),
]

const membersOf = (members: readonly EdgeMemberInput[]): EdgeSpec['members'] =>
  members.map(({ frontend_port: frontendPort, ...member }) => ({ frontendPort, ...member }))

const BASTION = { title: 'a bastion', hint: 'add one to the account' }

/** Nobody signs in to an edge that is not a bastion. */
const keysOf = async (
  parts: EdgeParts,
  {
    accountId,
    roles,
    ids,
  }: { readonly accountId: string; readonly roles: readonly EdgeRole[]; readonly ids: string[] | undefined },
): Promise<string[]> =>
  roles.includes('bastion') || ids !== undefined
    ? [...(await chooseKeys(parts, accountId, defined({ ssh_key_ids: ids }), BASTION))]
    : []

async function create(parts: EdgeParts, call: Call<typeof createEdge, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    body,
  } = call
  const { network_id: networkId, roles } = body
  const { spec: network } = await parts.networks.read(accountId, networkId)
  const { zone } = network
  const separate = hasSeparateEdges(worldOf(parts.caches), zone)
  const placement = choosePlacement(body.placement, { zone, hasSeparateEdges: separate })
  return makerOf(
    parts,
    edgeChanges,
    parts.edges,
  )(call, {
    zone,
    networkId,
    roles,
    placement,
    name: body.name ?? defaultEdgeName(network.name),
    plan: body.plan ?? cheapestMachinePlan(parts),
    sshKeys: await keysOf(parts, { accountId, roles, ids: body.ssh_key_ids }),
    members: membersOf(body.members),
  })
}

/** A field that its machines follow starts an operation; a name takes effect at once. */
async function update(parts: EdgeParts, call: Call<typeof updateEdge, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id },
    body: { ssh_key_ids: ids, ...body },
  } = call
  const { spec: before } = await parts.edges.read(accountId, id)
  const { roles = before.roles } = body
  const isNewBastion = roles.includes('bastion') && !before.roles.includes('bastion') && before.sshKeys.length === 0
  const chosen = ids !== undefined || isNewBastion ? await keysOf(parts, { accountId, roles, ids }) : undefined
  return changerOf(
    parts,
    edgeChanges,
    parts.edges,
  )(call, (spec) => ({
    name: body.name ?? spec.name,
    roles: body.roles ?? spec.roles,
    plan: body.plan ?? spec.plan,
    sshKeys: chosen ?? spec.sshKeys,
    members: body.members === undefined ? spec.members : membersOf(body.members),
  }))
}
