/** Registration of a cluster in the organisation platform of the account: when it is due, and how its operations end.
 *  It never changes the state of the cluster. Requests that the platform did not answer are retried without an
 *  operation, so that nothing else has to wait. Pure. */
import { defined } from '../../../domain/defined.ts'
import { isDeregistrationGivenUp } from '../../../domain/kubernetes-cluster/platform-registration.ts'
import type { KubernetesClusterStatus } from '../../../resources/kubernetes-cluster/index.ts'
import { SYSTEM_ACTOR, type OperationStart } from '../../kit/operation/direct-edit.ts'
import { failed } from '../../kit/synced.ts'
import {
  type ClusterEffect,
  type ClusterObject,
  type Decision,
  idOf,
  type Input,
  type Observed,
  type OperationInput,
} from './observed.ts'

type Registration = NonNullable<KubernetesClusterStatus['platform']>
type Rule = (input: OperationInput) => Decision | undefined

const NOT_CONFIGURED = 'This cloud is not connected to an organisation platform.'
const UNLINKED = 'The account has no organisation of the platform: its owner links one first.'
const NOT_ASKED_FOR = 'It was taken out of the platform.'
const REGISTER = 'kubernetes_cluster.platform_register'
const DEREGISTER = 'kubernetes_cluster.platform_deregister'

const isDue = ({ nextAttemptAt }: Registration, now: Date): boolean =>
  nextAttemptAt !== undefined && Date.parse(nextAttemptAt) <= now.getTime()

/** The platform has it, or may have it: the entry is created before an answer can be lost, or the agent can fail. */
const mayBeThere = (registration: Registration | undefined): registration is Registration =>
  registration !== undefined && ['registered', 'pending', 'failed'].includes(registration.state)

/** The platform may have it, and must not. */
const mustLeave = ({ spec, status }: ClusterObject, { platform }: Observed): boolean =>
  mayBeThere(status?.platform) && (!spec.registersInPlatform || platform.organisationId === undefined)

/** The registration that the platform itself requires, or that an edit requests. */
export function dueRegistration(
  root: ClusterObject,
  observed: Observed,
): (OperationStart & { readonly actor?: string }) | undefined {
  const { isConfigured, organisationId } = observed.platform
  const { spec, status: { platform, isSimulated, endpoint } = {} } = root
  if (!isConfigured || isSimulated === true || endpoint === undefined) return undefined
  if (mustLeave(root, observed)) {
    // A failed attempt is retried without an operation.
    if (platform?.nextAttemptAt !== undefined) return undefined
    return { kind: DEREGISTER, ...(spec.registersInPlatform ? { actor: SYSTEM_ACTOR } : {}) }
  }
  if (!spec.registersInPlatform || organisationId === undefined) return undefined
  if (platform?.state === 'deregistered') return { kind: REGISTER }
  const isElsewhere = platform?.state === 'registered' && platform.organisationId !== organisationId
  return platform === undefined || platform.state === 'unlinked' || isElsewhere
    ? { kind: REGISTER, actor: SYSTEM_ACTOR }
    : undefined
}

const isTried = ({ root, operation }: OperationInput): boolean => root.status?.platform?.operationId === operation.id

const asking = (step: NonNullable<Decision['step']>, action: ClusterEffect): Decision => ({
  health: 'reconciling',
  reason: 'Registering',
  step,
  actions: [action],
  waitFor: 'the organisation platform',
  waitSeconds: 0,
})

const succeeded = (step: NonNullable<Decision['step']>): Decision => ({
  health: 'ready',
  reason: 'Running',
  step,
  outcome: 'succeeded',
})

const refused = (step: NonNullable<Decision['step']>, reason: string): Decision => ({
  ...failed(step, reason),
  health: 'ready',
  reason: 'Running',
})

const registrable: Rule = ({ operation, observed: { platform } }) => {
  if (!platform.isConfigured) return refused('registered', NOT_CONFIGURED)
  if (platform.organisationId !== undefined) return undefined
  const unlinked: Registration = { state: 'unlinked', reason: UNLINKED, attempts: 0, operationId: operation.id }
  return { ...refused('registered', UNLINKED), status: { platform: unlinked } }
}

const running: Rule = ({ root: { status } }) => {
  if (status?.isSimulated === true) return refused('registered', 'A simulated cluster is not registered anywhere.')
  return status?.endpoint === undefined || status.certificateAuthority === undefined
    ? refused('registered', 'The cluster has no endpoint yet.')
    : undefined
}

const registered: Rule = (input) => {
  const { operation, root } = input
  if (!isTried(input))
    return asking('registered', {
      do: 'effect',
      name: 'register',
      input: { ...idOf(input), operationId: operation.id },
    })
  const { state, reason = '' } = root.status?.platform ?? {}
  return state === 'registered' ? succeeded('registered') : refused('registered', reason)
}

const deregistered: Rule = (input) => {
  const { operation, root, observed } = input
  if (!observed.platform.isConfigured) return refused('deregistered', NOT_CONFIGURED)
  const state = root.spec.registersInPlatform ? 'unlinked' : 'deregistered'
  if (!isTried(input))
    return asking('deregistered', {
      do: 'effect',
      name: 'deregister',
      input: { ...idOf(input), operationId: operation.id, state },
    })
  const platform = root.status?.platform
  return mayBeThere(platform) ? refused('deregistered', platform.reason) : succeeded('deregistered')
}

export const registrationRules: readonly Rule[] = [registrable, running, registered]
export const deregistrationRules: readonly Rule[] = [deregistered]

/** Retries requests that the platform did not answer. */
export function registrationUpkeep(input: Input): readonly ClusterEffect[] {
  const { root, observed, now } = input
  const platform = root.status?.platform
  if (!observed.platform.isConfigured || platform === undefined || !isDue(platform, now)) return []
  const id = { ...idOf(input), operationId: platform.operationId }
  if (mustLeave(root, observed)) {
    const state = root.spec.registersInPlatform ? 'unlinked' : 'deregistered'
    return [{ do: 'effect', name: 'deregister', input: { ...id, state } }]
  }
  return platform.state === 'pending' ? [{ do: 'effect', name: 'register', input: id }] : []
}

/** The status of a registration that was never tried, or is no longer requested. */
export function notedRegistration({ root, observed }: Input): Pick<KubernetesClusterStatus, 'platform'> {
  const { isConfigured, organisationId } = observed.platform
  const platform = root.status?.platform
  if (!isConfigured || mayBeThere(platform)) return {}
  const { state, reason } = root.spec.registersInPlatform
    ? ({ state: 'unlinked', reason: UNLINKED } as const)
    : ({ state: 'deregistered', reason: NOT_ASKED_FOR } as const)
  if (root.spec.registersInPlatform && organisationId !== undefined) return {}
  const operationId = root.status?.platform?.operationId
  return { platform: { state, reason, attempts: 0, ...defined({ operationId }) } }
}

/** The deletion of a cluster waits for its deregistration, for a limited time. */
export function leaving(input: Input): Pick<Decision, 'step' | 'actions' | 'message' | 'waitFor'> | undefined {
  const { root, observed, now } = input
  const platform = root.status?.platform
  if (!mayBeThere(platform) || !observed.platform.isConfigured) return undefined
  if (isDeregistrationGivenUp(root.metadata.deletionTimestamp, now)) return undefined
  const isWaiting = platform.nextAttemptAt !== undefined && !isDue(platform, now)
  const id = { ...idOf(input), operationId: platform.operationId, state: 'deregistered' } as const
  return {
    step: 'control_plane',
    message: platform.reason,
    waitFor: 'the organisation platform to release it',
    actions: isWaiting ? [] : [{ do: 'effect', name: 'deregister', input: id }],
  }
}
