/** The flow of server.change_plan. The stopped server holds room for both sizes, on another node of its zone where its
 *  own has too little; then it moves there first. Its boot storage grows where requested, and then the server gets the
 *  new size. A failure leaves the server as it was, only on the node that it has reached; a disk that has grown keeps
 *  its size. */
import { defined } from '../../../domain/defined.ts'
import type { Room } from '../../../domain/node/placement.ts'
import { UNMADE } from '../../../domain/server/rules.ts'
import { RESIZED } from './conditions.ts'
import type { ServerAction } from './actions.ts'
import { refusalOf } from '../../kit/refusal.ts'
import type { Decision, OperationInput, Rule } from './decision.ts'
import { ensureInstance, ensureStorage, powerOf } from './drafts.ts'
import { serverIdOf } from './observed.ts'
import { transferStopped } from './migration/cold.ts'
import { recordedMigration } from './migration/input.ts'
import { firstDecision, present } from '../../kit/operation/decision.ts'
import { withReservation } from './migration/reservation.ts'
import { cleanUpSource, removeMigrationSecrets } from './migration/cutover.ts'

export function changePlan(input: OperationInput): Decision {
  const decision = firstDecision(input, [neverProvisioned, moved, roomReserved, storageGrown, sizeApplied])
  const recorded = recordedMigration(input.server, input.operation.id)
  return decision.outcome !== 'succeeded' || recorded === undefined
    ? decision
    : { ...decision, actions: [...(decision.actions ?? []), ...removeMigrationSecrets(input.server, recorded)] }
}

/** It stays stopped all the time. */
const atRest = (step: NonNullable<Decision['step']>, rest: Partial<Decision>): Decision => ({
  state: 'stopped',
  step,
  ...rest,
})

const neverProvisioned: Rule = (input) => {
  const {
    observed: { claims, storage, plan },
    server: { spec },
  } = input
  if (claims === undefined || storage === undefined)
    return { ...changePlanFailed(input, 'claimed', UNMADE), state: 'error', detail: UNMADE }
  return plan === undefined ? changePlanFailed(input, 'claimed', `There is no plan ${spec.plan}.`) : undefined
}

/** Moves the server unchanged to the node that has the room. A failure leaves it on its own node, with its previous
 *  plan. */
const moved: Rule = (input) => {
  const {
    server,
    observed: { claims },
    operation,
  } = input
  const recorded = recordedMigration(server, operation.id)
  const isHeld = claims?.target?.operationId === operation.id
  if (claims === undefined || (!isHeld && recorded === undefined)) return undefined
  if (!isHeld && recorded?.targetNode === claims.placement.node) {
    const decision = cleanUpSource(input, recorded)
    return decision.outcome === undefined ? { ...decision, ...atRest('claimed', {}) } : undefined
  }
  const { outcome, error = '', ...decision } = withReservation(input, transferStopped)
  if (outcome === undefined) return { ...decision, ...atRest('claimed', {}) }
  const failed = changePlanFailed(input, 'claimed', error)
  return { ...decision, ...failed, actions: [...(decision.actions ?? []), ...(failed.actions ?? [])] }
}

/** The room is reserved here unless the request for the plan has reserved it. A refusal is final. */
const roomReserved: Rule = (input) => {
  const { server, observed, operation } = input
  const { claims, plan, storage } = observed
  if (
    claims === undefined ||
    plan === undefined ||
    claims.sizeChange?.operationId === operation.id ||
    hasSize(claims.placement, wantedSize(input))
  )
    return undefined
  const refusal = refusalOf(server, RESIZED)
  if (refusal !== undefined) return changePlanFailed(input, 'claimed', refusal.message)
  const demand = {
    ...serverIdOf(server, observed),
    operationId: operation.id,
    ...wantedSize(input),
    ...defined({ cpuPool: plan.cpuPool, pool: storage?.status?.pool }),
  }
  return atRest('claimed', {
    actions: [{ do: 'effect', name: 'resize', input: demand }],
    waitFor: 'room in the zone',
    waitSeconds: 0,
  })
}

const storageGrown: Rule = (input) => {
  const { server, observed, operation } = input
  const { claims, storage } = observed
  const change = claims?.sizeChange
  if (claims === undefined || storage === undefined || change?.operationId !== operation.id) return undefined
  const wanted = change.after.storageGibibytes
  const waiting = atRest('storage', { waitFor: 'the boot storage to grow' })
  if (storage.spec.sizeGibibytes < wanted) return { ...waiting, actions: [ensureStorage(server, observed, claims)] }
  if (storage.status?.state === 'error')
    return changePlanFailed(input, 'storage', storage.status.stateDetail ?? 'The boot storage could not grow.')
  return change.before.storageGibibytes < wanted && (storage.status?.sizeGibibytes ?? 0) < wanted ? waiting : undefined
}

/** The host applies the size at the next start. */
const sizeApplied: Rule = (input) => {
  const { server, observed, operation } = input
  const { claims, storage, instance } = observed
  if (claims?.sizeChange?.operationId === operation.id)
    return atRest('sized', {
      actions: [endSizeChangeAction(input, true)],
      waitFor: 'the room that is left over',
      waitSeconds: 0,
    })
  const follow =
    claims === undefined || storage === undefined || instance === undefined
      ? []
      : present(ensureInstance(server, observed, claims, storage, powerOf(instance)))
  return atRest('sized', { outcome: 'succeeded', actions: follow })
}

/** Restores the plan; a storage that has grown keeps its size. */
export function changePlanFailed(input: OperationInput, step: NonNullable<Decision['step']>, error: string): Decision {
  const {
    server: { spec },
    observed: { storage, claims },
    operation: { arguments: args = {} },
  } = input
  const sizeGibibytes = Math.max(Number(args['previous_storage_gibibytes'] ?? 0), storage?.spec.sizeGibibytes ?? 0)
  const previous = {
    plan: args['previous_plan'] ?? spec.plan,
    ...(sizeGibibytes > 0 ? { storageGibibytes: sizeGibibytes } : {}),
    desiredPower: 'stopped',
  }
  return atRest(step, {
    outcome: 'failed',
    error,
    actions: [
      ...(claims === undefined ? [] : [endSizeChangeAction(input, false)]),
      { do: 'change', patch: { spec: previous } },
    ],
  })
}

const endSizeChangeAction = ({ server, observed, operation }: OperationInput, isDone: boolean): ServerAction => ({
  do: 'effect',
  name: 'sized',
  input: {
    ...serverIdOf(server, observed),
    operationId: operation.id,
    isDone,
    grownGibibytes: observed.storage?.spec.sizeGibibytes,
  },
})

function wantedSize({ server: { spec }, observed: { plan, claims } }: OperationInput): Room {
  if (plan === undefined) throw new Error(`there is no plan ${spec.plan}`)
  return {
    cores: plan.cores,
    memoryMebibytes: plan.memoryMebibytes,
    storageGibibytes: Math.max(claims?.placement.storageGibibytes ?? 0, spec.storageGibibytes ?? plan.storageGibibytes),
  }
}

const hasSize = (held: Room, wanted: Room): boolean =>
  held.cores === wanted.cores &&
  held.memoryMebibytes === wanted.memoryMebibytes &&
  held.storageGibibytes === wanted.storageGibibytes
