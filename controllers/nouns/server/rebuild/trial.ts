/** A rebuild on trial: the machine of a database gets a root disk of a newer image, and keeps the old one until it has
 *  become healthy. If it does not, the old disk comes back. The decision to go back is written to the operation first,
 *  so that after a crash the next process continues in the same direction. */
import { IMAGE_VERSION_ARGUMENT } from '../../../../domain/managed-machine/rules.ts'
import { sentence } from '../../../../kit/sys/sentence.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { present } from '../../../kit/operation/decision.ts'
import type { Decision, OperationInput, Rule } from '../decision.ts'
import { bootStorageName, ensureInstance, powerOf, storageKey } from '../drafts.ts'
import type { InstanceObject, Observed } from '../observed.ts'
import { hasEnded, hasObservedSpec, hasStarted, inProgress, running, stopOf } from '../power/index.ts'

/** The operation's argument with the reason for going back; absent otherwise. */
const GONE_BACK_ARGUMENT = 'gone_back'
const REASON_CHARACTERS_MAXIMUM = 500
/** Without KVM, on a busy host, a guest may need this long until it answers. */
const ANSWER_MILLISECONDS = 20 * 60_000

/** The new boot storage has the name of the operation. */
export const hasNewDisk = ({ server, operation }: OperationInput): boolean => bootStorageName(server) === operation.id

export const whileStopped = (step: NonNullable<Decision['step']>, rest: Partial<Decision>): Decision => ({
  state: 'stopped',
  step,
  ...rest,
})

export const isTrial = ({ operation }: Pick<OperationInput, 'operation'>): boolean =>
  operation.arguments?.[IMAGE_VERSION_ARGUMENT] !== undefined

const reasonOf = ({ operation }: OperationInput): string | undefined => operation.arguments?.[GONE_BACK_ARGUMENT]
export const hasGoneBack = (input: OperationInput): boolean => reasonOf(input) !== undefined

/** The old disk exists and is not being deleted. */
export const canGoBack = ({ observed: { oldStorage } }: OperationInput): boolean =>
  oldStorage !== undefined && oldStorage.metadata.deletionTimestamp === undefined

/** The same rule for a running guest. */
export const whileRunning =
  (rule: Rule): Rule =>
  (input) => {
    const decision = rule(input)
    return decision && { ...decision, state: 'started', step: 'started' }
  }

/** Makes the operation go back from now on. */
export const goBack = (input: OperationInput, reason: string): Decision => ({
  ...inProgress(input, 'started'),
  actions: [
    {
      do: 'change',
      patch: {
        spec: { operation: { arguments: { [GONE_BACK_ARGUMENT]: reason.slice(0, REASON_CHARACTERS_MAXIMUM) } } },
      },
    },
  ],
  waitFor: 'the old boot storage to come back',
  waitSeconds: 0,
})

const hasFailed = (instance: InstanceObject | undefined): boolean =>
  instance?.status?.state === 'error' && hasObservedSpec(instance)

export const bootFailedOnTrial: Rule = (input) => {
  const { instance } = input.observed
  return hasFailed(instance) && canGoBack(input)
    ? goBack(input, instance?.status?.detail ?? 'The guest could not be started.')
    : undefined
}

/** The guest that runs now has reported that it is healthy. Reports of earlier guests do not count. */
function isHealthy({ machine, instance }: Pick<Observed, 'machine' | 'instance'>): boolean {
  const startedAt = Date.parse(instance?.status?.startedAt ?? '')
  return machine?.isHealthy === true && Date.parse(machine.reportedAt ?? '') > startedAt
}

/** The trial succeeds on the report of the machine, never because its guest has started. */
export const machineAnswers: Rule = (input) => {
  const { instance, machine } = input.observed
  if (!canGoBack(input)) return undefined
  if (instance === undefined || !hasStarted(instance))
    return running(input) ?? { ...inProgress(input, 'started'), waitFor: 'the instance to be there' }
  if (isHealthy(input.observed)) return undefined
  const detail = machine?.detail ?? ''
  const waitFor = `its machine to be well with the new image${detail === '' ? '' : `: ${detail}`}`
  return { ...inProgress(input, 'started'), waitFor }
}

/** A disk is never removed from a running guest. */
export const newSystemStopped: Rule = (input) => {
  const { server, operation, observed } = input
  const { instance, claims, storage } = observed
  if (!hasNewDisk(input) || instance === undefined || claims === undefined || storage === undefined) return undefined
  if (instance.spec.power === 'stopped' && hasEnded(instance)) return undefined
  const stop = { ...stopOf(operation), id: `${operation.id}-back` }
  const power = { ...powerOf(instance), power: 'stopped', stop } as const
  return {
    state: 'stopping',
    step: 'started',
    waitFor: 'the guest with the new image to end',
    actions: instance.spec.power === 'stopped' ? [] : present(ensureInstance(server, observed, claims, storage, power)),
  }
}

export const oldDiskBack: Rule = (input) => {
  const { server, operation } = input
  if (!hasNewDisk(input)) return undefined
  const bootStorageId = operation.arguments?.['previous_boot_storage'] ?? server.metadata.name
  return whileStopped('started', {
    actions: [{ do: 'change', patch: { spec: { bootStorageId } } }],
    waitFor: 'the server to take its old boot storage',
    waitSeconds: 0,
  })
}

export const newDiskRemoved: Rule = (input) => {
  const { server, operation, observed } = input
  if (observed.newStorage === undefined || observed.newStorage.metadata.deletionTimestamp !== undefined)
    return undefined
  return {
    ...inProgress(input, 'started'),
    actions: [{ do: 'remove', type: Storage, key: { ...storageKey(server), name: operation.id } }],
    waitFor: 'the new boot storage to go',
    waitSeconds: 0,
  }
}

/** The operation fails once the machine is as it was before; if the machine does not become healthy again, that is left
 *  to its owner. */
export const runsAsBefore: Rule = (input) => {
  const { instance } = input.observed
  const reason = reasonOf(input) ?? ''
  if (hasFailed(instance)) {
    const detail = instance?.status?.detail ?? ''
    return { state: 'error', detail, step: 'started', outcome: 'failed', error: `${sentence(reason)} ${detail}`.trim() }
  }
  const decision = running(input)
  if (decision?.outcome === undefined)
    return decision ?? { ...inProgress(input, 'started'), waitFor: 'the guest to start' }
  const milliseconds = input.now.getTime() - Date.parse(instance?.status?.startedAt ?? input.now.toISOString())
  if (!isHealthy(input.observed) && milliseconds < ANSWER_MILLISECONDS)
    return { ...inProgress(input, 'started'), waitFor: 'its machine to be well again' }
  return { ...decision, outcome: 'failed', error: `${sentence(reason)} The server has its boot storage as before.` }
}
