/** Writes the hour rows from which usage and invoices are computed. Nothing waits for it; after an outage the next run
 *  catches up. */
import {
  meterBatch,
  readMetering,
  recordCurrentPrice,
  recordDatedPrices,
  recordMetered,
} from '../../../db/billing/index.ts'
import { hourOf } from '../../../domain/billing/metered-bytes.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { ResourceType } from '../../../kit/kube/object.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import { Price } from '../../../resources/price/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { BILLABLES } from './billables.ts'
import { openLooks } from './lives.ts'
import type { BillingRun } from './progress.ts'
import { Outages } from '../../../kit/sys/outages.ts'

const LOOK_MILLISECONDS = 30_000
const MILLICENTS_PER_CENT = 1_000
/** How long after its end an hour is metered: by then every creation and deletion in it is known. */
const GRACE_MILLISECONDS = 120_000

/** The kinds that the meter reads. */
export const BILLING_KINDS: readonly ResourceType[] = [...new Set(BILLABLES.map(({ kind }) => kind)), Plan, Price]

/** Requests their caches before the caches are started. */
export function openBillingCaches(caches: Caches): void {
  for (const kind of BILLING_KINDS) caches.of(kind)
}

/** Meters until the signal aborts. Never throws. */
export async function runMeter(parts: BillingRun, signal: AbortSignal): Promise<void> {
  const { clock, db, log } = parts
  const meter = openMeter(parts)
  const outages = new Outages({ log, clock }, 'resources not metered')
  while (!signal.aborted) {
    await clock.sleep(LOOK_MILLISECONDS, signal)
    if (signal.aborted || !parts.caches.isReady()) continue
    await outages.attempt(() => meter(signal))
    await readMetering(db).then(
      ({ meteredThrough }) => {
        const lag = meteredThrough === null ? 0 : clock.now().getTime() - meteredThrough.getTime()
        parts.onBilled?.({ meteringLagSeconds: lag / 1_000 })
      },
      () => {}, // the next look reports it
    )
  }
}

/** Answers a function that looks once at everything, and meters the hours that have ended since. Throws Unavailable. */
export function openMeter(parts: Pick<Parts, 'caches' | 'clock' | 'db'>): (signal?: AbortSignal) => Promise<void> {
  const { caches, clock, db } = parts
  const look = openLooks(parts)

  async function recordPrices(): Promise<void> {
    const now = clock.now()
    for (const { metadata, spec } of caches.of(Plan).list())
      await recordCurrentPrice(
        db,
        { resourceType: 'server', plan: metadata.name },
        spec.priceMonthlyCents * MILLICENTS_PER_CENT,
        now,
      )
    const dated = caches
      .of(Price)
      .list()
      .map(({ spec }) => ({
        resourceType: spec.resourceType,
        plan: spec.plan,
        validFrom: new Date(spec.validFrom),
        unitMillicents: spec.monthlyMillicents,
      }))
    await recordDatedPrices(db, dated, now)
  }

  return async (signal) => {
    await orUnavailable(recordPrices())
    await look()
    const through = hourOf(new Date(clock.now().getTime() - GRACE_MILLISECONDS))
    const { meteredThrough } = await orUnavailable(readMetering(db))
    do if (signal?.aborted === true) return
    while ((await orUnavailable(meterBatch(db, through))) > 0)
    if (meteredThrough === null || meteredThrough < through) await orUnavailable(recordMetered(db, through))
  }
}
