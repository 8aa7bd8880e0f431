/** The effects of the node controller outside of nodes, by name. */
import { forgetNode, mirrorNode } from '../../../db/placement/index.ts'
import { Secret } from '../../../kit/kube/object.ts'
import { isAlreadyExists } from '../../../kit/kube/store.ts'
import { newBase62 } from '../../../kit/sys/random.ts'
import { AGENT_ACCESS_SECRET_NAME, NODE_REPORT_NAME, NodeReport } from '../../../resources/instance/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../../resources/node/index.ts'
import { staffAuditEffect } from '../../kit/audit.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectOn, EffectsOn } from '../../kit/effects.ts'
import { removeAgentFinalizer } from '../../fencing/agent-finalizer.ts'
import {
  type OpenPowerControl,
  type OpenStorageAccess,
  powerControlWith,
  powerEffect,
  storageAccessWith,
  storageEffect,
} from '../../fencing/effects.ts'
import { requireNewest } from '../../kit/newest.ts'
import type { Parts } from '../../kit/parts.ts'
import { serverOperationEffect, storageOperationEffect } from '../../kit/platform-operation.ts'
import type { NodeEffects } from './actions.ts'
import { guestsOn } from './observe.ts'

/** How the management controllers of hosts and their shared storage are reached; when absent, over the network with the
 *  credentials in their Secrets. */
export interface FencingAccess {
  readonly openPowerControl?: OpenPowerControl
  readonly openStorageAccess?: OpenStorageAccess
}

type Effect<Name extends keyof NodeEffects> = EffectOn<NodeEffects[Name], NodeSpec, NodeStatus>

const TOKEN_LENGTH = 43

export const nodeEffects = (parts: Parts & FencingAccess): EffectsOn<NodeEffects, NodeSpec, NodeStatus> => ({
  mirror: mirrorEffect(parts),
  forget: forgetEffect(parts),
  grant: grantEffect(parts),
  audit: staffAuditEffect(parts, 'node'),
  order: serverOperationEffect(parts),
  orderStorage: storageOperationEffect(parts),
  power: powerEffect(parts.openPowerControl ?? powerControlWith(parts), parts.clock),
  storage: storageEffect(parts.openStorageAccess ?? storageAccessWith(parts), parts),
  vacate: vacateEffect(parts),
})

/** Otherwise placement would give servers room on a node that is deleted meanwhile. */
const mirrorEffect =
  ({ store, db, caches }: Parts): Effect<'mirror'> =>
  async (mirror, node) => {
    await requireNewest(store, Node, node)
    await orUnavailable(mirrorNode(db, mirror, guestsOn(caches, mirror.node)))
    return undefined
  }

const forgetEffect =
  ({ db }: Parts): Effect<'forget'> =>
  async ({ node }) => {
    await orUnavailable(forgetNode(db, node))
    return undefined
  }

/** The token with which the API server authenticates to the agent. Created once; never in status or spec. */
const grantEffect =
  ({ store, random }: Parts): Effect<'grant'> =>
  async ({ namespace }) => {
    const metadata = { namespace, name: AGENT_ACCESS_SECRET_NAME }
    const data = { token: Buffer.from(newBase62(random, TOKEN_LENGTH)).toString('base64') }
    try {
      await store.create(Secret, { metadata, spec: undefined, data })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
    return undefined
  }

/** The deletion was written before the report is read here, and an agent that returns writes its report before it reads
 *  its desired state. So either the report shows its new boot, and the agent removes the objects as usual, or the agent
 *  will find the deletion. */
const vacateEffect =
  ({ store }: Parts): Effect<'vacate'> =>
  async ({ namespace, bootId, blockedDeletions }) => {
    const report = await store.get(NodeReport, { namespace, name: NODE_REPORT_NAME })
    if ((report?.spec.bootId ?? '') !== bootId) return undefined
    for (const { kind, name } of blockedDeletions) await removeAgentFinalizer(store, kind, { namespace, name })
    return undefined
  }
