/** server.recover: starts a server of a fenced node elsewhere. The proof that nothing runs on the lost node replaces
 *  its agent's confirmation, and allows `controllers/nouns/node/recovery.ts` to remove the server's objects on that
 *  node. */
import { defined } from '../../../../domain/defined.ts'
import { RESERVED } from '../conditions.ts'
import { UNMADE } from '../../../../domain/server/rules.ts'
import type { ServerAction } from '../actions.ts'
import {
  unchanged,
  type Decision,
  findCondition,
  type ReconcileInput,
  type OperationInput,
  type Rule,
} from '../decision.ts'
import { ensureInstance, madeFor, removeInstances } from '../drafts.ts'
import { areOnPools, serverIdOf } from '../observed.ts'
import { moveUserData } from '../migration/effects.ts'
import { isFenced } from '../migration/input.ts'
import { firstDecision, present } from '../../../kit/operation/decision.ts'
import { bootFailed, hasEnded, nextIncarnation, running } from '../power/index.ts'

/** Wait before room in a full zone is requested again. */
const NO_CAPACITY_WAIT_SECONDS = 20
const RELEASE_WAIT_SECONDS = 5

const lostNodeOf = ({ operation, observed: { claims } }: OperationInput): string =>
  operation.arguments?.['lost_node_id'] ?? claims?.placement.node ?? ''

const hasLeftNode = (input: OperationInput): boolean => input.observed.claims?.placement.node !== lostNodeOf(input)

/** Guards in order: never provisioned, moved already, node not fenced or no longer fenced, disk lost with the node. */
const refused: Rule = (input) => {
  const { observed } = input
  const { claims, storage } = observed
  if (claims === undefined || storage === undefined)
    return { ...unchanged(input), step: 'reserved', outcome: 'failed', error: UNMADE }
  if (hasLeftNode(input)) return undefined
  if (!isFenced(observed, lostNodeOf(input))) return nodeReturned(input)
  return !areOnPools(observed)
    ? { ...unchanged(input), state: 'error', detail: DISK_LOST, step: 'reserved', outcome: 'failed', error: DISK_LOST }
    : undefined
}

const DISK_LOST =
  'The host of the server was lost, and the disk of the server is on that host alone. The server runs again when ' +
  'the host comes back.'

/** The node has returned, or was never fenced: the server stays on it. */
function nodeReturned(input: OperationInput): Decision {
  const {
    observed: { claims },
    operation,
  } = input
  const isHeld = claims?.target?.operationId === operation.id
  const actions: readonly ServerAction[] = isHeld
    ? [{ do: 'effect', name: 'release', input: migrationRefOf(input) }]
    : []
  const decision = { ...unchanged(input), step: 'reserved' as const, actions }
  return operation.actor.startsWith('system:')
    ? {
        ...decision,
        outcome: 'cancelled',
        events: [{ kind: 'node_returned', message: `Node ${lostNodeOf(input)} has come back.` }],
      }
    : {
        ...decision,
        outcome: 'failed',
        error: `There is no proof that the server no longer runs on node ${lostNodeOf(input)}.`,
      }
}

const migrationRefOf = ({ server, observed, operation }: OperationInput) => ({
  ...serverIdOf(server, observed),
  operationId: operation.id,
})

/** Reserves capacity on a node that can access the disk. */
const reserved: Rule = (input) => {
  const {
    observed: { claims, plan, storage },
    operation,
    server,
  } = input
  if (hasLeftNode(input) || claims?.target?.operationId === operation.id) return undefined
  const node = operation.arguments?.['target_node_id']
  const reservation = {
    ...migrationRefOf(input),
    pool: storage?.status?.pool,
    ...defined({ cpuPool: plan?.cpuPool, node }),
  }
  const refusal = findCondition(server, RESERVED)
  const detail =
    refusal?.status === 'False'
      ? `The host of the server was lost, and it cannot go on elsewhere yet. ${refusal.message}`
      : 'The host of the server was lost. The server goes on elsewhere.'
  return {
    state: 'error',
    detail,
    step: 'reserved',
    actions: [{ do: 'effect', name: 'reserve', input: reservation }],
    waitFor: 'room on another node',
    waitSeconds: NO_CAPACITY_WAIT_SECONDS,
  }
}

/** Makes the other node the server's node. */
const moved: Rule = (input) => {
  const {
    observed: { claims },
  } = input
  if (hasLeftNode(input) || claims?.target === undefined) return undefined
  return {
    ...stateWhileRecovering(input),
    step: 'moved',
    actions: [{ do: 'effect', name: 'switch', input: migrationRefOf(input) }],
    events: [
      {
        kind: 'recovery_started',
        message: `The server goes on on node ${claims.target.node}.`,
        data: { lost_node_id: lostNodeOf(input), node_id: claims.target.node },
      },
    ],
    waitSeconds: 0,
    waitFor: 'the next look',
  }
}

const stateWhileRecovering = (input: OperationInput): Pick<Decision, 'state'> => ({
  state: shouldRun(input) ? 'starting' : 'stopped',
})

/** As the operation requests; otherwise only a server that its policy restarts, and that should run. */
const shouldRun = ({ server: { spec }, operation }: OperationInput): boolean => {
  const requested = operation.arguments?.['start']
  return requested === undefined ? spec.haPolicy === 'restart' && spec.desiredPower === 'running' : requested === 'true'
}

/** Removes the lost node's instance before one is created elsewhere. */
const released: Rule = (input) => {
  const { strayInstances = [] } = input.observed
  if (strayInstances.length === 0) return undefined
  return {
    ...stateWhileRecovering(input),
    step: 'released',
    actions: removeInstances(strayInstances),
    waitFor: `node ${lostNodeOf(input)} to lose the server`,
    waitSeconds: RELEASE_WAIT_SECONDS,
  }
}

const storageReady: Rule = (input) => {
  const { storage, claims } = input.observed
  const isThere = storage?.status?.state === 'online' && storage.status.nodeName === claims?.placement.node
  return isThere ? undefined : { ...stateWhileRecovering(input), step: 'storage', waitFor: 'the boot storage' }
}

const powered: Rule = (input) => {
  const { server, observed, operation } = input
  const { claims, storage, instance } = observed
  if (claims === undefined || storage === undefined || (instance !== undefined && madeFor(instance) === operation.id))
    return undefined
  const isRunning = shouldRun(input)
  const desiredPower = isRunning ? 'running' : 'stopped'
  const power = {
    power: desiredPower,
    incarnation: isRunning ? nextIncarnation(input) : (server.status?.incarnation ?? 0),
    operationId: operation.id,
  } as const
  return {
    ...stateWhileRecovering(input),
    step: 'started',
    waitFor: 'the host',
    actions: [
      ...moveUserData(server, lostNodeOf(input), claims.placement.node),
      ...(server.spec.desiredPower === desiredPower
        ? []
        : [{ do: 'change', patch: { spec: { desiredPower } } } as const]),
      ...present(ensureInstance(server, observed, claims, storage, power)),
    ],
  }
}

const stopped: Rule = (input) => {
  const { instance } = input.observed
  if (instance?.spec.power !== 'stopped') return undefined
  const detail =
    input.server.spec.haPolicy === 'none'
      ? { detail: 'The host of the server was lost. The server is on another one now, stopped as its policy wants it.' }
      : {}
  return hasEnded(instance)
    ? { state: 'stopped', ...detail, step: 'started', outcome: 'succeeded' }
    : { ...stateWhileRecovering(input), step: 'started', waitFor: 'the node to be ready for the guest' }
}

export const recover = (input: OperationInput): Decision =>
  firstDecision(input, [refused, reserved, moved, released, storageReady, powered, stopped, bootFailed, running])

/** A failed recovery leaves the server in error, not in a transitional state. */
export const recoverFailed = (input: OperationInput, step: NonNullable<Decision['step']>, error: string): Decision => ({
  ...unchanged(input),
  state: 'error',
  detail: error,
  step,
  outcome: 'failed',
  error,
})

/** The status detail of an idle server whose node was fenced. */
export const lostHostDetail = ({ observed }: ReconcileInput): string =>
  !areOnPools(observed) ? DISK_LOST : 'The host of the server was lost. The server goes on elsewhere.'

/** Ends an operation that a lost host can never finish, so that the server can recover. Undefined for other operations.
 */
export function endedByLoss(input: OperationInput): Decision | undefined {
  const { observed, operation } = input
  if (observed.claims === undefined || !isFenced(observed, observed.claims.placement.node)) return undefined
  const lost: Decision = {
    ...unchanged(input),
    state: 'error',
    detail: lostHostDetail(input),
    outcome: 'failed',
    error: 'The host of the server was lost.',
  }
  switch (operation.kind) {
    case 'server.create':
    case 'server.start':
    case 'server.restart':
      return lost
    case 'server.stop':
      return { state: 'stopped', step: 'stopped', outcome: 'succeeded' } // fencing proved that no guest runs
    case 'server.metadata':
      return { ...unchanged(input), step: 'done', outcome: 'succeeded' } // the next instance gets the setting
    default:
      return undefined
  }
}
