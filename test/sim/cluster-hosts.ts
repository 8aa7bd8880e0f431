/** The host of control planes in virtual time, as processes of the platform reach it: it is slow and away, loses
 *  requests and answers, and those who ask it die of it. What it was configured with it keeps. */
import { Unavailable } from '../../domain/problem.ts'
import type { ControlPlanesOffer } from '../../integrations/control-planes/configuration.ts'
import type { ControlPlanes } from '../../integrations/control-planes/control.ts'
import type { Store } from '../../kit/kube/store.ts'
import { openSimulatedControlPlanes, type SimulatedControlPlanes } from '../control-planes.ts'
import { type ClusterNodes, newClusterNodes } from './cluster-nodes.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

export interface ClusterHosts {
  readonly planes: SimulatedControlPlanes['planes']
  readonly nodes: ClusterNodes
  /** As the process reaches it. */
  offerTo(process: SimulatedProcess): ControlPlanesOffer
  cut(milliseconds: number): void
  calm(): void
}

const RATES = { breaks: 0.02, losesAnswer: 0.02, crashes: 0.004 }
const LATENCY_MILLISECONDS = 60

export function newClusterHosts(scheduler: Scheduler, admin: () => Store): ClusterHosts {
  const { random } = scheduler
  const simulated = openSimulatedControlPlanes(['region-1'])
  if ('obstacle' in simulated.offer) throw new Error('there is no host')
  const { control } = simulated.offer
  const nodes = newClusterNodes(scheduler, simulated.planes, admin)
  let [isShaken, awayUntil] = [true, 0]
  const strikes = (what: keyof typeof RATES): boolean => {
    if (!isShaken || random.fraction() >= RATES[what]) return false
    scheduler.note(`fault host of control planes ${what}`)
    return true
  }
  const pause = () => scheduler.pause(1 + random.fraction() * LATENCY_MILLISECONDS)
  const own: ControlPlanes = {
    ...methodsOf(control),
    load: async (id) => nodes.loadOf(id),
    drain: (id, node) => nodes.drain(id, node),
    uncordon: async (id, node) => nodes.uncordon(id, node),
  }
  async function reach<Answer>(process: SimulatedProcess, work: () => Promise<Answer>): Promise<Answer> {
    const away = () => new Unavailable('the host of control planes')
    await pause()
    if (awayUntil > scheduler.nowMilliseconds || strikes('breaks')) throw away()
    const answer = await work()
    if (process.isRunning && strikes('crashes')) process.crash()
    if (strikes('losesAnswer')) throw away()
    await pause()
    return answer
  }
  return {
    planes: simulated.planes,
    nodes,
    offerTo: (process) => ({
      regions: ['region-1'],
      control: new Proxy(own, {
        get:
          (target, name: keyof ControlPlanes) =>
          (...values: never[]) =>
            // Each method takes what its caller hands it.
            process.bound(reach(process, () => (target[name] as (...given: never[]) => Promise<unknown>)(...values))),
      }),
    }),
    cut(milliseconds) {
      scheduler.note('fault host of control planes is away')
      awayUntil = scheduler.nowMilliseconds + milliseconds
    },
    calm() {
      ;[isShaken, awayUntil] = [false, 0]
    },
  }
}

/** A proxy has no members to spread. */
const methodsOf = (control: ControlPlanes): ControlPlanes =>
  Object.fromEntries(
    METHODS.map((name) => [name, (...values: never[]) => (control[name] as (...given: never[]) => unknown)(...values)]),
  ) as unknown as ControlPlanes // all of them, by the type of the list

const METHODS: readonly (keyof ControlPlanes)[] = [
  ...(['offer', 'ensure', 'get', 'remove', 'snapshot', 'snapshots', 'keepSnapshotsIn', 'removeSnapshot'] as const),
  ...([
    'restore',
    'grant',
    'recover',
    'nodes',
    'userToken',
    'personToken',
    'removePerson',
    'joinToken',
    'removeJoinToken',
  ] as const),
  ...(['servingRequests', 'approveServing', 'markNode', 'drain', 'uncordon', 'load', 'removeNode'] as const),
]
