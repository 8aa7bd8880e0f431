/** The health of the platform's own control plane. Its Kubernetes and its PostgreSQL are administered by others, or are
 *  on one machine: nothing here resizes them. */
import * as routes from '../../../resources/operator/index.ts'
import { Unavailable, notImplemented } from '../../../domain/problem.ts'
import { readReplication } from '../../../db/control-plane/index.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { ApiError } from '../../../kit/kube/store.ts'
import { hostName } from '../../../kit/sys/process.ts'
import { VERSION } from '../../../domain/version.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { noun } from '../../kit/noun.ts'

const controlPlaneEndpoints = (parts: Parts): readonly Endpoint[] => [
  operatorEndpoint(routes.getControlPlane, async () => {
    const [hasQuorum, { primary, replicas, lagSeconds }] = await Promise.all([
      answersReads(parts),
      readReplication(parts.db),
    ])
    return {
      status: 200,
      body: {
        members: [
          { node_id: hostName(), role: 'apiserver', is_healthy: true, version: VERSION },
          { node_id: 'kubernetes', role: 'kubernetes', is_healthy: hasQuorum, version: null },
        ],
        quorum: hasQuorum,
        database: { primary, replicas, lag_seconds: lagSeconds },
        version: VERSION,
        conditions: [writesJudged(parts)],
      },
    }
  }),
  operatorEndpoint(routes.expandControlPlane, () => refuse('larger')),
  operatorEndpoint(routes.shrinkControlPlane, () => refuse('smaller')),
]

const writesJudged = ({ isWebhookCalled }: Parts) =>
  isWebhookCalled?.() === true
    ? {
        type: 'WritesJudged',
        status: 'True',
        reason: 'WebhookServed',
        message: 'The admission webhook judges what people write with kubectl before it is stored.',
      }
    : {
        type: 'WritesJudged',
        status: 'False',
        reason: 'NoWebhook',
        message:
          'Kubernetes stores what people write with kubectl without asking the platform: quotas, names, protection ' +
          'and what else the API refuses are judged only afterwards. What is not allowed is not carried out, and the ' +
          'object says so in its conditions.',
      }

/** A single object is read from the quorum; a list may come from a cache. */
async function answersReads({ store }: Parts): Promise<boolean> {
  try {
    await store.get(Zone, { name: 'quorum' })
    return true
  } catch (error) {
    if (error instanceof ApiError || error instanceof Unavailable) return false
    throw error
  }
}

async function refuse(how: 'larger' | 'smaller'): Promise<never> {
  throw notImplemented(
    `This platform does not administer the Kubernetes and the PostgreSQL that it runs on: make them ${how} with the ` +
      'tools of those who do. Replicas of the API server and of the controllers are set in their chart.',
  )
}

export const controlPlane = noun<Parts>({ name: 'control_plane', endpoints: controlPlaneEndpoints })
