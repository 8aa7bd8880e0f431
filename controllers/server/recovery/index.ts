/** server.recover: a server whose node was fenced goes on elsewhere. Only the proof that nothing runs on the lost node
 *  any more lets it
 *  leave without that node's word; what the node still has of it goes by the same proof
 *  (`controllers/node/recovery.ts`). */
import { UNMADE } from '../../../domain/server-rules.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { asBefore, type Decision, findCondition, type Turn, type Work } from '../decision.ts'
import { ensureInstance, madeFor } from '../drafts.ts'
import { bringUserData, RESERVED } from '../migration/effects.ts'
import { isFenced } from '../migration/input.ts'
import { broken, first, hasEnded, nextIncarnation, present, type Rule, running } from '../power/index.ts'
import { removeInstances } from '../removal.ts'

/** How often a zone without room is asked again. */
const NO_CAPACITY_WAIT_SECONDS = 20
const RELEASE_WAIT_SECONDS = 5

const lostNodeOf = ({ operation, seen: { claims } }: Work): string =>
  operation.arguments?.['lost_node_id'] ?? claims?.placement.node ?? ''

const isLeft = (work: Work): boolean => work.seen.claims?.placement.node !== lostNodeOf(work)

/** Guards in order: on its way already, never made whole, node not lost (any more), disk lost with it. */
const refused: Rule = (work) => {
  const { seen } = work
  const { claims, storage } = seen
  if (claims === undefined || storage === undefined)
    return { ...asBefore(work), step: 'reserved', outcome: 'failed', error: UNMADE }
  if (isLeft(work)) return undefined
  if (!isFenced(seen, lostNodeOf(work))) return stays(work)
  return storage.status?.pool === undefined
    ? { ...asBefore(work), state: 'error', detail: DISK_LOST, step: 'reserved', outcome: 'failed', error: DISK_LOST }
    : undefined
}

const DISK_LOST =
  'The host of the server was lost, and the disk of the server is on that host alone. The server runs again when ' +
  'the host comes back.'

/** The node has come back, or was never fenced: the server is where it was. */
function stays(work: Work): Decision {
  const {
    seen: { claims },
    operation,
  } = work
  const isHeld = claims?.target?.operationId === operation.id
  const actions: readonly Action[] = isHeld ? [{ do: 'effect', name: 'release', input: moveOf(work) }] : []
  const decision = { ...asBefore(work), step: 'reserved', actions }
  return operation.actor.startsWith('system:')
    ? {
        ...decision,
        outcome: 'cancelled',
        events: [{ kind: 'node_returned', message: `Node ${lostNodeOf(work)} has come back.` }],
      }
    : {
        ...decision,
        outcome: 'failed',
        error: `There is no proof that the server does not run on node ${lostNodeOf(work)} any more.`,
      }
}

const moveOf = ({ server, seen: { accountId }, operation }: Work) => ({
  accountId,
  serverId: server.metadata.name,
  operationId: operation.id,
})

/** Room on a node that reaches the disk. */
const reserved: Rule = (work) => {
  const {
    seen: { claims, plan, storage },
    operation,
    server,
  } = work
  if (isLeft(work) || claims?.target?.operationId === operation.id) return undefined
  const node = operation.arguments?.['target_node_id']
  const input = {
    ...moveOf(work),
    pool: storage?.status?.pool,
    ...(plan?.cpuPool === undefined ? {} : { cpuPool: plan.cpuPool }),
    ...(node === undefined ? {} : { node }),
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
    actions: [{ do: 'effect', name: 'reserve', input }],
    waitFor: 'room on another node',
    waitSeconds: NO_CAPACITY_WAIT_SECONDS,
  }
}

/** From here on the server lives on the other node. */
const moved: Rule = (work) => {
  const {
    seen: { claims },
  } = work
  if (isLeft(work) || claims?.target === undefined) return undefined
  return {
    ...stateOnTheWay(work),
    step: 'moved',
    actions: [{ do: 'effect', name: 'switch', input: moveOf(work) }],
    events: [
      {
        kind: 'recovery_started',
        message: `The server goes on on node ${claims.target.node}.`,
        data: { lost_node_id: lostNodeOf(work), node_id: claims.target.node },
      },
    ],
    waitSeconds: 0,
    waitFor: 'the next look',
  }
}

const stateOnTheWay = (work: Work): Pick<Decision, 'state'> => ({ state: shallRun(work) ? 'starting' : 'stopped' })

/** Without an order of its own, as the owner wants it: a server without high availability waits for its owner. */
const shallRun = ({ server: { spec }, operation }: Work): boolean => {
  const said = operation.arguments?.['start']
  return said === undefined ? spec.haPolicy === 'restart' && spec.desiredPower === 'running' : said === 'true'
}

/** What the lost node has of the server goes before the server is made elsewhere. */
const released: Rule = (work) => {
  const { strayInstances = [] } = work.seen
  if (strayInstances.length === 0) return undefined
  return {
    ...stateOnTheWay(work),
    step: 'released',
    actions: removeInstances(strayInstances),
    waitFor: `node ${lostNodeOf(work)} to lose the server`,
    waitSeconds: RELEASE_WAIT_SECONDS,
  }
}

const stored: Rule = (work) => {
  const { storage, claims } = work.seen
  const isThere = storage?.status?.state === 'online' && storage.status.nodeName === claims?.placement.node
  return isThere ? undefined : { ...stateOnTheWay(work), step: 'storage', waitFor: 'the boot storage' }
}

const powered: Rule = (work) => {
  const { server, seen, operation } = work
  const { claims, storage, instance } = seen
  if (claims === undefined || storage === undefined || (instance !== undefined && madeFor(instance) === operation.id))
    return undefined
  const isRunning = shallRun(work)
  const desiredPower = isRunning ? 'running' : 'stopped'
  const power = {
    power: desiredPower,
    incarnation: isRunning ? nextIncarnation(work) : (server.status?.incarnation ?? 0),
    operationId: operation.id,
  } as const
  return {
    ...stateOnTheWay(work),
    step: 'started',
    waitFor: 'the host',
    actions: [
      ...bringUserData(server, lostNodeOf(work), claims.placement.node),
      ...(server.spec.desiredPower === desiredPower
        ? []
        : [{ do: 'change', patch: { spec: { desiredPower } } } as const]),
      ...present(ensureInstance(server, seen, claims, storage, power)),
    ],
  }
}

const stopped: Rule = (work) => {
  const { instance } = work.seen
  if (instance?.spec.power !== 'stopped') return undefined
  const detail =
    work.server.spec.haPolicy === 'none'
      ? { detail: 'The host of the server was lost. The server is on another one now, stopped as its policy wants it.' }
      : {}
  return hasEnded(instance)
    ? { state: 'stopped', ...detail, step: 'started', outcome: 'succeeded' }
    : { ...stateOnTheWay(work), step: 'started', waitFor: 'the node to be ready for the guest' }
}

export const recover = (work: Work): Decision =>
  first(work, [refused, reserved, moved, released, stored, powered, stopped, broken, running])

/** A recovery that is given up: what did not come about is not shown as on its way. */
export const recoverFailed = (work: Work, step: string, error: string): Decision => ({
  ...asBefore(work),
  state: 'error',
  detail: error,
  step,
  outcome: 'failed',
  error,
})

/** Of a server at rest whose node was fenced, for people. */
export const detailOfLost = ({ seen: { storage } }: Turn): string =>
  storage?.status?.pool === undefined ? DISK_LOST : 'The host of the server was lost. The server goes on elsewhere.'

/** An operation that a lost host can never do ends at once, so that the server can recover. Undefined for those that it
 *  does not concern. */
export function endedByLoss(work: Work): Decision | undefined {
  const { seen, operation } = work
  if (seen.claims === undefined || !isFenced(seen, seen.claims.placement.node)) return undefined
  const lost: Decision = {
    ...asBefore(work),
    state: 'error',
    detail: detailOfLost(work),
    outcome: 'failed',
    error: 'The host of the server was lost.',
  }
  switch (operation.kind) {
    case 'server.create':
    case 'server.start':
    case 'server.restart':
      return lost
    case 'server.stop':
      return { state: 'stopped', step: 'stopped', outcome: 'succeeded' } // nothing of it runs any more
    case 'server.metadata':
      return { ...asBefore(work), step: 'done', outcome: 'succeeded' } // the next instance is made with the setting
    default:
      return undefined
  }
}
