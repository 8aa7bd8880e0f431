/** Nodes for operators: reading, joining, changing, draining and removing them. Each change is one conditional write of
 *  the Node, the desired state together with the operation that brings it about. */
import { unknownZone } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { defined } from '../../../domain/defined.ts'
import {
  type NodeFacts,
  requireCordonable,
  requireDrainable,
  requireEmptyToDedicate,
  requireNodeIdle,
  requireUncordonable,
  requireUpgradable,
} from '../../../domain/node/rules.ts'
import type { OperationKind } from '../../../domain/operations.ts'
import { badField, nameTaken, zoneLacks } from '../../../domain/problem.ts'
import { accountExists } from '../../../db/server/index.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { requireMatch } from '../../../kit/http/conditional.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { replacing } from '../../../kit/kube/merge-patch.ts'
import { isAlreadyExists } from '../../../kit/kube/store.ts'
import * as routes from '../../../resources/node/routes.ts'
import type { OperationView } from '../../../resources/operation/index.ts'
import { Node, type NodeSpec } from '../../../resources/node/index.ts'
import { Plan, Zone } from '../../../resources/catalog/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { newStanza } from '../../kit/change/accept.ts'
import {
  nodeFacts,
  type NodeObject,
  type Nodes,
  othersOf,
  requireNothingLeft,
  requireRoomElsewhere,
} from './objects.ts'
import { begunView } from '../../kit/change/begun.ts'
import { beginAsOperator } from '../../kit/change/begin.ts'
import { changeAsOperator } from '../../kit/change/operator-change.ts'
import type { OperatorAct } from '../../kit/change/staff-audit.ts'
import { pageOfObjects } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'

const HOUR_MILLISECONDS = 3_600_000
const MINUTE_MILLISECONDS = 60_000

export function nodeEndpoints(parts: Parts, nodes: Nodes): readonly Endpoint[] {
  const { caches } = parts
  caches.of(Plan)
  caches.of(Server)
  return [
    operatorEndpoint(routes.listNodes, (call) => list(parts, nodes, call)),
    operatorEndpoint(routes.getNode, async ({ params }) => answerOf(nodes, await nodes.read(params.id))),
    operatorEndpoint(routes.provisionNode, (call) => provision(parts, nodes, call)),
    operatorEndpoint(routes.updateNode, (call) => update(parts, nodes, call)),
    operatorEndpoint(routes.cordonNode, (call) =>
      begin(parts, nodes, call, {
        kind: 'node.cordon',
        validate: requireCordonable,
        spec: { isCordoned: true },
        arguments: { reason: call.body.reason },
      }),
    ),
    operatorEndpoint(routes.uncordonNode, (call) =>
      begin(parts, nodes, call, {
        kind: 'node.uncordon',
        validate: requireUncordonable,
        spec: { isCordoned: false, isInMaintenance: null },
      }),
    ),
    operatorEndpoint(routes.drainNode, async (call) =>
      begin(parts, nodes, call, await emptying(parts, nodes, call, 'node.drain', {})),
    ),
    operatorEndpoint(routes.startNodeMaintenance, async (call) => {
      if (call.body.storage_flags)
        throw zoneLacks(
          'replicated_storage',
          'The zone has no replicated storage that could rebuild: leave storage_flags out.',
          { resource: { type: 'node', id: call.params.id } },
        )
      return begin(
        parts,
        nodes,
        call,
        await emptying(parts, nodes, call, 'node.maintenance', { reason: call.body.reason }),
      )
    }),
    operatorEndpoint(routes.upgradeNodeAgent, async (call) =>
      begin(parts, nodes, call, {
        kind: 'node.agent_upgrade',
        spec: { desiredAgentVersion: call.body.version },
        arguments: { version: call.body.version },
        detail: { version: call.body.version },
        validate: (node) => requireUpgradable(node, call.body.version, othersOf(nodes.cache, node)),
      }),
    ),
    operatorEndpoint(routes.removeNode, (call) => remove(parts, nodes, call)),
  ]
}

async function answerOf(nodes: Nodes, node: NodeObject): Promise<Answer> {
  return { status: 200, body: { node: await nodes.viewOf(node) }, headers: { etag: etagOfObject(node) } }
}

function list(parts: Parts, nodes: Nodes, call: Call<typeof routes.listNodes, Operator>): Promise<Answer> {
  const { zone, rack, cpu_pool: cpuPool, state } = call.query
  const isWanted = ({ spec, status }: NodeObject) =>
    (zone === undefined || spec.zone === zone) &&
    (rack === undefined || spec.rack === rack) &&
    (cpuPool === undefined || spec.cpuPool === cpuPool) &&
    (state === undefined || (status?.state ?? 'provisioning') === state)
  return pageOfObjects(parts, call, nodes.cache.list().filter(isWanted), nodes.viewsOf)
}

async function provision(
  parts: Parts,
  nodes: Nodes,
  call: Call<typeof routes.provisionNode, Operator>,
): Promise<Answer> {
  const { body, caller, request, now } = call
  if (parts.caches.of(Zone).get({ name: body.zone }) === undefined) throw unknownZone(worldOf(parts.caches), body.zone)
  await requireAccount(parts, body.dedicated_account_id)
  const operation = newStanza(parts, 'node.provision', { actor: caller.actor, requestId: request.requestId, now })
  const resource = { type: 'node', id: body.hostname }
  const spec: Partial<NodeSpec> = {
    zone: body.zone,
    rack: body.rack,
    roles: [...body.roles],
    managementAddress: body.management_address,
    operation,
    ...(body.bmc === undefined
      ? {}
      : { bmc: { address: body.bmc.address, protocol: body.bmc.protocol, secretName: body.bmc.secret_ref } }),
    ...(body.cpu_pool == null ? {} : { cpuPool: body.cpu_pool }),
    ...(body.dedicated_account_id == null ? {} : { dedicatedAccountId: body.dedicated_account_id }),
  }
  const object = await changeAsOperator(parts, call, {
    resource,
    audit: { action: 'node.provision', detail: { zone: body.zone, rack: body.rack } },
    async write() {
      try {
        // the kind's defaults fill in fields that are left out
        return await parts.store.create(Node, { metadata: { name: body.hostname }, spec: spec as NodeSpec })
      } catch (error) {
        if (isAlreadyExists(error)) throw nameTaken('There is a node of this name.', resource)
        throw error
      }
    },
  })
  nodes.cache.apply(object)
  return { status: 202, body: { node: await nodes.viewOf(object), operation: operationOf(object) } }
}

async function requireAccount({ db }: Parts, accountId: string | null | undefined): Promise<void> {
  if (accountId != null && !(await accountExists(db, accountId)))
    throw badField('dedicated_account_id', 'there is no such account')
}

async function update(parts: Parts, nodes: Nodes, call: Call<typeof routes.updateNode, Operator>): Promise<Answer> {
  const { body, params, request } = call
  const { rack, cpu_pool, dedicated_account_id, labels, overcommit } = body
  await requireAccount(parts, dedicated_account_id)
  const written = await changeAsOperator(parts, call, {
    resource: { type: 'node', id: params.id },
    audit: { action: 'node.update', detail: { fields: Object.keys(body).sort().join(' ') } },
    async write() {
      const node = await nodes.read(params.id)
      requireMatch(request, etagOfObject(node))
      const facts = await nodeFacts(parts, node)
      if (facts.isDeleting) requireNodeIdle(facts)
      if (dedicated_account_id !== undefined && (dedicated_account_id ?? undefined) !== node.spec.dedicatedAccountId)
        requireEmptyToDedicate(facts)
      return parts.store.patch(
        Node,
        { name: params.id },
        {
          metadata: { resourceVersion: node.metadata.resourceVersion },
          spec: {
            ...defined({
              rack,
              cpuPool: cpu_pool,
              dedicatedAccountId: dedicated_account_id,
              cpuOvercommit: overcommit,
            }),
            ...(labels === undefined ? {} : { labels: replacing(node.spec.labels ?? {}, labels) }),
          },
        },
      )
    },
  })
  nodes.cache.apply(written)
  return answerOf(nodes, written)
}

interface Verb {
  readonly kind: OperationKind
  /** Throws a Problem when the state does not allow it. */
  readonly validate: (node: NodeFacts) => void
  readonly spec: Readonly<Record<string, unknown>>
  readonly arguments?: Readonly<Record<string, string>>
  readonly deadlineAt?: Date
  /** For the operators' log. */
  readonly detail?: Readonly<Record<string, string>>
}

type OnNode = OperatorAct & Pick<Call, 'now'> & { readonly params: { readonly id: string } }

/** One conditional write: the desired state together with the operation that brings it about. */
async function begin(parts: Parts, nodes: Nodes, call: OnNode, verb: Verb): Promise<Answer> {
  return { status: 202, body: { operation: await beginOnNode(parts, nodes, call, verb) } }
}

/** Returns the operation as it is then. Throws what `validate` throws, 404 for an unknown node, and 409 when others
 *  keep changing it. */
export async function beginOnNode(
  parts: Parts,
  nodes: Nodes,
  call: OnNode,
  { validate, detail, ...verb }: Verb & { readonly action?: string },
): Promise<OperationView> {
  const { id } = call.params
  const { reason } = verb.arguments ?? {}
  return beginAsOperator(parts, call, {
    ...verb,
    target: { type: 'node', id },
    resource: Node,
    read: () => nodes.read(id),
    validate: async (node) => validate(await nodeFacts(parts, node)),
    detail: { ...defined({ reason }), ...detail },
  })
}

const operationOf = (node: NodeObject): OperationView => begunView(node, { type: 'node', id: node.metadata.name })

interface Emptying {
  readonly params: { readonly id: string }
  readonly now: Date
  readonly body: {
    readonly mode: string
    readonly max_parallel: number
    readonly deadline_minutes?: number | undefined
    readonly notify_hours: number
  }
}

/** Throws 503 when the zone has no room for every guest that would have to leave. */
async function emptying(
  parts: Parts,
  nodes: Nodes,
  { params, now, body }: Emptying,
  kind: 'node.drain' | 'node.maintenance',
  parameters: Readonly<Record<string, string>>,
): Promise<Verb> {
  const node = await nodes.read(params.id)
  requireDrainable(await nodeFacts(parts, node))
  await requireRoomElsewhere(parts, node)
  const { mode, max_parallel, deadline_minutes, notify_hours } = body
  return {
    kind,
    validate: requireDrainable,
    spec: { isCordoned: true, isInMaintenance: true },
    arguments: { mode, max_parallel: String(max_parallel), notify_hours: String(notify_hours), ...parameters },
    deadlineAt: new Date(
      now.getTime() +
        notify_hours * HOUR_MILLISECONDS +
        (deadline_minutes ?? DRAIN_MINUTES_DEFAULT) * MINUTE_MILLISECONDS,
    ),
    detail: { mode, max_parallel: String(max_parallel), notify_hours: String(notify_hours) },
  }
}
const DRAIN_MINUTES_DEFAULT = 1_440

async function remove(parts: Parts, nodes: Nodes, call: Call<typeof routes.removeNode, Operator>): Promise<Answer> {
  const { id } = call.params
  await changeAsOperator(parts, call, {
    resource: { type: 'node', id },
    audit: { action: 'node.remove' },
    async write() {
      const node = await nodes.read(id)
      await requireNothingLeft(parts, node)
      const { uid, resourceVersion } = node.metadata
      await parts.store.delete(Node, { name: id }, defined({ uid, resourceVersion }))
    },
  })
  return { status: 204 }
}
