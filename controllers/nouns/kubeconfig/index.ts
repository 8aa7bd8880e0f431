/** The end of credentials in kubeconfigs. Each credential depends on a membership, its role, a user, a token or a
 *  support session. These are checked periodically, so that the code that takes rights away need not know about
 *  credentials. */
import {
  countKubeconfigsAwaiting,
  endLostKubeconfigs,
  forgetKubeconfigs,
  hasLostKubeconfigs,
  type KubeconfigGrant,
  type KubeconfigsAwaiting,
  listKubeconfigsToRemove,
  noteKubeconfigRemoved,
} from '../../../db/kubeconfig/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { controlPlanesIn } from '../../../integrations/control-planes/configuration.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import { DevCluster } from '../../../resources/dev-cluster/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { ENDED_KUBECONFIGS_ANNOTATION } from '../../../resources/kit/labels.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'

type KubeconfigParts = Pick<Parts, 'db' | 'clock' | 'random' | 'log' | 'controlPlanes' | 'store'> & {
  /** Called after each round with what is left to be removed. */
  readonly onKubeconfigsAwaiting?: ((awaiting: KubeconfigsAwaiting) => void) | undefined
}

/** Together with the ten seconds for which API servers cache a token: how long a credential outlives the right that it
 *  depends on. */
const ROUND_MILLISECONDS = 15_000
const ROUND_GRANTS = 500
/** The restore of a snapshot may have brought a service account back. */
const AGAIN_MILLISECONDS = 10 * 60_000
const FORGET_MILLISECONDS = 86_400_000

/** Ends and removes credentials until the signal aborts. Never throws. */
export async function runKubeconfigs(parts: KubeconfigParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'kubeconfigs not ended')
  while (!signal.aborted) {
    await outages.attempt(() => endKubeconfigsOnce(parts))
    await parts.clock.sleep(ROUND_MILLISECONDS, signal)
  }
}

/** One round. A control plane that does not answer blocks no other. Throws Unavailable when the database does not
 *  answer. */
export async function endKubeconfigsOnce(parts: KubeconfigParts): Promise<void> {
  const { db, clock, random } = parts
  const now = clock.now()
  if (await orUnavailable(hasLostKubeconfigs(db, now)))
    await orUnavailable(
      db.transaction().execute(async (tx) => {
        for (const grant of await endLostKubeconfigs(tx, now, ROUND_GRANTS))
          await appendAudit(tx, endOf(grant, newUuid(random)), { clock, random })
      }),
    )
  const again = new Date(now.getTime() - AGAIN_MILLISECONDS)
  const over = await orUnavailable(listKubeconfigsToRemove(db, { now, again, limit: ROUND_GRANTS }))
  await Promise.all(
    [...Map.groupBy(over, (each) => each.controlPlaneId).values()].map((grants) => removeAll(parts, grants)),
  )
  await orUnavailable(forgetKubeconfigs(db, new Date(now.getTime() - FORGET_MILLISECONDS)))
  parts.onKubeconfigsAwaiting?.(await orUnavailable(countKubeconfigsAwaiting(db, now)))
}

/** Removes the credentials of one control plane. The first failure ends it: the rest is for the next round. */
async function removeAll(parts: KubeconfigParts, grants: readonly KubeconfigGrant[]): Promise<void> {
  const { db, clock, log } = parts
  const [{ controlPlaneId, resourceType } = { controlPlaneId: '', resourceType: '' }] = grants
  try {
    const removing = resourceType === 'dev_cluster' ? removedByDevCluster(parts, grants) : removedByHost(parts, grants)
    for await (const id of removing) await orUnavailable(noteKubeconfigRemoved(db, id, clock.now()))
  } catch (error) {
    log.info('a credential of a kubeconfig is not removed yet', { control_plane_id: controlPlaneId, error })
  }
}

async function* removedByHost({ controlPlanes }: KubeconfigParts, grants: readonly KubeconfigGrant[]) {
  for (const { id, clusterRole: role, region, controlPlaneId } of grants) {
    const hosted = controlPlanesIn(controlPlanes ?? { obstacle: 'there is none' }, region)
    if ('obstacle' in hosted) throw new Error(hosted.obstacle)
    await hosted.control.removePerson(controlPlaneId, { id, role })
    yield id
  }
}

/** The controller of a dev cluster passes its server the list of ended credentials. The annotation wakes it, once for
 *  the same list; credentials that the server no longer has are removed. */
async function* removedByDevCluster({ store }: KubeconfigParts, grants: readonly KubeconfigGrant[]) {
  const [{ accountId, resourceId, controlPlaneId } = { accountId: '', resourceId: '', controlPlaneId: '' }] = grants
  const key = { namespace: accountNamespace(accountId), name: resourceId }
  const found = await store.get(DevCluster, key)
  if (found === undefined) return
  // Another cluster of the same name has none of the credentials.
  const admins = found.metadata.uid === controlPlaneId ? (found.status?.admins ?? []) : []
  const has = new Set(admins.map(({ uid }) => uid))
  const [there, orphans] = [grants.filter(({ id }) => has.has(id)), grants.filter(({ id }) => !has.has(id))]
  const endedIds = there.map(({ id }) => id).join()
  if (there.length > 0 && found.metadata.annotations?.[ENDED_KUBECONFIGS_ANNOTATION] !== endedIds)
    await store.patch(DevCluster, key, { metadata: { annotations: { [ENDED_KUBECONFIGS_ANNOTATION]: endedIds } } })
  for (const { id } of orphans) yield id
}

const endOf = ({ id, accountId, resourceType, resourceId, userId, tokenId }: KubeconfigGrant, requestId: string) => ({
  account_id: accountId,
  actor_email: 'system:kubeconfigs',
  actor_kind: 'system' as const,
  user_id: null,
  staff_id: null,
  token_id: null,
  token_name: null,
  action: `${resourceType}.kubeconfig_ended`,
  resource_type: resourceType,
  resource_id: resourceId,
  detail: { credential_id: id, user_id: userId, ...(tokenId === null ? {} : { token_id: tokenId }) },
  outcome: 'success' as const,
  source_ip: '',
  user_agent: '',
  request_id: requestId,
  changes: [],
})
