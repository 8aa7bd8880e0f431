/** The effects of registration: what is sent to the organisation platform about a cluster, and how its status shows the
 *  answer. */
import { nextAttemptAt } from '../../../domain/kubernetes-cluster/platform-registration.ts'
import { Problem, Unavailable } from '../../../domain/problem.ts'
import { findOrganisationOf } from '../../../db/account/index.ts'
import type { ClusterClaim } from '../../../db/kubernetes-cluster/index.ts'
import type { ControlPlanes } from '../../../integrations/control-planes/control.ts'
import { type OrganisationPlatform, PlatformRefusal } from '../../../integrations/organisation-platform/platform.ts'
import type { EffectReport } from '../../../kit/reconcile/reconciler.ts'
import type { KubernetesClusterStatus } from '../../../resources/kubernetes-cluster/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import type { ClusterEffects, ClusterObject } from './observed.ts'

type Registration = NonNullable<KubernetesClusterStatus['platform']>

interface ClusterHost {
  readonly claim: ClusterClaim
  readonly control: ControlPlanes
}

/** A merge patch keeps members: those that a registration lacks are set to undefined. */
const reported = (registration: Registration): EffectReport => ({
  status: {
    platform: {
      organisationId: undefined,
      clusterId: undefined,
      url: undefined,
      operationId: undefined,
      nextAttemptAt: undefined,
      registeredAt: undefined,
      ...registration,
    },
  },
})

function requirePlatform({ organisationPlatform }: Parts): OrganisationPlatform {
  if (organisationPlatform === undefined) throw new Unavailable('the organisation platform')
  return organisationPlatform
}

/** A platform that does not answer is tried again; a refusal is final until the registration is requested again. */
export async function registerCluster(
  parts: Parts,
  { accountId, clusterId, operationId }: ClusterEffects['register'],
  { status }: ClusterObject,
  { claim, control }: ClusterHost,
): Promise<EffectReport> {
  const platform = requirePlatform(parts)
  const organisationId = await orUnavailable(findOrganisationOf(parts.db, accountId))
  const { endpoint, certificateAuthority, kubernetesVersion = '', addons = [], platform: before } = status ?? {}
  if (organisationId === undefined || endpoint === undefined || certificateAuthority === undefined) return {}
  const of = operationId === undefined ? {} : { operationId }
  try {
    const { cluster_id, url, agent } = await platform.register({
      id: clusterId,
      organisationId,
      name: claim.name,
      region: claim.region,
      version: kubernetesVersion,
      endpoint,
      certificateAuthority,
      stacks: addons.map(({ name, version }) => ({ name, version })),
    })
    await control.setAgent(claim.controlPlaneId, agent)
    const isSame = before?.state === 'registered' && before.organisationId === organisationId
    const registeredAt = (isSame ? before.registeredAt : undefined) ?? parts.clock.now().toISOString()
    const known = { organisationId, clusterId: cluster_id, url, registeredAt }
    return reported({ state: 'registered', ...known, reason: '', attempts: 0, ...of })
  } catch (error) {
    if (error instanceof PlatformRefusal || error instanceof Problem)
      return reported({ state: 'failed', reason: error.message, attempts: 0, ...of })
    return reported({ state: 'pending', organisationId, ...triedAgain(parts, before, error), ...of })
  }
}

/** A cluster that the platform does not have counts as deregistered. */
export async function deregisterCluster(
  parts: Parts,
  { clusterId, operationId, state }: ClusterEffects['deregister'],
  { metadata, status }: ClusterObject,
  { claim, control }: ClusterHost,
): Promise<EffectReport> {
  const platform = requirePlatform(parts)
  const of = operationId === undefined ? {} : { operationId }
  try {
    await platform.deregister(clusterId)
    // The agent of a cluster that is being deleted is deleted with it.
    if (metadata.deletionTimestamp === undefined) await control.setAgent(claim.controlPlaneId, [])
    return reported({ state, reason: LEFT[state], attempts: 0, ...of })
  } catch (error) {
    const before = status?.platform ?? { state: 'registered', reason: '', attempts: 0 }
    return reported({ ...before, ...triedAgain(parts, before, error), ...of })
  }
}

const LEFT = {
  deregistered: 'It was taken out of the platform.',
  unlinked: 'The account no longer has an organisation of the platform.',
} as const

/** Throws an error that is neither an outage nor a refusal of the platform. */
function triedAgain(
  { clock }: Parts,
  before: Registration | undefined,
  error: unknown,
): Pick<Registration, 'reason' | 'attempts' | 'nextAttemptAt'> {
  if (!(error instanceof Unavailable) && !(error instanceof PlatformRefusal)) throw error
  const attempts = (before?.attempts ?? 0) + 1
  const next = nextAttemptAt(attempts, clock.now()).toISOString()
  const reason = error instanceof PlatformRefusal ? error.message : `Not reached: ${error.message}`
  return { reason, attempts, nextAttemptAt: next }
}
