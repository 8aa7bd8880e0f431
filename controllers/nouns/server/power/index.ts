/** The flows that create, start, stop and restart a guest. Each is an ordered list of conditions; the first that does
 *  not hold is the current step, so that a crash anywhere loses no progress. */
import { defined } from '../../../../domain/defined.ts'
import { CLAIMED } from '../conditions.ts'
import type { ServerAction } from '../actions.ts'
import type { InstanceSpec } from '../../../../resources/instance/index.ts'
import { OPERATION_ANNOTATION } from '../../../../resources/kit/labels.ts'
import { STOP_TIMEOUT_SECONDS_DEFAULT, STOP_TIMEOUT_SECONDS_MAXIMUM } from '../../../../resources/server/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { refusalOf } from '../../../kit/refusal.ts'
import { firstDecision, present } from '../../../kit/operation/decision.ts'
import { hasBegun, hasNoRequest } from '../../../kit/operation/stanza.ts'
import type { Decision, OperationInput, Rule } from '../decision.ts'
import { ensureInstance, ensureStorage, ensureUserData, madeFor, type Power, powerOf } from '../drafts.ts'
import { isForgotten } from '../claimed.ts'
import { repower } from '../forgotten.ts'
import type { InstanceObject, Observed, ServerObject, StorageObject } from '../observed.ts'

export const create = (input: OperationInput): Decision =>
  deferStatus(
    input,
    firstDecision(input, [
      refusedPermanently,
      claimed,
      storageEnsured,
      instanceEnsured,
      storageOnline,
      bootFailed,
      poweredAsCreated,
    ]),
  )
export const start = (input: OperationInput): Decision =>
  firstDecision(input, [refusedPermanently, claimed, storageEnsured, storageOnline, powerOrdered, bootFailed, running])
export const restart = (input: OperationInput): Decision =>
  firstDecision(input, [
    refusedPermanently,
    claimed,
    storageEnsured,
    storageOnline,
    powerOrdered,
    timedOut,
    bootFailed,
    running,
  ])
export const stop = (input: OperationInput): Decision =>
  firstDecision(input, [instanceAbsent, stopOrdered, timedOut, guestEnded])

/** Refusals that end when capacity becomes free, so the operation waits. */
const ROOM_REFUSALS: readonly string[] = ['NoCapacity', 'NoDistinctFailureDomain', 'NoFreeAddress']
/** `kubectl apply` may create a server before its group, so the operation waits for a missing group. */
const GROUP_WAIT_SECONDS = 2
const GUEST_START = 'the guest to start'
const NODE_READY = 'the node to be ready for the guest'
/** Wait before room in a full zone is requested again. */
const NO_CAPACITY_WAIT_SECONDS = 20

/** Fails the operation for reasons that waiting does not change: what a server without claims lacks for its first
 *  start. One whose claims were lost has had it all. */
const refusedPermanently: Rule = (input) => {
  const {
    server: { spec },
    observed,
  } = input
  if (observed.accountId === undefined) return failed(input, 'claimed', 'The namespace belongs to no account.')
  if (observed.claims !== undefined || isForgotten(input)) return undefined
  if (observed.zone === undefined) return failed(input, 'claimed', `There is no zone ${spec.zone}.`)
  if (observed.plan === undefined) return failed(input, 'claimed', `There is no plan ${spec.plan}.`)
  if (!observed.isSystemKnown) {
    const system = spec.customImageId === undefined ? `template ${spec.template}` : `custom image ${spec.customImageId}`
    return failed(input, 'claimed', `There is no ${system} in zone ${spec.zone}.`)
  }
  if (spec.userDataSecretName !== undefined && observed.userData === undefined)
    return failed(input, 'claimed', `There is no Secret ${spec.userDataSecretName}.`)
  if (observed.userDataFault !== undefined)
    return failed(input, 'claimed', `The user data in Secret ${spec.userDataSecretName} ${observed.userDataFault}.`)
  const refusal = refusalOf(input.server, CLAIMED)
  return refusal === undefined || ROOM_REFUSALS.includes(refusal.reason)
    ? undefined
    : failed(input, 'claimed', refusal.message)
}

/** Claims that were lost are not made again: the server starts as it is. */
const claimed: Rule = (input) => {
  const { server, observed } = input
  if (observed.claims !== undefined || isForgotten(input)) return undefined
  if (observed.accountId === undefined || observed.plan === undefined) return undefined
  if (observed.isGroupMissing)
    return {
      ...inProgress(input, 'claimed'),
      waitFor: `the server group ${server.spec.serverGroupId ?? ''}`,
      waitSeconds: GROUP_WAIT_SECONDS,
    }
  const [missing] = observed.networks?.missing ?? []
  if (missing !== undefined)
    return {
      ...inProgress(input, 'claimed'),
      waitFor: `the network ${missing}`,
      waitSeconds: GROUP_WAIT_SECONDS,
    }
  const { cores, memoryMebibytes, storageGibibytes, cpuPool } = observed.plan
  const demand = {
    accountId: observed.accountId,
    serverId: server.metadata.name,
    hostname: server.spec.hostname,
    zone: server.spec.zone,
    cores,
    memoryMebibytes,
    storageGibibytes: server.spec.storageGibibytes ?? storageGibibytes,
    ...defined({ cpuPool }),
    publicIpv4: server.spec.publicIpv4,
    ...defined({ networks: observed.networks?.known }),
    ...(server.spec.serverGroupId === undefined
      ? {}
      : { serverGroupId: server.spec.serverGroupId, region: observed.zone?.region }),
    ...defined({ managedBy: server.spec.managedBy }),
  }
  return {
    ...inProgress(input, 'claimed'),
    actions: [{ do: 'effect', name: 'claim', input: demand }],
    waitFor: 'room in the zone',
    waitSeconds: NO_CAPACITY_WAIT_SECONDS,
  }
}

const storageEnsured: Rule = (input) => {
  const { server, observed } = input
  const { claims, storage } = observed
  if (claims === undefined) return undefined
  if (storage === undefined) return { ...waitForStorage(input), actions: [ensureStorage(server, observed, claims)] }
  if (storage.metadata.deletionTimestamp !== undefined)
    return failed(input, 'storage', 'The boot storage is being deleted.')
  return storage.status?.state === 'error'
    ? failed(input, 'storage', storage.status.stateDetail ?? 'The boot storage could not be made.')
    : undefined
}

const storageOnline: Rule = (input) => {
  const { storage } = input.observed
  return storage === undefined || isOnline(storage)
    ? undefined
    : { ...waitForStorage(input), ...storageEvents(storage) }
}

const waitForStorage = (input: OperationInput) => ({
  ...inProgress(input, 'storage'),
  waitFor: 'the boot storage',
})

const isOnline = ({ status }: StorageObject): boolean => status?.state === 'online'

/** The host's report of the work, which may take minutes when it builds the image first. */
export const storageEvents = ({ status }: StorageObject): Pick<Decision, 'events'> =>
  status?.stateDetail === undefined ? {} : { events: [{ kind: 'storage', message: status.stateDetail }] }

/** The instance exists, running unless the server was created stopped. Its host waits for the disk, and starts as soon
 *  as that is ready. */
const instanceEnsured: Rule = (input) => {
  const { instance: current, storage } = input.observed
  if (current !== undefined && (current.spec.incarnation > 0 || current.spec.power === 'stopped'))
    return waitForDeletion(input, current)
  const isRunning = input.server.spec.desiredPower === 'running'
  const incarnation = isRunning ? nextIncarnation(input) : 0
  const ordered = withPower(input, 'instance', {
    power: isRunning ? 'running' : 'stopped',
    incarnation,
    operationId: input.operation.id,
  })
  if (ordered.actions === undefined) return ordered
  // The step and the wait after the instance is created are written together with it: one write instead of two.
  const next =
    storage === undefined || isOnline(storage)
      ? { step: 'started' as const, waitFor: isRunning ? GUEST_START : NODE_READY }
      : { ...waitForStorage(input), ...storageEvents(storage) }
  return { ...ordered, ...next, status: { incarnation } }
}

/** A creation that takes longer, or a guest that takes longer to start, gets a status that says so. */
const STATUS_DELAY_SECONDS = 10

/** Most guests have started before anybody could read that they are about to start. What the host reports meanwhile is
 *  written at once. So is the start of a server that was created in Kubernetes: tools treat an object without
 *  conditions as ready. */
function deferStatus(input: OperationInput, decision: Decision): Decision {
  const { server, operation, now } = input
  if (hasNoRequest(operation) && !hasBegun(server, operation)) return decision
  // The request has claimed for the server.
  const begun = hasNoRequest(operation) ? decision : { ...decision, startedAt: operation.requestedAt }
  const since = unreportedSince(input, decision)
  const seconds = since === undefined ? STATUS_DELAY_SECONDS : (now.getTime() - Date.parse(since)) / 1_000
  return seconds >= 0 && seconds < STATUS_DELAY_SECONDS
    ? { ...begun, isStatusDeferred: true, waitSeconds: STATUS_DELAY_SECONDS - seconds }
    : begun
}

/** Since when the operation has been in a stage about which nothing else is known; undefined when the status has to be
 *  written. */
function unreportedSince({ server, operation, observed, now }: OperationInput, decision: Decision): string | undefined {
  const { claims, instance, isHostReachable } = observed
  const isAsOrdered = instance !== undefined && (hasStarted(instance) || isOff(instance))
  const isMoreKnown =
    decision.outcome !== undefined ||
    decision.detail !== undefined ||
    decision.events !== undefined ||
    (instance?.status !== undefined && !isAsOrdered)
  if (claims === undefined || !isHostReachable || isMoreKnown) return undefined
  if (decision.step === 'started') return instance?.metadata.creationTimestamp ?? now.toISOString()
  return hasBegun(server, operation) ? undefined : operation.requestedAt
}

/** It is off, as ordered. */
const isOff = (instance: InstanceObject): boolean => instance.spec.power === 'stopped' && hasEnded(instance)

/** A new incarnation was ordered for this operation; a restart ends the previous one. */
const powerOrdered: Rule = (input) => {
  const {
    operation,
    observed: { instance },
  } = input
  if (instance !== undefined && madeFor(instance) === operation.id) return waitForDeletion(input, instance)
  if (
    operation.kind === 'server.start' &&
    instance?.spec.power === 'running' &&
    instance.status?.state === 'running' &&
    hasObservedSpec(instance)
  )
    return undefined // it runs already
  const stopOrder = operation.kind === 'server.restart' ? stopOf(operation) : undefined
  return withPower(input, firstStep(operation), {
    power: 'running',
    incarnation: nextIncarnation(input),
    stop: stopOrder,
    operationId: operation.id,
  })
}

const waitForDeletion = (input: OperationInput, instance: InstanceObject): Decision | undefined =>
  instance.metadata.deletionTimestamp === undefined
    ? undefined
    : { ...inProgress(input, firstStep(input.operation)), waitFor: 'the instance before to be gone' }

/** Higher than every number known: a node starts each incarnation at most once. */
export const nextIncarnation = ({ server, observed: { instance, targetInstance } }: OperationInput): number =>
  Math.max(
    ...[instance, targetInstance].flatMap((one) => [one?.spec.incarnation ?? 0, one?.status?.incarnation ?? 0]),
    server.status?.incarnation ?? 0,
  ) + 1

/** The node could not start the guest. */
export const bootFailed: Rule = (input) => {
  const status = input.observed.instance?.status
  return status?.state === 'error' && hasObservedSpec(input.observed.instance)
    ? failed(input, 'started', status.detail ?? 'The guest could not be started.')
    : undefined
}

/** The guest has started as the ordered incarnation. */
export const running: Rule = (input) => {
  const { instance } = input.observed
  if (instance === undefined) return undefined
  if (hasStarted(instance))
    return {
      state: 'started',
      step: 'started',
      outcome: 'succeeded',
      status: { startedAt: instance.status?.startedAt ?? input.now.toISOString() },
    }
  const hasToEndFirst =
    input.operation.kind === 'server.restart' && isLive(instance) && !runsFor(instance, input.operation)
  return hasToEndFirst
    ? { ...inProgress(input, 'stopped'), waitFor: 'the guest to end' }
    : { ...inProgress(input, 'started'), waitFor: GUEST_START }
}

const poweredAsCreated: Rule = (input) => {
  const { instance } = input.observed
  if (instance?.spec.power !== 'stopped') return running(input)
  return hasEnded(instance)
    ? { state: 'stopped', step: 'started', outcome: 'succeeded' }
    : { ...inProgress(input, 'started'), waitFor: NODE_READY }
}

const instanceAbsent: Rule = ({ observed: { instance } }) =>
  instance === undefined ? { state: 'stopped', step: 'stopped', outcome: 'succeeded' } : undefined

const stopOrdered: Rule = (input) => {
  const { instance } = input.observed
  if (instance === undefined || (instance.spec.power === 'stopped' && instance.spec.stop?.id === input.operation.id))
    return undefined
  return withPower(input, 'stopped', { ...powerOf(instance), power: 'stopped', stop: stopOf(input.operation) })
}

const timedOut: Rule = (input) => {
  const outcome = input.observed.instance?.status?.stop
  if (outcome?.id !== input.operation.id || outcome.outcome !== 'timed_out') return undefined
  return failed(
    input,
    'stopped',
    `The guest did not shut down within ${stopOf(input.operation).timeoutSeconds} seconds. It still runs; stop it ` +
      'hard, or from inside.',
  )
}

const guestEnded: Rule = (input) =>
  input.observed.instance !== undefined && hasEnded(input.observed.instance)
    ? { state: 'stopped', step: 'stopped', outcome: 'succeeded' }
    : { ...inProgress(input, 'stopped'), waitFor: 'the guest to end' }

/** Orders the power, once storage and claims exist. */
export function withPower(input: OperationInput, step: Step, power: Power): Decision {
  const { server, observed } = input
  const decision = { ...inProgress(input, step), waitFor: 'the host' }
  if (isForgotten(input) && observed.instance !== undefined)
    return { ...decision, actions: [repower(observed.instance, power, OPERATION_ANNOTATION)] }
  if (observed.claims === undefined || observed.storage === undefined) return decision
  if (server.spec.userDataSecretName !== undefined && !observed.hasUserDataCopy && observed.userData === undefined)
    return { ...decision, waitFor: `the Secret ${server.spec.userDataSecretName}` }
  return {
    ...decision,
    actions: [
      ...userData(server, observed),
      ...present(ensureInstance(server, observed, observed.claims, observed.storage, power)),
    ],
  }
}

/** Creates the host's copy of the server's user data, where it is missing. */
export const userData = (server: ServerObject, observed: Observed): readonly ServerAction[] =>
  server.spec.userDataSecretName === undefined ||
  observed.hasUserDataCopy ||
  observed.claims === undefined ||
  observed.userData === undefined
    ? []
    : [ensureUserData(server, observed, observed.claims.placement.node)]

const STATES_IN_PROGRESS = {
  'server.create': 'creating',
  'server.start': 'starting',
  'server.stop': 'stopping',
  'server.restart': 'starting',
  'server.delete': 'deleting',
  'server.rebuild': 'starting',
  'server.recover': 'starting',
} as const
type Step = NonNullable<Decision['step']>
const STEPS_BEFORE: Readonly<Record<string, Step>> = {
  'server.create': 'instance',
  'server.start': 'started',
  'server.restart': 'stopped',
  'server.stop': 'stopped',
}
const firstStep = (operation: OperationStanza): Step => STEPS_BEFORE[operation.kind] ?? 'done'

/** Only server.create reports the steps of provisioning; servers of other operations are provisioned already. */
export function inProgress({ operation, observed }: OperationInput, step: Step): Pick<Decision, 'state' | 'step'> {
  const isCreate = operation.kind === 'server.create'
  const isEnding =
    operation.kind === 'server.restart' &&
    observed.instance !== undefined &&
    isLive(observed.instance) &&
    !runsFor(observed.instance, operation)
  // These rules run for the kinds of STATES_IN_PROGRESS only.
  const kind = operation.kind as keyof typeof STATES_IN_PROGRESS
  const state = isEnding ? 'stopping' : (STATES_IN_PROGRESS[kind] ?? 'error')
  return { state, step: isCreate || step === 'stopped' || step === 'started' ? step : firstStep(operation) }
}

/** The running incarnation is the one that was created for the operation. */
const runsFor = (instance: InstanceObject, operation: OperationStanza): boolean =>
  madeFor(instance) === operation.id && (instance.status?.incarnation ?? 0) >= instance.spec.incarnation

/** How a failed operation leaves the server (supplement to the interface specification, transitions of a server). */
export function failed(input: OperationInput, step: Step, error: string): Decision {
  const {
    server,
    observed: { instance, claims, storage },
    operation,
  } = input
  const decision = { step: inProgress(input, step).step ?? step, outcome: 'failed' as const, error }
  const isLost = isForgotten(input)
  const follow = (power: Power): readonly ServerAction[] => {
    if (instance === undefined) return []
    if (isLost) return [repower(instance, power, OPERATION_ANNOTATION)]
    return claims === undefined || storage === undefined
      ? []
      : present(ensureInstance(server, input.observed, claims, storage, power))
  }
  if (instance === undefined || (!isLost && (claims === undefined || storage === undefined)))
    return { ...decision, state: 'error', detail: error }
  if (operation.kind === 'server.create')
    return { ...decision, state: 'error', detail: error, actions: follow({ ...powerOf(instance), power: 'stopped' }) }
  const keepsRunning =
    operation.kind !== 'server.start' &&
    isLive(instance) &&
    (operation.kind === 'server.stop' || (instance.status?.incarnation ?? 0) < instance.spec.incarnation)
  const desiredPower = keepsRunning ? 'running' : 'stopped'
  // A guest that keeps running keeps its incarnation.
  const incarnation = keepsRunning
    ? (instance.status?.incarnation ?? instance.spec.incarnation)
    : instance.spec.incarnation
  return {
    ...decision,
    ...(isLost ? { state: 'error', detail: error } : { state: keepsRunning ? 'started' : 'stopped' }),
    actions: [
      ...(server.spec.desiredPower === desiredPower
        ? []
        : [{ do: 'change', patch: { spec: { desiredPower } } } as const]),
      ...follow({ ...powerOf(instance), power: desiredPower, incarnation }),
    ],
  }
}

/** How to stop the guest, from the operation's arguments; a missing or invalid one has its default. */
export function stopOf({ id, arguments: args = {} }: OperationStanza): NonNullable<InstanceSpec['stop']> {
  const seconds = Number(args['timeout_seconds'])
  return {
    id,
    type: args['stop_type'] === 'hard' ? 'hard' : 'soft',
    timeoutSeconds:
      Number.isInteger(seconds) && seconds >= 1 && seconds <= STOP_TIMEOUT_SECONDS_MAXIMUM
        ? seconds
        : STOP_TIMEOUT_SECONDS_DEFAULT,
    timeoutAction: args['timeout_action'] === 'fail' ? 'fail' : 'hard',
  }
}

/** The node has acted on the current spec. */
export const hasObservedSpec = (instance: InstanceObject | undefined): boolean =>
  instance?.status?.observedGeneration !== undefined &&
  instance.status.observedGeneration >= (instance.metadata.generation ?? 0)

/** Whether its guest has memory on the host. */
export const isLive = (instance: InstanceObject): boolean =>
  ['starting', 'running', 'stopping'].includes(instance.status?.state ?? 'waiting')

/** The newest incarnation runs, or has run and ended. */
export const hasStarted = (instance: InstanceObject): boolean =>
  (instance.status?.incarnation ?? 0) >= instance.spec.incarnation &&
  (instance.status?.state === 'running' ||
    (instance.status?.state === 'stopped' && instance.status.startedAt !== undefined))

/** The host has acted on the newest spec and runs no guest. */
export const hasEnded = (instance: InstanceObject): boolean =>
  hasObservedSpec(instance) && (instance.status?.state === 'stopped' || instance.status?.state === 'error')
