/** Allocating, reading, assigning and releasing floating IPs. */
import { requireAssignable, requireReleasable } from '../../domain/floating-ip.ts'
import { notFound } from '../../domain/problem.ts'
import {
  assignFloatingIp as assign,
  type Assignment,
  claimFloatingIp,
  type FloatingIpClaim,
  releaseFloatingIp as release,
} from '../../db/floating-ip/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { newOrderedUuid, newUuid } from '../../kit/sys/random.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  allocateFloatingIp,
  assignFloatingIp,
  FloatingIp,
  getFloatingIp,
  listFloatingIps,
  releaseFloatingIp,
} from '../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { ACCOUNT_LABEL, LAST_CHANGE_ANNOTATION } from '../../resources/labels.ts'
import { rehearse } from '../admission/rehearse.ts'
import { accept, newStanza } from '../change/accept.ts'
import { auditEntryOf } from '../change/audit.ts'
import { begunView } from '../change/begun.ts'
import { ensureNamespace } from '../change/namespaces.ts'
import { operate } from '../change/operate.ts'
import { completeList } from '../list/page.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { Parts } from '../parts.ts'
import { getObject } from '../plain/objects.ts'
import type { Servers } from '../server/index.ts'
import type { FloatingIps } from './floating-ips.ts'

export type FloatingIpParts = Parts & { readonly servers: Servers; readonly floatingIps: FloatingIps }

/** More than any account may have. */
const LISTED_MAXIMUM = 10_000

export const floatingIpEndpoints = (parts: FloatingIpParts): readonly Endpoint[] => [
  getObject(parts.floatingIps, getFloatingIp),
  customerEndpoint(listFloatingIps, async ({ caller: { accountId } }) => {
    const { floatingIps } = parts
    await floatingIps.catchUp(accountId)
    return completeList(floatingIps.page(accountId, {}, undefined, LISTED_MAXIMUM).map(floatingIps.viewOf))
  }),
  customerEndpoint(allocateFloatingIp, (call) => allocate(parts, call)),
  customerEndpoint(releaseFloatingIp, (call) =>
    operate(parts, parts.floatingIps, call, {
      kind: 'floating_ip.sync',
      validate: requireReleasable,
      spec: {},
      arguments: { action: 'release' },
    }),
  ),
  customerEndpoint(assignFloatingIp, (call) => change(parts, call)),
]

/** Throws 404 for a server that is not the account's, or is being deleted. */
async function assignmentOf(
  { servers }: FloatingIpParts,
  accountId: string,
  { server_id: serverId, target }: { readonly server_id?: string | null | undefined; readonly target: string },
): Promise<Assignment | undefined> {
  if (serverId == null) return undefined
  const server = await servers.read(accountId, serverId)
  if (server.metadata.deletionTimestamp !== undefined || server.spec.operation?.kind === 'server.delete')
    throw notFound('server')
  servers.requireOwn(server)
  return { serverId, target }
}

async function allocate(parts: FloatingIpParts, call: Call<typeof allocateFloatingIp, Customer>): Promise<Answer> {
  const {
    caller: { accountId, actor },
    body: { zone, ...body },
    request,
    now,
  } = call
  requirePrivateNetworks(parts, zone)
  const assignment = await assignmentOf(parts, accountId, body)
  // Lists are newest first by second of creation, then by id: the id keeps the order within the second.
  const id = newOrderedUuid(parts.random, now)
  const operation =
    assignment &&
    newStanza(parts, 'floating_ip.sync', {
      actor,
      requestId: request.requestId,
      now,
      arguments: { action: 'allocate' },
    })
  const changeId = operation?.id ?? newUuid(parts.random)
  const key = { namespace: accountNamespace(accountId), name: id }
  const reference = { type: 'floating_ip', id } as const
  const written = await accept(parts, {
    id: changeId,
    accountId,
    resource: reference,
    ...(operation === undefined ? {} : { operation }),
    audit: auditEntryOf(call, {
      resourceId: id,
      detail: { zone, ...(assignment === undefined ? {} : { server_id: assignment.serverId }) },
    }),
    claim: (tx) => claimFloatingIp(tx, { accountId, floatingIpId: id, zone, assignment }),
    release: (tx) => release(tx, { accountId, floatingIpId: id }),
    write: async (claimed: FloatingIpClaim | undefined) => {
      await ensureNamespace(parts, accountId)
      return parts.store.create(FloatingIp, {
        metadata: {
          ...key,
          labels: { [ACCOUNT_LABEL]: accountId },
          ...(operation === undefined ? { annotations: { [LAST_CHANGE_ANNOTATION]: changeId } } : {}),
          finalizers: [finalizerOf(FloatingIp)],
        },
        spec: {
          zone,
          ...(claimed === undefined ? {} : { address: claimed.address }),
          ...assignment,
          ...(operation === undefined ? {} : { operation }),
        },
      })
    },
    read: () => parts.store.get(FloatingIp, key),
    wasApplied: () => true, // nobody else has the id
  })
  parts.floatingIps.cache.apply(written)
  return {
    status: 201,
    body: {
      floating_ip: parts.floatingIps.viewOf(written),
      ...(operation === undefined ? {} : { operation: begunView(written, reference) }),
    },
  }
}

/** That the target can be is checked here; it is made so when the operation begins. */
async function change(parts: FloatingIpParts, call: Call<typeof assignFloatingIp, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: floatingIpId },
    body,
  } = call
  const { floatingIps } = parts
  const before = await floatingIps.read(accountId, floatingIpId)
  requireAssignable(floatingIps.factsOf(before))
  const assignment = await assignmentOf(parts, accountId, body)
  await rehearse(parts, (tx) => assign(tx, { accountId, floatingIpId, assignment }))
  const action = assignment === undefined ? 'unassign' : 'assign'
  return operate(parts, floatingIps, call, {
    kind: 'floating_ip.sync',
    audit: `floating_ip.${action}`,
    validate: requireAssignable,
    changes: ({ spec }) => [{ field: 'server_id', before: spec.serverId ?? null, after: assignment?.serverId ?? null }],
    spec: { serverId: assignment?.serverId ?? null, target: assignment?.target ?? null },
    arguments: { action },
  })
}
