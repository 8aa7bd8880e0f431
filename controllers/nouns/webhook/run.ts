/** The work of webhooks that has no object: finding events, sending them, and removing what the log has no room for. */
import { countDeliveries, type DeliveryCounts, pruneDeliveries } from '../../../db/webhook/index.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { type DeliverParts, openDeliveries } from './deliver.ts'
import { type EventParts, findEvents, watchStates } from './events.ts'

export interface WebhookOptions extends Pick<DeliverParts, 'trust'> {
  readonly sealing?: Sealing
  /** Called after each look at the log. */
  readonly onDeliveries?: (counts: DeliveryCounts) => void
}
type WebhookParts = Omit<DeliverParts, 'sealing'> & EventParts & WebhookOptions

/** While there is nothing to do. */
const ROUND_MILLISECONDS = 1_000
const LOOK_MILLISECONDS = 60_000

/** Finds and sends events until the signal aborts, where there is a key to seal secrets with. Never throws. */
export async function runWebhooks(parts: WebhookParts, signal: AbortSignal): Promise<void> {
  const { clock, sealing } = parts
  if (sealing?.isAvailable !== true) return
  await Promise.all([find(parts, signal), send({ ...parts, sealing }, signal), look(parts, signal)])
  async function look({ db, onDeliveries }: WebhookParts, over: AbortSignal): Promise<void> {
    const outages = new Outages(parts, 'the log of webhooks was not pruned')
    while (!over.aborted) {
      await outages.attempt(async () => {
        await orUnavailable(pruneDeliveries(db, clock.now()))
        onDeliveries?.(await orUnavailable(countDeliveries(db, clock.now())))
      })
      await clock.sleep(LOOK_MILLISECONDS, over)
    }
  }
}

async function find(parts: WebhookParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'no events of webhooks were found')
  const changed = watchStates(parts)
  let due: ReadonlySet<string> | 'all' = 'all'
  while (!signal.aborted) {
    let hasMore = false
    const isDone = await outages.attempt(async () => (hasMore = await findEvents(parts, due)))
    due = isDone && parts.caches.isReady() ? changed.take() : 'all'
    if (!hasMore) await parts.clock.sleep(ROUND_MILLISECONDS, signal)
  }
  changed.close()
}

async function send(parts: DeliverParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'no events are sent to webhooks')
  const deliveries = openDeliveries(parts, signal)
  while (!signal.aborted) {
    let started = 0
    await outages.attempt(async () => (started = await deliveries.start()))
    if (started > 0) continue
    // The next of a webhook is due when the one before has ended.
    const awake = new AbortController()
    void deliveries.ended().then(() => awake.abort())
    await parts.clock.sleep(ROUND_MILLISECONDS, AbortSignal.any([signal, awake.signal]))
  }
  await deliveries.settled()
}
