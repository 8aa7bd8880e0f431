/** The node controller: what wakes it, how it hears heartbeats, and its effects. What it decides is `plan.ts`. */
import { forgetNode, mirrorNode } from '../../db/nodes.ts'
import { findCandidate } from '../../db/placement.ts'
import type { Candidate } from '../../domain/placement.ts'
import { type KubeObject, Lease, type LeaseSpec, Namespace, Secret } from '../../kit/kube/object.ts'
import { isAlreadyExists } from '../../kit/kube/store.ts'
import { type Effect, type Reconciler, watch } from '../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newBase62 } from '../../kit/sys/random.ts'
import { AGENT_ACCESS_SECRET_NAME, HEARTBEAT_LEASE_NAME, NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../resources/instance.ts'
import { NODE_FINALIZER } from '../../resources/labels.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../resources/platform.ts'
import { asked } from '../database.ts'
import type { Parts } from '../parts.ts'
import { type Heartbeat, type NodeObject, plan, type Seen } from './plan.ts'

const TOKEN_LENGTH = 43

export function nodeReconciler(parts: Parts): Reconciler<NodeSpec, NodeStatus, Seen> {
  const listen = heartbeats(parts.clock)
  const nodeOf = ({ metadata: { namespace = '' } }: KubeObject) => (namespace.startsWith('node-') ? [{ name: namespace.slice('node-'.length) }] : [])
  return {
    name: 'node', type: Node, finalizer: NODE_FINALIZER,
    watches: [
      watch(NodeReport, nodeOf),
      watch(Lease, nodeOf),
      watch(Namespace, ({ metadata }) => nodeOf({ metadata: { namespace: metadata.name } } as KubeObject)),
    ],
    observe: (node) => observe(parts, listen, node),
    plan,
    effects: { mirror: mirrorEffect(parts), forget: forgetEffect(parts), grant: grantEffect(parts) },
  }
}

/** Hears renewals by seeing them change: clocks of nodes are never compared with ours, and a controller that has just started
 *  gives every node its whole time. */
function heartbeats(clock: Clock): (node: string, lease: KubeObject<LeaseSpec> | undefined) => Heartbeat | undefined {
  const heard = new Map<string, { readonly version: string; readonly at: number }>()
  return (node, lease) => {
    if (lease === undefined) return void heard.delete(node)
    const version = lease.metadata.resourceVersion ?? ''
    const now = clock.monotonicMilliseconds()
    if (heard.get(node)?.version !== version) heard.set(node, { version, at: now })
    return { renewedAt: lease.spec.renewTime, silentSeconds: (now - (heard.get(node)?.at ?? now)) / 1_000 }
  }
}

async function observe({ caches, store, db }: Parts, listen: ReturnType<typeof heartbeats>, { metadata: { name } }: NodeObject): Promise<Seen> {
  const namespace = nodeNamespace(name)
  const hasNamespace = caches.of(Namespace).get({ name: namespace }) !== undefined
  return {
    hasNamespace,
    hasAccess: hasNamespace && (await store.get(Secret, { namespace, name: AGENT_ACCESS_SECRET_NAME })) !== undefined,
    report: caches.of(NodeReport).get({ namespace, name: NODE_REPORT_NAME })?.spec,
    heartbeat: listen(name, caches.of(Lease).get({ namespace, name: HEARTBEAT_LEASE_NAME })),
    mirror: await asked(findCandidate(db, name)),
  }
}

const mirrorEffect = ({ db }: Parts): Effect => async (input) => {
  await asked(mirrorNode(db, input as unknown as Omit<Candidate, 'used'>)) // the plan of this folder writes it
  return undefined
}

const forgetEffect = ({ db }: Parts): Effect => async (input) => {
  await asked(forgetNode(db, String(input['node'])))
  return undefined
}

/** What the API server says to the agent to be let in. Made once; never in status or spec. */
const grantEffect = ({ store, random }: Parts): Effect => async (input) => {
  const metadata = { namespace: String(input['namespace']), name: AGENT_ACCESS_SECRET_NAME }
  const data = { token: Buffer.from(newBase62(random, TOKEN_LENGTH)).toString('base64') }
  try {
    await store.create(Secret, { metadata, spec: undefined, data })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
  return undefined
}
