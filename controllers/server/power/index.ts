/** The flows that make a guest run, end it, or start it anew. Each is an ordered list of conditions; the first that
 *  does not hold
 *  is the current step, so that a crash anywhere loses nothing. */
import type { Action } from '../../../kit/reconcile/action.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'
import { STOP_TIMEOUT_SECONDS_DEFAULT, STOP_TIMEOUT_SECONDS_MAXIMUM } from '../../../resources/server/stored.ts'
import type { OperationStanza } from '../../../resources/shapes.ts'
import { refusalOf } from '../../refusal.ts'
import type { Decision, Work } from '../decision.ts'
import { ensureInstance, ensureStorage, ensureUserData, madeFor, type Power, powerOf } from '../drafts.ts'
import type { InstanceObject, Seen, ServerObject } from '../observed.ts'

export type Rule<W extends Work = Work> = (work: W) => Decision | undefined
/** The decision of the first rule that has one. */
export const first = <W extends Work>(work: W, rules: readonly Rule<W>[]): Decision => {
  for (const rule of rules) {
    const decision = rule(work)
    if (decision !== undefined) return decision
  }
  throw new Error(`no rule decides ${work.operation.kind}`)
}

export const create = (work: Work): Decision =>
  first(work, [refusedForGood, claimed, stored, instanced, broken, poweredAsCreated])
export const start = (work: Work): Decision => first(work, [refusedForGood, claimed, stored, raised, broken, running])
export const restart = (work: Work): Decision =>
  first(work, [refusedForGood, claimed, stored, raised, timedOut, broken, running])
export const stop = (work: Work): Decision => first(work, [absent, told, timedOut, ended])

/** Others may leave. */
const ROOM_REFUSALS: readonly string[] = ['NoCapacity', 'NoDistinctFailureDomain', 'NoFreeAddress']
/** Files are applied in an order that nobody chose: a group may come after its servers. */
const GROUP_WAIT_SECONDS = 2
/** How often a zone without room is asked again. */
const NO_CAPACITY_WAIT_SECONDS = 20

/** What waiting does not change. */
const refusedForGood: Rule = (work) => {
  const {
    server: { spec },
    seen,
  } = work
  if (seen.accountId === undefined) return failed(work, 'claimed', 'The namespace belongs to no account.')
  if (seen.claims !== undefined) return undefined
  if (seen.zone === undefined) return failed(work, 'claimed', `There is no zone ${spec.zone}.`)
  if (seen.plan === undefined) return failed(work, 'claimed', `There is no plan ${spec.plan}.`)
  if (spec.customImageId !== undefined) return failed(work, 'claimed', 'There are no custom images in this zone.')
  if (!seen.isTemplateKnown)
    return failed(work, 'claimed', `There is no template ${spec.template ?? ''} in zone ${spec.zone}.`)
  if (spec.userDataSecretName !== undefined && seen.userData === undefined)
    return failed(work, 'claimed', `There is no Secret ${spec.userDataSecretName}.`)
  const refusal = refusalOf(work.server, 'Claimed')
  return refusal === undefined || ROOM_REFUSALS.includes(refusal.reason)
    ? undefined
    : failed(work, 'claimed', refusal.message)
}

const claimed: Rule = (work) => {
  const { server, seen } = work
  if (seen.claims !== undefined || seen.accountId === undefined || seen.plan === undefined) return undefined
  if (seen.isGroupMissing)
    return {
      ...atWork(work, 'claimed'),
      waitFor: `the server group ${server.spec.serverGroupId ?? ''}`,
      waitSeconds: GROUP_WAIT_SECONDS,
    }
  const { cores, memoryMebibytes, storageGibibytes, cpuPool } = seen.plan
  const input = {
    accountId: seen.accountId,
    serverId: server.metadata.name,
    hostname: server.spec.hostname,
    zone: server.spec.zone,
    cores,
    memoryMebibytes,
    storageGibibytes: server.spec.storageGibibytes ?? storageGibibytes,
    ...(cpuPool === undefined ? {} : { cpuPool }),
    publicIpv4: server.spec.publicIpv4,
    ...(server.spec.serverGroupId === undefined
      ? {}
      : { serverGroupId: server.spec.serverGroupId, region: seen.zone?.region }),
  }
  return {
    ...atWork(work, 'claimed'),
    actions: [{ do: 'effect', name: 'claim', input }],
    waitFor: 'room in the zone',
    waitSeconds: NO_CAPACITY_WAIT_SECONDS,
  }
}

const stored: Rule = (work) => {
  const { server, seen } = work
  if (seen.claims === undefined) return undefined
  const decision = { ...atWork(work, 'storage'), waitFor: 'the boot storage' }
  if (seen.storage === undefined) return { ...decision, actions: [ensureStorage(server, seen, seen.claims)] }
  if (seen.storage.metadata.deletionTimestamp !== undefined)
    return failed(work, 'storage', 'The boot storage is being deleted.')
  if (seen.storage.status?.state === 'error')
    return failed(work, 'storage', seen.storage.status.stateDetail ?? 'The boot storage could not be made.')
  return seen.storage.status?.state === 'online' ? undefined : decision
}

/** The instance is there, running unless the server was asked for stopped. */
const instanced: Rule = (work) => {
  const current = work.seen.instance
  if (current !== undefined && (current.spec.incarnation > 0 || current.spec.power === 'stopped'))
    return leaving(work, current)
  const isRunning = work.server.spec.desiredPower === 'running'
  return withPower(work, 'instance', {
    power: isRunning ? 'running' : 'stopped',
    incarnation: isRunning ? nextIncarnation(work) : 0,
    operationId: work.operation.id,
  })
}

/** A new incarnation was ordered for this operation; a restart ends the one before. */
const raised: Rule = (work) => {
  const {
    operation,
    seen: { instance },
  } = work
  if (instance !== undefined && madeFor(instance) === operation.id) return leaving(work, instance)
  if (
    operation.kind === 'server.start' &&
    instance?.spec.power === 'running' &&
    instance.status?.state === 'running' &&
    hasSeenSpec(instance)
  )
    return undefined // it runs already
  const stopOrder = operation.kind === 'server.restart' ? stopOf(operation) : undefined
  return withPower(work, firstStep(operation), {
    power: 'running',
    incarnation: nextIncarnation(work),
    stop: stopOrder,
    operationId: operation.id,
  })
}

const leaving = (work: Work, instance: InstanceObject): Decision | undefined =>
  instance.metadata.deletionTimestamp === undefined
    ? undefined
    : { ...atWork(work, firstStep(work.operation)), waitFor: 'the instance before to be gone' }

/** Numbers only go up, whatever was lost: a node starts each at most once. */
export const nextIncarnation = ({ server, seen: { instance, targetInstance } }: Work): number =>
  Math.max(
    ...[instance, targetInstance].flatMap((one) => [one?.spec.incarnation ?? 0, one?.status?.incarnation ?? 0]),
    server.status?.incarnation ?? 0,
  ) + 1

/** The node tried and could not. */
export const broken: Rule = (work) => {
  const status = work.seen.instance?.status
  return status?.state === 'error' && hasSeenSpec(work.seen.instance)
    ? failed(work, 'started', status.detail ?? 'The guest could not be started.')
    : undefined
}

/** The guest has booted with the incarnation that was asked for. */
export const running: Rule = (work) => {
  const { instance } = work.seen
  if (instance === undefined) return undefined
  if (hasStarted(instance))
    return {
      state: 'started',
      step: 'started',
      outcome: 'succeeded',
      status: { startedAt: instance.status?.startedAt ?? work.now.toISOString() },
    }
  const hasToEndFirst =
    work.operation.kind === 'server.restart' && isLive(instance) && !runsFor(instance, work.operation)
  return hasToEndFirst
    ? { ...atWork(work, 'stopped'), waitFor: 'the guest to end' }
    : { ...atWork(work, 'started'), waitFor: 'the guest to start' }
}

const poweredAsCreated: Rule = (work) => {
  const { instance } = work.seen
  if (instance?.spec.power !== 'stopped') return running(work)
  return hasEnded(instance)
    ? { state: 'stopped', step: 'started', outcome: 'succeeded' }
    : { ...atWork(work, 'started'), waitFor: 'the node to be ready for the guest' }
}

const absent: Rule = ({ seen: { instance } }) =>
  instance === undefined ? { state: 'stopped', step: 'stopped', outcome: 'succeeded' } : undefined

const told: Rule = (work) => {
  const { instance } = work.seen
  if (instance === undefined || (instance.spec.power === 'stopped' && instance.spec.stop?.id === work.operation.id))
    return undefined
  return withPower(work, 'stopped', { ...powerOf(instance), power: 'stopped', stop: stopOf(work.operation) })
}

const timedOut: Rule = (work) => {
  const outcome = work.seen.instance?.status?.stop
  if (outcome?.id !== work.operation.id || outcome.outcome !== 'timed_out') return undefined
  return failed(
    work,
    'stopped',
    `The guest did not shut down within ${stopOf(work.operation).timeoutSeconds} seconds. It still runs; stop it ` +
      'hard, or from inside.',
  )
}

const ended: Rule = (work) =>
  work.seen.instance !== undefined && hasEnded(work.seen.instance)
    ? { state: 'stopped', step: 'stopped', outcome: 'succeeded' }
    : { ...atWork(work, 'stopped'), waitFor: 'the guest to end' }

/** Orders the power, once storage and claims are there. */
export function withPower(work: Work, step: string, power: Power): Decision {
  const { server, seen } = work
  const decision = { ...atWork(work, step), waitFor: 'the host' }
  if (seen.claims === undefined || seen.storage === undefined) return decision
  if (server.spec.userDataSecretName !== undefined && !seen.hasUserDataCopy && seen.userData === undefined)
    return { ...decision, waitFor: `the Secret ${server.spec.userDataSecretName}` }
  return {
    ...decision,
    actions: [...userData(server, seen), ...present(ensureInstance(server, seen, seen.claims, seen.storage, power))],
  }
}

/** The copy for the host, where the server has user data and the host has none yet. */
export const userData = (server: ServerObject, seen: Seen): readonly Action[] =>
  server.spec.userDataSecretName === undefined ||
  seen.hasUserDataCopy ||
  seen.claims === undefined ||
  seen.userData === undefined
    ? []
    : [ensureUserData(server, seen, seen.claims.placement.node)]

/** What is there, as a list. */
export const present = <T>(value: T | undefined): readonly T[] => (value === undefined ? [] : [value])

const STATES_AT_WORK = {
  'server.create': 'creating',
  'server.start': 'starting',
  'server.stop': 'stopping',
  'server.restart': 'starting',
  'server.delete': 'deleting',
  'server.rebuild': 'starting',
  'server.recover': 'starting',
} as const
const STEPS_BEFORE: Readonly<Record<string, string>> = {
  'server.create': 'instance',
  'server.start': 'started',
  'server.restart': 'stopped',
  'server.stop': 'stopped',
}
const firstStep = (operation: OperationStanza): string => STEPS_BEFORE[operation.kind] ?? 'done'

/** Only server.create shows how it comes to be; the other kinds have it behind them. */
export function atWork({ operation, seen }: Work, step: string): Pick<Decision, 'state' | 'step'> {
  const isCreate = operation.kind === 'server.create'
  const isEnding =
    operation.kind === 'server.restart' &&
    seen.instance !== undefined &&
    isLive(seen.instance) &&
    !runsFor(seen.instance, operation)
  // these rules run for these kinds only
  const state = isEnding ? 'stopping' : (STATES_AT_WORK[operation.kind as keyof typeof STATES_AT_WORK] ?? 'error')
  return { state, step: isCreate || step === 'stopped' || step === 'started' ? step : firstStep(operation) }
}

/** The incarnation that was made for the operation is the one that lives. */
const runsFor = (instance: InstanceObject, operation: OperationStanza): boolean =>
  madeFor(instance) === operation.id && (instance.status?.incarnation ?? 0) >= instance.spec.incarnation

/** How an operation that cannot be done leaves the server (supplement to the interface specification, transitions of a
 *  server). */
export function failed(work: Work, step: string, error: string): Decision {
  const {
    server,
    seen: { instance, claims, storage },
    operation,
  } = work
  const decision = { step: atWork(work, step).step ?? step, outcome: 'failed' as const, error }
  if (instance === undefined || claims === undefined || storage === undefined)
    return { ...decision, state: 'error', detail: error }
  if (operation.kind === 'server.create') {
    return {
      ...decision,
      state: 'error',
      detail: error,
      actions: present(ensureInstance(server, work.seen, claims, storage, { ...powerOf(instance), power: 'stopped' })),
    }
  }
  const keepsRunning =
    operation.kind !== 'server.start' &&
    isLive(instance) &&
    (operation.kind === 'server.stop' || (instance.status?.incarnation ?? 0) < instance.spec.incarnation)
  const desiredPower = keepsRunning ? 'running' : 'stopped'
  // A guest that was not to be ended goes on as the incarnation that it is.
  const incarnation = keepsRunning
    ? (instance.status?.incarnation ?? instance.spec.incarnation)
    : instance.spec.incarnation
  const power = { ...powerOf(instance), power: desiredPower, incarnation } as const
  return {
    ...decision,
    state: keepsRunning ? 'started' : 'stopped',
    actions: [
      ...(server.spec.desiredPower === desiredPower
        ? []
        : [{ do: 'change', patch: { spec: { desiredPower } } } as const]),
      ...present(ensureInstance(server, work.seen, claims, storage, power)),
    ],
  }
}

/** How a guest is ended, from the arguments of the operation; what is not said or makes no sense is the default. */
export function stopOf({ id, arguments: said = {} }: OperationStanza): NonNullable<InstanceSpec['stop']> {
  const seconds = Number(said['timeout_seconds'])
  return {
    id,
    type: said['stop_type'] === 'hard' ? 'hard' : 'soft',
    timeoutSeconds:
      Number.isInteger(seconds) && seconds >= 1 && seconds <= STOP_TIMEOUT_SECONDS_MAXIMUM
        ? seconds
        : STOP_TIMEOUT_SECONDS_DEFAULT,
    timeoutAction: said['timeout_action'] === 'fail' ? 'fail' : 'hard',
  }
}

/** The node has acted on the spec as it is now. */
export const hasSeenSpec = (instance: InstanceObject | undefined): boolean =>
  instance?.status?.observedGeneration !== undefined &&
  instance.status.observedGeneration >= (instance.metadata.generation ?? 0)

/** A guest of it has memory on the host. */
export const isLive = (instance: InstanceObject): boolean =>
  ['starting', 'running', 'stopping'].includes(instance.status?.state ?? 'waiting')

/** The newest incarnation runs, or ran and ended since. */
export const hasStarted = (instance: InstanceObject): boolean =>
  (instance.status?.incarnation ?? 0) >= instance.spec.incarnation &&
  (instance.status?.state === 'running' ||
    (instance.status?.state === 'stopped' && instance.status.startedAt !== undefined))

/** The host has followed the newest spec and runs no guest. */
export const hasEnded = (instance: InstanceObject): boolean =>
  hasSeenSpec(instance) && (instance.status?.state === 'stopped' || instance.status?.state === 'error')
