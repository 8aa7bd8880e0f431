/** Runs the controller after changes of services and nodes, and at the times that it requests. */
import type { Cache } from '../../kit/kube/cache.ts'
import { backoffMilliseconds } from '../../kit/sys/backoff.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Outages } from '../../kit/sys/outages.ts'
import type { CloudController } from './controller.ts'
import { nodeDigest } from './nodes.ts'
import type { NodeSpec, NodeStatus, ServiceSpec, ServiceStatus } from './objects.ts'

export interface RunOptions {
  readonly controller: Pick<CloudController, 'pass'>
  readonly services: Cache<ServiceSpec, ServiceStatus>
  readonly nodes: Cache<NodeSpec, NodeStatus>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Changes often come in groups. */
const GATHER_MILLISECONDS = 300
const RETRY = { baseMilliseconds: 2_000, maximumMilliseconds: 60_000 }

/** Runs until the signal aborts. */
export async function run(options: RunOptions, signal: AbortSignal): Promise<void> {
  const { controller, services, nodes, clock, random, log } = options
  const outages = new Outages({ log, clock }, 'pass failed')
  let changed = new AbortController()
  const wake = () => changed.abort()
  services.subscribe(wake)
  nodes.subscribe((change) => {
    const isSame = change.is === 'set' && change.previous !== undefined
    if (!isSame || nodeDigest(change.object) !== nodeDigest(change.previous)) wake()
  })
  signal.addEventListener('abort', wake, { once: true })
  for (let failures = 0; !signal.aborted; ) {
    changed = new AbortController()
    let milliseconds: number
    try {
      milliseconds = await controller.pass()
      failures = 0
      outages.over()
    } catch (error) {
      outages.failed(error)
      milliseconds = backoffMilliseconds(failures++, RETRY, random)
    }
    // A complete failure waits for its time, regardless of changes.
    await clock.sleep(milliseconds, failures > 0 ? signal : changed.signal)
    if (changed.signal.aborted) await clock.sleep(GATHER_MILLISECONDS, signal)
  }
}
