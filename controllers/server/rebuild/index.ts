/** The flow of server.rebuild: a new boot storage is made beside the old one while the server stands still, then the
 *  server boots from it
 *  and the old one goes. Until then everything can still be as it was. */
import { UNMADE } from '../../../domain/server-rules.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { type Key, Secret } from '../../../kit/kube/object.ts'
import { Storage } from '../../../resources/storage/index.ts'
import type { Decision, Work } from '../decision.ts'
import { bootStorageName, ensureInstance, ensureStorage, madeFor, powerOf, storageKey, userDataKey } from '../drafts.ts'
import {
  atWork,
  first,
  hasEnded,
  hasSeenSpec,
  isLive,
  nextIncarnation,
  present,
  type Rule,
  running,
  stopOf,
  userData,
  withPower,
} from '../power/index.ts'
import type { ServerObject } from '../observed.ts'

export const rebuild = (work: Work): Decision =>
  first(work, [unmade, stopping, building, exchanging, told, cleaned, raised, broken, started])

/** The new boot storage has the name of the operation. */
const hasNewDisk = ({ server, operation }: Work): boolean => bootStorageName(server) === operation.id

const atRest = (step: string, rest: Partial<Decision>): Decision => ({ state: 'stopped', step, ...rest })

const unmade: Rule = (work) => {
  const { claims, storage } = work.seen
  if (claims === undefined || (storage === undefined && !hasNewDisk(work)))
    return { state: 'error', detail: UNMADE, step: 'stopped', outcome: 'failed', error: UNMADE }
  return undefined
}

const stopping: Rule = (work) => {
  const {
    seen: { instance, claims, storage },
    server,
    operation,
  } = work
  if (
    hasNewDisk(work) ||
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
      ensureInstance(server, work.seen, claims, storage, {
        ...powerOf(instance),
        power: 'stopped',
        stop: stopOf(operation),
      }),
    ),
  }
}

const building: Rule = (work) => {
  const { server, seen, operation } = work
  const { claims, newStorage } = seen
  if (hasNewDisk(work) || claims === undefined) return undefined
  const waiting = atRest('storage', { waitFor: 'the new boot storage' })
  if (server.spec.userDataSecretName !== undefined && seen.userData === undefined && !seen.hasUserDataCopy)
    return { ...waiting, waitFor: `the Secret ${server.spec.userDataSecretName}` }
  if (newStorage === undefined) return { ...waiting, actions: [ensureStorage(server, seen, claims, operation.id)] }
  if (newStorage.status?.state === 'error')
    return rebuildFailed(work, 'storage', newStorage.status.stateDetail ?? 'The new boot storage could not be made.')
  return newStorage.status?.state === 'online' ? undefined : waiting
}

/** From here on there is no way back. */
const exchanging: Rule = (work) => {
  const { operation } = work
  if (hasNewDisk(work)) return undefined
  return atRest('instance', {
    actions: [{ do: 'change', patch: { spec: { bootStorageId: operation.id } } }],
    waitFor: 'the server to take the new boot storage',
    waitSeconds: 0,
  })
}

/** The instance has the new disk, and what the first boot reads. */
const told: Rule = (work) => {
  const { server, seen } = work
  const { claims, storage, instance } = seen
  if (claims === undefined || storage === undefined)
    return atRest('instance', { waitFor: 'the new boot storage to be seen', waitSeconds: 1 })
  if (instance === undefined) return undefined
  if (instance.metadata.deletionTimestamp !== undefined)
    return atRest('instance', { waitFor: 'the instance before to be gone' })
  const actions = [
    ...userData(server, seen),
    ...present(ensureInstance(server, seen, claims, storage, powerOf(instance))),
  ]
  return actions.length === 0
    ? undefined
    : atRest('instance', { actions, waitFor: 'the instance to have the new disk', waitSeconds: 1 })
}

/** What only the system before needed goes; the disk itself as soon as its host has let go of it. */
const cleaned: Rule = (work) => {
  const {
    server,
    seen: { oldStorage, obsoleteSecrets = [] },
  } = work
  const actions: readonly Action[] = [
    ...obsoleteSecrets.map((key) => ({ do: 'remove', type: Secret, key }) as const),
    ...(oldStorage === undefined || oldStorage.metadata.deletionTimestamp !== undefined
      ? []
      : [{ do: 'remove', type: Storage, key: { ...storageKey(server), name: oldStorage.metadata.name } } as const]),
  ]
  return actions.length === 0
    ? undefined
    : atRest('instance', { actions, waitFor: 'the old boot storage to go', waitSeconds: 0 })
}

/** A server that ran runs again. */
const raised: Rule = (work) => {
  const {
    server,
    operation,
    seen: { instance },
  } = work
  if (server.spec.desiredPower === 'stopped')
    return instance === undefined || hasSeenSpec(instance)
      ? atRest('started', { outcome: 'succeeded' })
      : atRest('started', { waitFor: 'the host to take over the new disk' })
  if (instance !== undefined && madeFor(instance) === operation.id && instance.spec.power === 'running')
    return undefined
  return withPower(work, 'started', { power: 'running', incarnation: nextIncarnation(work), operationId: operation.id })
}

const broken: Rule = (work) => {
  const { instance } = work.seen
  return instance?.status?.state === 'error' && hasSeenSpec(instance)
    ? rebuildFailed(work, 'started', instance.status.detail ?? 'The guest could not be started.')
    : undefined
}

const started: Rule = (work) => running(work) ?? { ...atWork(work, 'started'), waitFor: 'the guest to start' }

/** Before the exchange the new disk goes and the server is what it was: one that ran is started again. After it the
 *  server is rebuilt, and off. */
export function rebuildFailed(work: Work, step: string, error: string): Decision {
  const {
    server,
    seen: { claims, storage, instance, newStorage },
    operation,
  } = work
  const said = operation.arguments ?? {}
  if (hasNewDisk(work)) {
    const stop =
      instance === undefined || claims === undefined || storage === undefined || isLive(instance)
        ? []
        : present(ensureInstance(server, work.seen, claims, storage, { ...powerOf(instance), power: 'stopped' }))
    return atRest(step, {
      outcome: 'failed',
      error: `${error} The boot storage is the new one, the old one is gone.`,
      actions: [{ do: 'change', patch: { spec: { desiredPower: 'stopped' } } }, ...stop],
    })
  }
  const before = (name: string): string | null => said[name] ?? null
  const given = server.spec.userDataSecretName
  return atRest(step, {
    outcome: 'failed',
    error: `${error} The server has its boot storage as before.`,
    actions: [
      ...(newStorage === undefined
        ? []
        : [{ do: 'remove', type: Storage, key: { ...storageKey(server), name: operation.id } } as const]),
      ...(given !== undefined && given !== before('previous_user_data_secret') && isGiven(server.metadata.name, given)
        ? [{ do: 'remove', type: Secret, key: { ...storageKey(server), name: given } } as const]
        : []),
      {
        do: 'change',
        patch: {
          spec: {
            template: before('previous_template'),
            userDataSecretName: before('previous_user_data_secret'),
            initScriptId: before('previous_init_script'),
          },
        },
      },
    ],
  })
}

/** Of the user data that the server had before, as far as it may go. */
export function obsoleteUserData(server: ServerObject, node: string | undefined): readonly Key[] {
  const {
    spec: { operation, userDataSecretName: current },
    metadata: { name },
  } = server
  const previous = operation?.arguments?.['previous_user_data_secret']
  return [
    ...(previous !== undefined && previous !== current && isGiven(name, previous)
      ? [{ ...storageKey(server), name: previous }]
      : []),
    ...(current === undefined && node !== undefined ? [userDataKey(server, node)] : []),
  ]
}

/** Made by the API server for user data that came with a request. One of another name is its maker's. */
export const isGiven = (serverId: string, secretName: string): boolean => secretName.startsWith(`${serverId}-user-data`)
