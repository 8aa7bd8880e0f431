/** The flow of server.rebuild: a new boot storage is created beside the old one while the server is stopped, then the
 *  server boots from it and the old one is removed. Until the exchange the rebuild can be rolled back. */
import { UNMADE } from '../../../../domain/server/rules.ts'
import type { ServerAction } from '../actions.ts'
import { type Key, Secret } from '../../../../kit/kube/object.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import type { Decision, OperationInput, Rule } from '../decision.ts'
import { ensureInstance, ensureStorage, madeFor, powerOf, storageKey, userDataKey } from '../drafts.ts'
import { firstDecision, present } from '../../../kit/operation/decision.ts'
import {
  inProgress,
  hasEnded,
  hasObservedSpec,
  isLive,
  nextIncarnation,
  running,
  stopOf,
  storageEvents,
  userData,
  withPower,
} from '../power/index.ts'
import type { ServerObject } from '../observed.ts'
import {
  bootFailedOnTrial,
  canGoBack,
  goBack,
  hasGoneBack,
  hasNewDisk,
  isTrial,
  machineAnswers,
  newDiskRemoved,
  newSystemStopped,
  oldDiskBack,
  runsAsBefore,
  whileRunning,
  whileStopped,
} from './trial.ts'

export function rebuild(input: OperationInput): Decision {
  if (hasGoneBack(input))
    return firstDecision(input, [
      newSystemStopped,
      oldDiskBack,
      instanceUpdated,
      powerRestored,
      newDiskRemoved,
      runsAsBefore,
    ])
  const exchanged = [neverProvisioned, guestStopped, newDiskReady, diskExchanged, instanceUpdated]
  return firstDecision(input, [
    ...exchanged,
    ...(isTrial(input)
      ? [powerRestored, bootFailedOnTrial, machineAnswers, whileRunning(oldDiskRemoved)]
      : [oldDiskRemoved, powerRestored, bootFailed]),
    started,
  ])
}

const neverProvisioned: Rule = (input) => {
  const { claims, storage } = input.observed
  if (claims === undefined || (storage === undefined && !hasNewDisk(input)))
    return { state: 'error', detail: UNMADE, step: 'stopped', outcome: 'failed', error: UNMADE }
  return undefined
}

const guestStopped: Rule = (input) => {
  const {
    observed: { instance, claims, storage },
    server,
    operation,
  } = input
  if (
    hasNewDisk(input) ||
    instance === undefined ||
    claims === undefined ||
    storage === undefined ||
    (instance.spec.power === 'stopped' && hasEnded(instance))
  )
    return undefined
  const decision: Decision = { state: 'stopping', step: 'stopped', waitFor: 'the guest to end' }
  if (instance.spec.power === 'stopped') return decision
  return {
    ...decision,
    actions: present(
      ensureInstance(server, input.observed, claims, storage, {
        ...powerOf(instance),
        power: 'stopped',
        stop: stopOf(operation),
      }),
    ),
  }
}

const newDiskReady: Rule = (input) => {
  const { server, observed, operation } = input
  const { claims, newStorage } = observed
  if (hasNewDisk(input) || claims === undefined) return undefined
  const waiting = whileStopped('storage', { waitFor: 'the new boot storage' })
  if (server.spec.userDataSecretName !== undefined && observed.userData === undefined && !observed.hasUserDataCopy)
    return { ...waiting, waitFor: `the Secret ${server.spec.userDataSecretName}` }
  if (newStorage === undefined) return { ...waiting, actions: [ensureStorage(server, observed, claims, operation.id)] }
  if (newStorage.status?.state === 'error')
    return rebuildFailed(input, 'storage', newStorage.status.stateDetail ?? 'The new boot storage could not be made.')
  return newStorage.status?.state === 'online' ? undefined : { ...waiting, ...storageEvents(newStorage) }
}

/** The point of no return. */
const diskExchanged: Rule = (input) => {
  const { operation } = input
  if (hasNewDisk(input)) return undefined
  return whileStopped('instance', {
    actions: [{ do: 'change', patch: { spec: { bootStorageId: operation.id } } }],
    waitFor: 'the server to take the new boot storage',
    waitSeconds: 0,
  })
}

/** Gives the instance the new disk and its user data. */
const instanceUpdated: Rule = (input) => {
  const { server, observed } = input
  const { claims, storage, instance } = observed
  if (claims === undefined || storage === undefined)
    return whileStopped('instance', { waitFor: 'the new boot storage to be seen', waitSeconds: 1 })
  if (instance === undefined) return undefined
  if (instance.metadata.deletionTimestamp !== undefined)
    return whileStopped('instance', { waitFor: 'the instance before to be gone' })
  const actions = [
    ...userData(server, observed),
    ...present(ensureInstance(server, observed, claims, storage, powerOf(instance))),
  ]
  return actions.length === 0
    ? undefined
    : whileStopped('instance', { actions, waitFor: 'the instance to have the new disk', waitSeconds: 1 })
}

/** Removes what only the old system needed; the disk is deleted once its host has released it. */
const oldDiskRemoved: Rule = (input) => {
  const {
    server,
    observed: { oldStorage, obsoleteSecrets = [] },
  } = input
  const actions: readonly ServerAction[] = [
    ...obsoleteSecrets.map((key) => ({ do: 'remove', type: Secret, key }) as const),
    ...(oldStorage === undefined || oldStorage.metadata.deletionTimestamp !== undefined
      ? []
      : [{ do: 'remove', type: Storage, key: { ...storageKey(server), name: oldStorage.metadata.name } } as const]),
  ]
  return actions.length === 0
    ? undefined
    : whileStopped('instance', { actions, waitFor: 'the old boot storage to go', waitSeconds: 0 })
}

/** Starts a server that ran before. */
const powerRestored: Rule = (input) => {
  const {
    server,
    operation,
    observed: { instance },
  } = input
  if (server.spec.desiredPower === 'stopped')
    return instance === undefined || hasObservedSpec(instance)
      ? whileStopped('started', { outcome: 'succeeded' })
      : whileStopped('started', { waitFor: 'the host to take over the new disk' })
  if (instance !== undefined && madeFor(instance) === operation.id && instance.spec.power === 'running')
    return undefined
  return withPower(input, 'started', {
    power: 'running',
    incarnation: nextIncarnation(input),
    operationId: operation.id,
  })
}

const bootFailed: Rule = (input) => {
  const { instance } = input.observed
  return instance?.status?.state === 'error' && hasObservedSpec(instance)
    ? rebuildFailed(input, 'started', instance.status.detail ?? 'The guest could not be started.')
    : undefined
}

const started: Rule = (input) => running(input) ?? { ...inProgress(input, 'started'), waitFor: 'the guest to start' }

/** A trial that has not ended in time goes back to the old disk. Going back has no deadline, as long as the host is
 *  reachable. Once the old disk is being deleted, there is nothing to go back to. */
export function rebuildOverdue(input: OperationInput, decision: Decision, error: string): Decision {
  if (!isTrial(input)) return rebuildFailed(input, decision.step ?? 'started', error)
  if (!input.observed.isHostReachable) return { ...decision, outcome: 'failed', error }
  if (hasGoneBack(input) || (hasNewDisk(input) && !canGoBack(input))) return decision
  return hasNewDisk(input) ? goBack(input, error) : rebuildFailed(input, decision.step ?? 'storage', error)
}

/** Before the exchange the new disk is removed and the server is restored: one that ran is started again. After it the
 *  server keeps the new disk and stays stopped. */
function rebuildFailed(input: OperationInput, step: NonNullable<Decision['step']>, error: string): Decision {
  const {
    server,
    observed: { claims, storage, instance, newStorage },
    operation,
  } = input
  const args = operation.arguments ?? {}
  if (hasNewDisk(input)) {
    const stop =
      instance === undefined || claims === undefined || storage === undefined || isLive(instance)
        ? []
        : present(ensureInstance(server, input.observed, claims, storage, { ...powerOf(instance), power: 'stopped' }))
    return whileStopped(step, {
      outcome: 'failed',
      error: `${error} The boot storage is the new one, the old one was deleted.`,
      actions: [{ do: 'change', patch: { spec: { desiredPower: 'stopped' } } }, ...stop],
    })
  }
  const before = (name: string): string | null => args[name] ?? null
  const secretName = server.spec.userDataSecretName
  return whileStopped(step, {
    outcome: 'failed',
    error: `${error} The server has its boot storage as before.`,
    actions: [
      ...(newStorage === undefined
        ? []
        : [{ do: 'remove', type: Storage, key: { ...storageKey(server), name: operation.id } } as const]),
      ...(secretName !== undefined &&
      secretName !== before('previous_user_data_secret') &&
      isManagedUserData(server.metadata.name, secretName)
        ? [{ do: 'remove', type: Secret, key: { ...storageKey(server), name: secretName } } as const]
        : []),
      {
        do: 'change',
        patch: {
          spec: {
            template: before('previous_template'),
            customImageId: before('previous_custom_image'),
            userDataSecretName: before('previous_user_data_secret'),
            initScriptId: before('previous_init_script'),
          },
        },
      },
    ],
  })
}

/** The Secrets of the previous user data that may be removed. */
export function obsoleteUserData(server: ServerObject, node: string | undefined): readonly Key[] {
  const {
    spec: { operation, userDataSecretName: current },
    metadata: { name },
  } = server
  const previous = operation?.arguments?.['previous_user_data_secret']
  return [
    ...(previous !== undefined && previous !== current && isManagedUserData(name, previous)
      ? [{ ...storageKey(server), name: previous }]
      : []),
    ...(current === undefined && node !== undefined ? [userDataKey(server, node)] : []),
  ]
}

/** Whether the API server created the Secret from a request's user data. Secrets of other names belong to their
 *  creators. */
export const isManagedUserData = (serverId: string, secretName: string): boolean =>
  secretName.startsWith(`${serverId}-user-data`)
