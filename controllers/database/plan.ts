/** The database's plan: pure, synchronous, total. Its name and password are claimed in PostgreSQL; its machine and its
 *  storage follow from its spec. */
import { keyOf } from '../../kit/kube/object.ts'
import { Database, type DatabaseSpec, type DatabaseStatus } from '../../resources/database/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { planMachines } from '../managed-machine/index.ts'
import { claiming, type MadeInput, networkAwaited, planMade } from '../made-plan.ts'
import { firstDecision, truncated } from '../operation/decision.ts'
import type { During } from '../operation/plan.ts'
import { refusalOf } from '../refusal.ts'
import { demandOf, hostOf, isAttached, machineOf, needsCertificate, ownerOf, storageActions } from './machine.ts'
import { CLAIMED, type DatabaseEffect, type DatabaseObject, type Observed } from './observed.ts'
import { failed, type SyncDecision } from '../synced.ts'
import { hasAccount } from '../synced-plan.ts'

type ReconcileInput = MadeInput<DatabaseObject, Observed>
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<DatabaseStatus, DatabaseEffect>
type Rule = (input: OperationInput) => Decision | undefined

/** Reports wake it; this is for what nobody reports: a certificate that gets old. */
const LOOK_SECONDS = 60

/** What makes it and what takes it away. */
export const LIFE = { creates: 'database.create', deletes: 'database.delete' } as const

export const plan = planMade<DatabaseObject, DatabaseSpec, DatabaseStatus, Observed, DatabaseEffect>({
  label: 'A database',
  type: Database,
  ...LIFE,
  flows: { 'database.create': (input) => firstDecision(input, [hasAccount, hasNetwork, claimed, machineRuns, done]) },
  idle,
  remove,
})

const hasNetwork: Rule = ({ root, observed: { claim, networks } }) =>
  claim !== undefined || networks !== undefined ? undefined : networkAwaited(root.spec.networkId)

const claimed: Rule = ({ root: database, observed: { accountId = '', claim } }) => {
  if (claim !== undefined) return undefined
  const refusal = refusalOf(database, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  const { zone, name, networkId } = database.spec
  const input = { accountId, databaseId: database.metadata.name, zone, name, networkId }
  return claiming({ do: 'effect', name: 'claim', input })
}

const machineRuns: Rule = (input) => {
  const { actions, isSettled, waitFor, waitSeconds, status } = maintained(input)
  if (isSettled) return undefined
  const { machines, storage } = input.observed
  const machine = machineOf(machines)
  const step = machine?.state !== 'started' ? 'machine' : isAttached(storage, machine) ? 'applied' : 'storage'
  return { health: 'reconciling', reason: 'Making', step, actions, status, waitFor, waitSeconds }
}

const done: Rule = (input) => ({
  health: 'ready',
  reason: 'Running',
  step: 'applied',
  outcome: 'succeeded',
  status: { ...maintained(input).status, isMade: true },
})

interface Maintained {
  readonly actions: readonly DatabaseEffect[]
  readonly isSettled: boolean
  readonly waitFor: string
  readonly waitSeconds: number
  readonly status: NonNullable<Decision['status']>
}

/** What its machine and its storage shall be, and what they say. */
function maintained({ root: database, observed, now }: ReconcileInput): Maintained {
  const { accountId, claim, machines, storage } = observed
  if (accountId === undefined || claim === undefined)
    return { actions: [], isSettled: false, waitFor: 'the database', waitSeconds: LOOK_SECONDS, status: {} }
  const demand = demandOf(database, observed)
  const planned = planMachines({ owner: ownerOf(database, accountId), demands: [demand], machines, now })
  const machine = machineOf(machines)
  const host = hostOf(machine, database.spec)
  const id = { accountId, databaseId: database.metadata.name }
  const isUncertified = host !== undefined && needsCertificate(claim, host, now)
  const isApplied =
    demand.configuration !== undefined &&
    machine?.running?.generation === demand.configuration.generation &&
    machine.running.fingerprint === demand.configuration.fingerprint
  const waitFor =
    machine?.state === 'started' && !isAttached(storage, machine) ? 'its storage to be attached' : planned.waitFor
  return {
    actions: [
      ...planned.actions,
      ...storageActions(database, observed),
      ...(host === undefined || !isUncertified
        ? []
        : [{ do: 'effect', name: 'certify', input: { ...id, host } } as const]),
    ],
    isSettled: planned.isSettled,
    waitFor,
    // The certificate is a row, which wakes nobody.
    waitSeconds: isUncertified ? 0 : LOOK_SECONDS,
    status: {
      isHealthy: planned.isSettled,
      healthDetail: truncated(planned.isSettled ? '' : `Waiting for ${waitFor}`),
      ...(host === undefined ? {} : { host }),
      isConfigurationApplied: isApplied,
      ...(isApplied ? { passwordGeneration: claim.passwordGeneration } : {}),
      certificateExpiresAt: claim.certificate?.expiresAt.toISOString(),
    },
  }
}

/** Its machine follows its spec. One whose creation failed is left as it is, and so is one whose data is lost. */
function idle(input: ReconcileInput): Decision {
  const { root: database, observed } = input
  const { spec, status, metadata } = database
  if (status?.isMade !== true || observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: status?.operation?.error ?? 'It was not made.' }
  if (status.isLost === true || observed.storage?.status?.state === 'error') return lost
  const { actions, isSettled, waitFor, waitSeconds, status: reported } = maintained(input)
  const id = { accountId: observed.accountId ?? '', databaseId: metadata.name }
  const isRenamed = observed.claim.name !== spec.name && refusalOf(database, CLAIMED) === undefined
  return {
    health: 'ready',
    reason: isSettled ? 'Running' : 'Maintaining',
    message: waitFor,
    actions: [
      ...(isRenamed ? [{ do: 'effect', name: 'rename', input: { ...id, name: spec.name } } as const] : []),
      ...actions,
    ],
    status: reported,
    waitFor: 'a change',
    waitSeconds,
  }
}

const LOST = 'The storage with its data is lost.'
const lost: Decision = {
  health: 'stalled',
  reason: 'Lost',
  message: LOST,
  status: { isLost: true, isHealthy: false, healthDetail: LOST },
}

/** Its machine goes first, then its storage, then what it has claimed. */
function remove({ root: database, observed, now }: ReconcileInput): Decision {
  const { accountId, machines, storage } = observed
  const going = { health: 'reconciling', reason: 'Deleting', waitSeconds: LOOK_SECONDS } as const
  if (accountId !== undefined && machines.length > 0) {
    const planned = planMachines({ owner: ownerOf(database, accountId), demands: [], machines, now })
    return { ...going, step: 'machine', actions: planned.actions, waitFor: planned.waitFor }
  }
  if (storage !== undefined) {
    const isGoing = storage.metadata.deletionTimestamp !== undefined
    const actions: readonly DatabaseEffect[] = isGoing ? [] : [{ do: 'remove', type: Storage, key: keyOf(storage) }]
    return { ...going, step: 'storage', actions, waitFor: 'its storage to go' }
  }
  const id = { accountId: accountId ?? '', databaseId: database.metadata.name }
  return {
    health: 'reconciling',
    reason: 'Deleting',
    step: 'released',
    outcome: 'succeeded',
    actions: accountId === undefined ? [] : [{ do: 'effect', name: 'release', input: id }],
    isGone: true,
  }
}
