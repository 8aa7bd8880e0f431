/** The flow of server.change_plan: the stopped server holds room for both sizes, on another node of its zone where its
 *  own has too little; then it
 *  moves there first. Its boot storage grows where it was asked to, and then it has the new size. What it does not get
 *  leaves it as it was, only
 *  on whichever node it has come to; a disk that has grown stays so. */
import type { Room } from '../../domain/placement.ts'
import { UNMADE } from '../../domain/server-rules.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { refusalOf } from '../refusal.ts'
import type { Decision, Work } from './decision.ts'
import { ensureInstance, ensureStorage, powerOf } from './drafts.ts'
import { moveStopped } from './migration/cold.ts'
import { writtenMove } from './migration/input.ts'
import { first, present, type Rule } from './power/index.ts'
import { reserved } from './migration/reservation.ts'
import { cleaned, forgetMove } from './migration/cutover.ts'

export const RESIZED = 'Resized'

export function changePlan(work: Work): Decision {
  const decision = first(work, [unmade, moved, unsized, growing, sized])
  const written = writtenMove(work.server, work.operation.id)
  return decision.outcome !== 'succeeded' || written === undefined
    ? decision
    : { ...decision, actions: [...(decision.actions ?? []), ...forgetMove(work.server, written)] }
}

/** It stays stopped all the time. */
const atRest = (step: string, rest: Partial<Decision>): Decision => ({ state: 'stopped', step, ...rest })

const unmade: Rule = (work) => {
  const {
    seen: { claims, storage, plan },
    server: { spec },
  } = work
  if (claims === undefined || storage === undefined)
    return { ...changePlanFailed(work, 'claimed', UNMADE), state: 'error', detail: UNMADE }
  return plan === undefined ? changePlanFailed(work, 'claimed', `There is no plan ${spec.plan}.`) : undefined
}

/** As it is, to the node that has the room. What fails there leaves it on its own, with the plan that it had. */
const moved: Rule = (work) => {
  const {
    server,
    seen: { claims },
    operation,
  } = work
  const written = writtenMove(server, operation.id)
  const isHeld = claims?.target?.operationId === operation.id
  if (claims === undefined || (!isHeld && written === undefined)) return undefined
  if (!isHeld && written?.targetNode === claims.placement.node) {
    const decision = cleaned(work, written)
    return decision.outcome === undefined ? { ...decision, ...atRest('claimed', {}) } : undefined
  }
  const { outcome, error = '', ...decision } = reserved(work, moveStopped)
  if (outcome === undefined) return { ...decision, ...atRest('claimed', {}) }
  const failed = changePlanFailed(work, 'claimed', error)
  return { ...decision, ...failed, actions: [...(decision.actions ?? []), ...(failed.actions ?? [])] }
}

/** Room is asked for here when whoever asked for the plan did not take it: refused once, it is refused for good. */
const unsized: Rule = (work) => {
  const {
    server,
    seen: { claims, plan, accountId, storage },
    operation,
  } = work
  if (
    claims === undefined ||
    plan === undefined ||
    claims.sizeChange?.operationId === operation.id ||
    hasSize(claims.placement, wantedSize(work))
  )
    return undefined
  const refusal = refusalOf(server, RESIZED)
  if (refusal !== undefined) return changePlanFailed(work, 'claimed', refusal.message)
  const input = {
    accountId,
    serverId: server.metadata.name,
    operationId: operation.id,
    ...wantedSize(work),
    ...(plan.cpuPool === undefined ? {} : { cpuPool: plan.cpuPool }),
    ...(storage?.status?.pool === undefined ? {} : { pool: storage.status.pool }),
  }
  return atRest('claimed', {
    actions: [{ do: 'effect', name: 'resize', input }],
    waitFor: 'room in the zone',
    waitSeconds: 0,
  })
}

const growing: Rule = (work) => {
  const { server, seen, operation } = work
  const { claims, storage } = seen
  const change = claims?.sizeChange
  if (claims === undefined || storage === undefined || change?.operationId !== operation.id) return undefined
  const wanted = change.after.storageGibibytes
  const waiting = atRest('storage', { waitFor: 'the boot storage to grow' })
  if (storage.spec.sizeGibibytes < wanted) return { ...waiting, actions: [ensureStorage(server, seen, claims)] }
  if (storage.status?.state === 'error')
    return changePlanFailed(work, 'storage', storage.status.stateDetail ?? 'The boot storage could not grow.')
  return change.before.storageGibibytes < wanted && (storage.status?.sizeGibibytes ?? 0) < wanted ? waiting : undefined
}

/** The host takes over the size with the next start. */
const sized: Rule = (work) => {
  const { server, seen, operation } = work
  const { claims, storage, instance } = seen
  if (claims?.sizeChange?.operationId === operation.id)
    return atRest('sized', { actions: [endOf(work, true)], waitFor: 'the room that is left over', waitSeconds: 0 })
  const follow =
    claims === undefined || storage === undefined || instance === undefined
      ? []
      : present(ensureInstance(server, seen, claims, storage, powerOf(instance)))
  return atRest('sized', { outcome: 'succeeded', actions: follow })
}

/** The plan is what it was; of the storage stays what has grown. */
export function changePlanFailed(work: Work, step: string, error: string): Decision {
  const {
    server: { spec },
    seen: { storage, claims },
    operation: { arguments: said = {} },
  } = work
  const sizeGibibytes = Math.max(Number(said['previous_storage_gibibytes'] ?? 0), storage?.spec.sizeGibibytes ?? 0)
  const previous = {
    plan: said['previous_plan'] ?? spec.plan,
    ...(sizeGibibytes > 0 ? { storageGibibytes: sizeGibibytes } : {}),
    desiredPower: 'stopped',
  }
  return atRest(step, {
    outcome: 'failed',
    error,
    actions: [...(claims === undefined ? [] : [endOf(work, false)]), { do: 'change', patch: { spec: previous } }],
  })
}

const endOf = ({ server, seen: { accountId, storage }, operation }: Work, isDone: boolean): Action => ({
  do: 'effect',
  name: 'sized',
  input: {
    accountId,
    serverId: server.metadata.name,
    operationId: operation.id,
    isDone,
    grownGibibytes: storage?.spec.sizeGibibytes,
  },
})

function wantedSize({ server: { spec }, seen: { plan, claims } }: Work): Room {
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
